# Tests of core/config and of every option.
PROGRAM_TESTS += %D%/check_config %D%/check_config_gallery
SCRIPT_TESTS += %D%/check_options.sh %D%/check_settings.sh
EXTRA_DIST += %D%/options
