# Tests of programs: storage, memory plan, update section, golden runs.
check_PROGRAMS += tests/check_memory
tests_check_memory_SOURCES = tests/check_memory.c
tests_check_memory_LDADD = $(TEST_LDADD)
TESTS += tests/check_memory

check_PROGRAMS += tests/check_program
tests_check_program_SOURCES = tests/check_program.c
tests_check_program_LDADD = $(TEST_LDADD)
TESTS += tests/check_program

check_PROGRAMS += tests/check_update
tests_check_update_SOURCES = tests/check_update.c
tests_check_update_LDADD = $(TEST_LDADD)
TESTS += tests/check_update
