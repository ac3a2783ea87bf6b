# Scripts that build or check the tree, and tools of tests.
SCRIPT_TESTS += %D%/check_folders.sh %D%/check_own_build.sh
EXTRA_DIST += %D%/debian.sh %D%/onednn_3.sh %D%/lacks.sh %D%/own_build.sh %D%/patience.sh %D%/scratch.sh \
	%D%/thread.sh %D%/thread.suppressions %D%/timed.sh %D%/cupti_trace.c tests/on_card.sh tests/pack_card.sh
if HAVE_CUDA
# The library that CUDA_INJECTION64_PATH names for a trace of kernels.
check_LTLIBRARIES += %D%/libcuptitrace.la
%C%_libcuptitrace_la_SOURCES = %D%/cupti_trace.c
%C%_libcuptitrace_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
%C%_libcuptitrace_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
%C%_libcuptitrace_la_LDFLAGS = -rpath /nowhere -module -avoid-version
endif
