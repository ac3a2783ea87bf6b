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

# A network that can be slowed down, cut and reset, and the way of other programs into it.
check_LTLIBRARIES += tests/plugins/redirect.la
tests_plugins_redirect_la_SOURCES = tests/plugins/redirect.c tests/proxy.h
tests_plugins_redirect_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
check_PROGRAMS += tests/check_proxy
tests_check_proxy_SOURCES = tests/check_proxy.c tests/proxy.c tests/proxy.h
tests_check_proxy_LDADD = $(TEST_LDADD)
TESTS += tests/check_proxy
