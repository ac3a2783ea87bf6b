# Tests of pons launch: the launcher, what it shares with its ranks, and faults.
PROGRAM_TESTS += tests/check_board tests/check_launch tests/check_proxy
# The rank that check_launch starts.
check_PROGRAMS += tests/launched

# A network that can be slowed down, cut and reset, and the way of other programs into it.
check_LTLIBRARIES += tests/plugins/redirect.la
tests_check_proxy_SOURCES = tests/check_proxy.c tests/proxy.c

# A transform that waits; for check_cuda_train.sh, too.
check_LTLIBRARIES += tests/plugins/held.la

# Whole trainings on several ranks.
if HAVE_GLOO
PROGRAM_TESTS += tests/check_endurance tests/check_network tests/check_ranks tests/check_shortage \
	tests/check_slow tests/check_trouble
SOAK_TESTS += tests/check_endurance tests/check_network tests/check_ranks tests/check_shortage \
	tests/check_slow
# Random faults for as long as asked.
tests_check_endurance_SOURCES = tests/check_endurance.c tests/proxy.c
tests_check_endurance_LDADD = $(LDADD) -lm
tests_check_network_SOURCES = tests/check_network.c tests/proxy.c

# Memory that one of them lacks.
check_LTLIBRARIES += tests/plugins/limit.la tests/plugins/smaller.la
tests_check_shortage_DEPENDENCIES = tests/libpons.la tests/plugins/limit.la tests/plugins/smaller.la

# What one of them meets alone.
check_LTLIBRARIES += tests/plugins/trouble.la
tests_check_ranks_DEPENDENCIES = tests/libpons.la tests/plugins/disk_shim.la tests/plugins/held.la
tests_check_trouble_LDADD = $(LDADD) -lm
tests_check_trouble_DEPENDENCIES = tests/libpons.la tests/plugins/trouble.la tests/plugins/poison.la \
	tests/plugins/unsound.la
endif
