# Shared code of the tests: a library, from which the linker takes the objects that a program names.
check_LTLIBRARIES += tests/libsupport.la
tests_libsupport_la_SOURCES = %D%/asserts.h %D%/dataset_maker.c %D%/dataset_maker.h \
	%D%/process/disk_preload.c %D%/process/disk_preload.h %D%/process/disk_shim.h \
	%D%/finite_weights.c %D%/finite_weights.h %D%/guarded.c %D%/guarded.h %D%/must.h \
	%D%/nifti_maker.c %D%/nifti_maker.h %D%/pause.c %D%/pause.h \
	%D%/root.c %D%/root.h %D%/soak.c %D%/soak.h %D%/spoil.c %D%/spoil.h %D%/suite.c %D%/suite.h \
	%D%/tolerance.h %D%/tree_maker.c %D%/tree_maker.h
tests_libsupport_la_SOURCES += %D%/data/golden_arrays.c %D%/data/golden_arrays.h \
	%D%/data/golden_file.c %D%/data/golden_file.h \
	%D%/data/opened_cache.c %D%/data/opened_cache.h \
	%D%/data/slide_maker.c %D%/data/slide_maker.h \
	%D%/data/torch_maker.c %D%/data/torch_maker.h \
	%D%/data/whole_resample.c %D%/data/whole_resample.h
tests_libsupport_la_SOURCES += %D%/process/decimal_comma.c %D%/process/decimal_comma.h \
	%D%/process/fork_child.c %D%/process/fork_child.h \
	%D%/process/free_port.c %D%/process/free_port.h %D%/process/gathering.c \
	%D%/process/gathering.h %D%/process/http_stub.c %D%/process/http_stub.h %D%/process/process_state.c \
	%D%/process/process_state.h %D%/process/proxy.c %D%/process/proxy.h %D%/process/shared_table.c \
	%D%/process/shared_table.h
tests_libsupport_la_SOURCES += %D%/run/comm_suite.c %D%/run/comm_suite.h %D%/run/comm_trial.c \
	%D%/run/comm_trial.h %D%/run/ranks.c %D%/run/ranks.h %D%/run/run_json.c %D%/run/run_json.h \
	%D%/run/run_modes.c %D%/run/run_modes.h %D%/run/run_pons.c %D%/run/run_pons.h %D%/run/sink_plugin.c %D%/run/sink_plugin.h %D%/run/tiny_run.c \
	%D%/run/tiny_run.h %D%/run/written_run.c %D%/run/written_run.h
tests_libsupport_la_SOURCES += %D%/graph/card_trial.c %D%/graph/card_trial.h \
	%D%/graph/convolution_trial.c %D%/graph/convolution_trial.h %D%/graph/convolutions.c \
	%D%/graph/convolutions.h %D%/graph/descent.c %D%/graph/descent.h %D%/graph/evaluate_nodes.c \
	%D%/graph/evaluate_nodes.h %D%/graph/fakes.c %D%/graph/fakes.h %D%/graph/golden_formula.c \
	%D%/graph/golden_formula.h %D%/graph/golden_program.c \
	%D%/graph/golden_program.h %D%/graph/graphs.c %D%/graph/graphs.h %D%/graph/kernel_trial.c \
	%D%/graph/kernel_trial.h %D%/graph/op_table.c %D%/graph/op_table.h %D%/graph/units.c \
	%D%/graph/units.h
# The modes of golden cases are those of golden_modes.c; some programs list golden_modes_cuda.c instead.
tests_libsupport_la_SOURCES += %D%/graph/golden_modes.c
tests_libsupport_la_LIBADD = $(ZLIB_LIBS)
EXTRA_DIST += %D%/checks.sh %D%/small_unet.sh %D%/idx.sh %D%/graph/golden_modes_cuda.c

# The disk shim stands in front of the C library: a module for programs that a test starts, and an object of tests.
check_LTLIBRARIES += tests/plugins/disk_shim.la
tests_plugins_disk_shim_la_SOURCES = %D%/process/disk_shim.c
DISK_SHIM = %D%/process/disk_shim.c

# make_slide writes whole-slide images for shell tests.
check_PROGRAMS += %D%/data/make_slide
%C%_data_make_slide_LDADD = tests/libsupport.la
