# Tests. Each area lists its own in tests/AREA.mk: a word in PROGRAM_TESTS is built from FILE.c and run, one
# in SCRIPT_TESTS is run, one in check_PROGRAMS is built for others.
PROGRAM_TESTS =
SCRIPT_TESTS =
SOAK_TESTS =
TEST_INCLUDES = tests/asserts.h tests/bench_arguments.h tests/bench_clock.h tests/card_trial.h \
	tests/comm_suite.h tests/comm_trial.h tests/convolution_trial.h tests/convolutions.h \
	tests/dataset_maker.h tests/descent.h \
	tests/disk_preload.h tests/disk_shim.h tests/evaluate.h tests/finite.h \
	tests/fork_child.h tests/free_port.h \
	tests/fuzz_file.h tests/gallery_ini.h tests/gallery_json.h tests/gallery_nifti.h \
	tests/gallery_plugin.h tests/gallery_safetensors.h tests/golden_program.h tests/graphs.h \
	tests/guarded.h tests/kernel_trial.h tests/nifti_maker.h tests/op_table.h tests/pause.h \
	tests/process_state.h tests/processes.h tests/proxy.h tests/ranks.h tests/root.h \
	tests/run_json.h tests/run_modes.h tests/run_pons.h tests/soak.h tests/spoil.h \
	tests/suite.h tests/tiny_run.h tests/tolerance.h tests/units.h tests/written_run.h
EXTRA_DIST += $(TEST_INCLUDES) tests/checks.sh tests/own_build.sh tests/patience.sh tests/scratch.sh tests/golden

# Programs link the tests' libpons, which exports every symbol of the core under the soname of the
# installed one, so that plugins which a test loads bind to the test's copy.
check_LTLIBRARIES += tests/libpons.la
tests_libpons_la_SOURCES =
tests_libpons_la_LIBADD = libcore.la
tests_libpons_la_LDFLAGS = -rpath $(libdir) -version-info 1:0:0
LDADD = tests/libpons.la $(CHECK_LIBS)
DEVICE_LDADD = libcpudevice.la $(LDADD) $(OPENMP_CFLAGS)

# Plugins for tests are modules outside of every plugin folder.
MODULE_FLAGS = -module -avoid-version -shared -rpath /nowhere

# In the order in which they run: those that wait for deadlines begin first, so that others fill their
# pauses.
include tests/comms.mk
include tests/launch.mk
include tests/dist.mk
include tests/faults.mk
include tests/base.mk
include tests/graph.mk
include tests/program.mk
include tests/device.mk
include tests/data.mk
include tests/train.mk
include tests/plugins.mk

$(filter tests/plugins/%,$(check_LTLIBRARIES)): private AM_LDFLAGS = $(MODULE_FLAGS)

.PHONY: list-tests
list-tests:
	@echo $(TESTS)

check_PROGRAMS += $(PROGRAM_TESTS)
TESTS += $(SCRIPT_TESTS) $(PROGRAM_TESTS)
EXTRA_DIST += $(SCRIPT_TESTS)
