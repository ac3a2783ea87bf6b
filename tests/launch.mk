# Tests of pons launch: the launcher, what it shares with its ranks, and faults.
check_PROGRAMS += tests/check_board
tests_check_board_SOURCES = tests/check_board.c
tests_check_board_LDADD = $(TEST_LDADD)
TESTS += tests/check_board
# The rank that check_launch starts.
check_PROGRAMS += tests/launched tests/check_launch
tests_launched_SOURCES = tests/launched.c
tests_launched_LDADD = $(TEST_LDADD)
tests_check_launch_SOURCES = tests/check_launch.c tests/run_pons.h tests/suite.h
tests_check_launch_LDADD = $(TEST_LDADD)
TESTS += tests/check_launch
