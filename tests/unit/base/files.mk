# Tests of core/base.
PROGRAM_TESTS += %D%/check_arena %D%/check_environment %D%/check_file %D%/check_hash %D%/check_integer %D%/check_log \
	%D%/check_name_index %D%/check_parallel %D%/check_cpu_quota %D%/check_quote %D%/check_random \
	%D%/check_subprocess %D%/check_text
