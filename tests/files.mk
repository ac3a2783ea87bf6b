# Tests. Each folder lists its own in files.mk: a word in PROGRAM_TESTS is built from FILE.c and run, one in
# SCRIPT_TESTS is run, one in check_PROGRAMS is built for others. %D% is the folder, %C% the same as part of a name.
PROGRAM_TESTS =
SCRIPT_TESTS =
SOAK_TESTS =
AM_CPPFLAGS += -I$(top_srcdir)/tests
EXTRA_DIST += tests/golden tests/corpus

# Programs link the tests' libpons, which exports every symbol of the core under the soname of the
# installed one, so that plugins which a test loads bind to the test's copy.
check_LTLIBRARIES += tests/libpons.la
tests_libpons_la_SOURCES =
tests_libpons_la_LIBADD = libcore.la
tests_libpons_la_LDFLAGS = -rpath $(libdir) -version-info $(LIBRARY_VERSION)
LDADD = tests/libsupport.la tests/libpons.la $(CHECK_LIBS) $(JANSSON_LIBS)
DEVICE_LDADD = tests/libsupport.la libcpudevice.la tests/libpons.la $(CHECK_LIBS) $(JANSSON_LIBS) $(OPENMP_CFLAGS)
CUDA_LDADD = tests/libsupport.la libcudadevice.la tests/libpons.la $(CHECK_LIBS) $(JANSSON_LIBS)

include tests/support/files.mk
include tests/fake/files.mk
include tests/plugins/files.mk
include tests/tools/files.mk

# In the order in which they run: those that wait for deadlines begin first, so that others fill their
# pauses.
include tests/unit/cluster/files.mk
include tests/integration/faults/files.mk
include tests/integration/modes/files.mk
include tests/unit/base/files.mk
include tests/unit/config/files.mk
include tests/unit/plugin/files.mk
include tests/unit/cli/files.mk
include tests/unit/graph/files.mk
include tests/unit/onnx/files.mk
include tests/integration/golden/files.mk
include tests/kernels/cpu/files.mk
include tests/kernels/cuda/files.mk
include tests/bench/files.mk
include tests/unit/data/files.mk
include tests/unit/slide/files.mk
include tests/unit/plan/files.mk
include tests/integration/gallery/files.mk
include tests/integration/docs/files.mk
include tests/fuzz/files.mk
include tests/unit/checkpoint/files.mk
include tests/unit/embed/files.mk
include tests/unit/train/files.mk

.PHONY: list-tests
list-tests:
	@echo $(TESTS)

# 'make soak' runs the programs in SOAK_TESTS at the sizes of a release; each asks support/soak.h for its own.
.PHONY: soak
soak:
	SOAK=yes $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(SOAK_TESTS)'

# A program's log ends with its seconds.
LOG_COMPILER = $(top_srcdir)/tests/tools/timed.sh

check_PROGRAMS += $(PROGRAM_TESTS)
TESTS += $(SCRIPT_TESTS) $(PROGRAM_TESTS)
EXTRA_DIST += $(SCRIPT_TESTS)
