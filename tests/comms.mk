# Tests of the communicators and of the processes of a run.
COMM_SUITE = tests/comm_suite.c tests/comm_trial.c
EXTRA_DIST += $(COMM_SUITE) tests/check_gloo.c tests/backend_gloo.c tests/check_nccl.c \
	tests/backend_nccl.c tests/check_group.c tests/comm_mpi.c tests/check_mpi.sh \
	tests/thread.suppressions
check_LTLIBRARIES += tests/plugins/alone.la tests/plugins/stranger.la

PROGRAM_TESTS += tests/check_beat
if HAVE_GLOO
PROGRAM_TESTS += tests/check_gloo tests/check_group
tests_check_gloo_SOURCES = tests/check_gloo.c tests/backend_gloo.c $(COMM_SUITE)
tests_check_group_SOURCES = tests/check_group.c tests/backend_gloo.c
endif

# On the made-up driver of device.mk, opened by tests/fakes.c; the program finds it by
# LD_LIBRARY_PATH=tests/fake/.libs.
EXTRA_DIST += tests/fake/nccl.c
if HAVE_NCCL
check_LTLIBRARIES += tests/fake/libnccl.la
tests_fake_libnccl_la_SOURCES = tests/fake/nccl.c
tests_fake_libnccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
tests_fake_libnccl_la_LDFLAGS = -rpath /nowhere -version-info 2:0:0
tests_fake_libnccl_la_LIBADD = tests/fake/libcuda.la
PROGRAM_TESTS += tests/check_nccl tests/check_group_nccl
tests_check_nccl_SOURCES = tests/check_nccl.c tests/backend_nccl.c tests/fakes.c $(COMM_SUITE)
tests_check_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
EXTRA_tests_check_nccl_DEPENDENCIES = tests/fake/libnccl.la
tests_check_group_nccl_SOURCES = tests/check_group.c tests/backend_nccl.c tests/fakes.c
tests_check_group_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
EXTRA_tests_check_group_nccl_DEPENDENCIES = tests/fake/libnccl.la
endif
if HAVE_MPI
check_PROGRAMS += tests/comm_mpi
tests_comm_mpi_SOURCES = tests/comm_mpi.c tests/comm_trial.c
TESTS += tests/check_mpi.sh
endif
