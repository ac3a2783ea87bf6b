# Tests of communicators, of the processes of a run and of the launcher.
EXTRA_DIST += %D%/backend_gloo.c %D%/backend_nccl.c %D%/backend_shm.c %D%/check_gloo.c %D%/check_group.c %D%/check_mpi.sh \
	%D%/check_nccl.c %D%/comm_mpi.c
PROGRAM_TESTS += %D%/check_group_shm %D%/check_heartbeat %D%/check_shm
%C%_check_group_shm_SOURCES = %D%/check_group.c %D%/backend_shm.c
%C%_check_shm_SOURCES = %D%/check_shm.c %D%/backend_shm.c
if HAVE_GLOO
PROGRAM_TESTS += %D%/check_gloo %D%/check_group
%C%_check_gloo_SOURCES = %D%/check_gloo.c %D%/backend_gloo.c
%C%_check_gloo_LDFLAGS = -export-dynamic
%C%_check_group_SOURCES = %D%/check_group.c %D%/backend_gloo.c
endif
# These run on the made-up driver, which the program finds by LD_LIBRARY_PATH=tests/fake/.libs.
if HAVE_NCCL
PROGRAM_TESTS += %D%/check_nccl %D%/check_group_nccl
%C%_check_nccl_SOURCES = %D%/check_nccl.c %D%/backend_nccl.c
%C%_check_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
EXTRA_%C%_check_nccl_DEPENDENCIES = tests/fake/libnccl.la
%C%_check_group_nccl_SOURCES = %D%/check_group.c %D%/backend_nccl.c
%C%_check_group_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
EXTRA_%C%_check_group_nccl_DEPENDENCIES = tests/fake/libnccl.la
endif
if HAVE_MPI
check_PROGRAMS += %D%/comm_mpi
TESTS += %D%/check_mpi.sh
endif

# check_launch starts 'rank_process' as its ranks; check_examples.sh runs 'join_ranks' instead of
# pons.
PROGRAM_TESTS += %D%/check_status_page %D%/check_launch %D%/check_proxy
check_PROGRAMS += %D%/rank_process %D%/join_ranks

PROGRAM_TESTS += %D%/check_local_comm %D%/check_group_join %D%/check_rank_info %D%/check_store %D%/check_cuda_visible_devices %D%/check_watchdog
SCRIPT_TESTS += %D%/check_examples.sh
