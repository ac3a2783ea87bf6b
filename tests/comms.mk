# Tests of the communicators and of the processes of a run.
EXTRA_DIST += tests/comm_trial.h tests/comm_trial.c tests/processes.h tests/check_gloo.c \
	tests/check_group.c tests/comm_mpi.c tests/check_mpi.sh \
	tests/thread.suppressions
check_LTLIBRARIES += tests/plugins/alone.la
tests_plugins_alone_la_SOURCES = tests/plugins/alone.c
tests_plugins_alone_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

check_PROGRAMS += tests/check_beat
tests_check_beat_SOURCES = tests/check_beat.c
tests_check_beat_LDADD = $(TEST_LDADD)
TESTS += tests/check_beat
if HAVE_GLOO
check_PROGRAMS += tests/check_gloo tests/check_group
tests_check_gloo_SOURCES = tests/check_gloo.c tests/comm_trial.c tests/comm_trial.h tests/processes.h
tests_check_gloo_LDADD = $(TEST_LDADD)
tests_check_group_SOURCES = tests/check_group.c tests/processes.h
tests_check_group_LDADD = $(TEST_LDADD)
TESTS += tests/check_gloo tests/check_group
endif
if HAVE_MPI
check_PROGRAMS += tests/comm_mpi
tests_comm_mpi_SOURCES = tests/comm_mpi.c tests/comm_trial.c tests/comm_trial.h
tests_comm_mpi_LDADD = $(TEST_LDADD)
TESTS += tests/check_mpi.sh
endif
