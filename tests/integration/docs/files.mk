# Examples of README.md and docs.
SCRIPT_TESTS += %D%/check_docs.sh
EXTRA_DIST += %D%/blocks.awk %D%/exceptions %D%/given.sh %D%/words.awk
