# Tests of pons launch: the launcher, what it shares with its ranks, and faults.
check_PROGRAMS += tests/check_board
tests_check_board_SOURCES = tests/check_board.c
tests_check_board_LDADD = $(TEST_LDADD)
TESTS += tests/check_board
