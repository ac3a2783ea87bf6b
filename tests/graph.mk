# Tests of graph.
PROGRAM_TESTS += tests/check_device_table tests/check_fuse tests/check_gradient tests/check_graph \
	tests/check_op tests/check_reference
tests_check_gradient_SOURCES = tests/check_gradient.c tests/op_table.c tests/evaluate.c
tests_check_gradient_DEPENDENCIES = tests/libpons.la $(OP_MODULES)
tests_check_op_DEPENDENCIES = tests/libpons.la $(OP_MODULES)
tests_check_reference_SOURCES = tests/check_reference.c tests/evaluate.c
tests_check_device_table_SOURCES = tests/check_device_table.c tests/op_table.c tests/evaluate.c
tests_check_device_table_LDADD = $(DEVICE_LDADD)
tests_check_device_table_DEPENDENCIES = libcpudevice.la tests/libpons.la $(OP_MODULES)

# Prints; run by hand.
check_PROGRAMS += tests/bench_ops
tests_bench_ops_SOURCES = tests/bench_ops.c tests/op_table.c tests/evaluate.c
tests_bench_ops_LDADD = $(DEVICE_LDADD)
tests_bench_ops_DEPENDENCIES = libcpudevice.la tests/libpons.la $(OP_MODULES)
