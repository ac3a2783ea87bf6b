# Tests of programs: storage, memory plan, update section, golden runs.
check_PROGRAMS += tests/check_memory
tests_check_memory_SOURCES = tests/check_memory.c
tests_check_memory_LDADD = $(TEST_LDADD)
TESTS += tests/check_memory
