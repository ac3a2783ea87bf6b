# Tests of dist.
PROGRAM_TESTS += tests/check_meet tests/check_place tests/check_store tests/check_visible \
	tests/check_watch tests/replay_store
tests_replay_store_SOURCES = tests/fuzz_store.c tests/fuzz_replay.c
check_PROGRAMS += tests/join_place
SCRIPT_TESTS += tests/check_examples.sh
