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

# Whole trainings on several ranks.
EXTRA_DIST += tests/plugins/limit.c tests/check_shortage.c
EXTRA_DIST += tests/plugins/trouble.c tests/check_trouble.c tests/finite.h
EXTRA_DIST += tests/ranks.h tests/check_ranks.c tests/check_network.c tests/check_endurance.c
if HAVE_GLOO
check_PROGRAMS += tests/check_ranks
tests_check_ranks_SOURCES = tests/check_ranks.c tests/ranks.h tests/run_pons.h \
	tests/soak.h tests/suite.h
tests_check_ranks_LDADD = $(TEST_LDADD)
TESTS += tests/check_ranks

check_PROGRAMS += tests/check_network
tests_check_network_SOURCES = tests/check_network.c tests/proxy.c tests/proxy.h tests/ranks.h
tests_check_network_LDADD = $(TEST_LDADD)
TESTS += tests/check_network

# Memory that one of them lacks.
check_LTLIBRARIES += tests/plugins/limit.la
tests_plugins_limit_la_SOURCES = tests/plugins/limit.c
tests_plugins_limit_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
check_PROGRAMS += tests/check_shortage
tests_check_shortage_SOURCES = tests/check_shortage.c tests/ranks.h tests/soak.h
tests_check_shortage_LDADD = $(TEST_LDADD)
tests_check_shortage_DEPENDENCIES = tests/libpons.la tests/plugins/limit.la
TESTS += tests/check_shortage
SOAK_TESTS += tests/check_shortage

# What one of them meets alone.
check_LTLIBRARIES += tests/plugins/trouble.la
tests_plugins_trouble_la_SOURCES = tests/plugins/trouble.c
tests_plugins_trouble_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
check_PROGRAMS += tests/check_trouble
tests_check_trouble_SOURCES = tests/check_trouble.c tests/finite.h tests/ranks.h
tests_check_trouble_LDADD = $(TEST_LDADD) -lm
tests_check_trouble_DEPENDENCIES = tests/libpons.la tests/plugins/trouble.la tests/plugins/poison.la
TESTS += tests/check_trouble

# Random faults for as long as asked.
check_PROGRAMS += tests/check_endurance
tests_check_endurance_SOURCES = tests/check_endurance.c tests/proxy.c tests/proxy.h tests/ranks.h \
	tests/soak.h
tests_check_endurance_LDADD = $(TEST_LDADD) -lm
TESTS += tests/check_endurance
SOAK_TESTS += tests/check_ranks tests/check_endurance
endif
