# Tests of graph.

check_PROGRAMS += tests/check_fuse
tests_check_fuse_SOURCES = tests/check_fuse.c tests/graphs.h
tests_check_fuse_LDADD = $(TEST_LDADD)
TESTS += tests/check_fuse

check_PROGRAMS += tests/check_gradient
tests_check_gradient_SOURCES = tests/check_gradient.c tests/op_table.c tests/op_table.h \
	tests/evaluate.c tests/evaluate.h tests/suite.h tests/tolerance.h
tests_check_gradient_LDADD = $(TEST_LDADD)
tests_check_gradient_DEPENDENCIES = tests/libpons.la $(OP_MODULES)
TESTS += tests/check_gradient

check_PROGRAMS += tests/check_op
tests_check_op_SOURCES = tests/check_op.c tests/gallery_plugin.h tests/suite.h tests/tolerance.h
tests_check_op_LDADD = $(TEST_LDADD)
tests_check_op_DEPENDENCIES = tests/libpons.la $(OP_MODULES)
TESTS += tests/check_op

check_PROGRAMS += tests/check_reference
tests_check_reference_SOURCES = tests/check_reference.c tests/evaluate.c tests/evaluate.h \
	tests/suite.h tests/tolerance.h tests/golden/operations.h
tests_check_reference_LDADD = $(TEST_LDADD)
TESTS += tests/check_reference
EXTRA_DIST += tests/golden/operations.py

check_PROGRAMS += tests/check_graph
tests_check_graph_SOURCES = tests/check_graph.c tests/suite.h
tests_check_graph_LDADD = $(TEST_LDADD)
TESTS += tests/check_graph

check_PROGRAMS += tests/check_device_table
tests_check_device_table_SOURCES = tests/check_device_table.c tests/op_table.c tests/op_table.h \
	tests/evaluate.c tests/evaluate.h tests/suite.h tests/tolerance.h
tests_check_device_table_LDADD = $(DEVICE_LDADD)
tests_check_device_table_DEPENDENCIES = libcpudevice.la tests/libpons.la $(OP_MODULES)
tests_check_device_table_LDFLAGS = $(OPENMP_CFLAGS)
TESTS += tests/check_device_table

# Prints; run by hand.
check_PROGRAMS += tests/bench_ops
tests_bench_ops_SOURCES = tests/bench_ops.c tests/op_table.c tests/op_table.h tests/evaluate.c \
	tests/evaluate.h
tests_bench_ops_LDADD = $(DEVICE_LDADD)
tests_bench_ops_DEPENDENCIES = libcpudevice.la tests/libpons.la $(OP_MODULES)
tests_bench_ops_LDFLAGS = $(OPENMP_CFLAGS)

EXTRA_DIST += tests/golden/losses.json tests/golden/losses.safetensors \
	tests/golden/networks.json tests/golden/networks.safetensors
