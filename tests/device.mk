# Tests of device.

DEVICE_LDADD = libcpudevice.la $(TEST_LDADD)
check_PROGRAMS += tests/check_lane tests/check_map
tests_check_lane_SOURCES = tests/check_lane.c
tests_check_lane_LDADD = $(DEVICE_LDADD)
tests_check_lane_LDFLAGS = $(OPENMP_CFLAGS)
tests_check_map_SOURCES = tests/check_map.c
tests_check_map_LDADD = $(DEVICE_LDADD)
tests_check_map_LDFLAGS = $(OPENMP_CFLAGS)
TESTS += tests/check_lane tests/check_map
EXTRA_PROGRAMS += tests/bench_map
tests_bench_map_SOURCES = tests/bench_map.c
tests_bench_map_LDADD = $(DEVICE_LDADD)
tests_bench_map_LDFLAGS = $(OPENMP_CFLAGS)
check_PROGRAMS += tests/check_direct
tests_check_direct_SOURCES = tests/check_direct.c tests/kernel_trial.c tests/kernel_trial.h
tests_check_direct_LDADD = $(DEVICE_LDADD)
tests_check_direct_LDFLAGS = $(OPENMP_CFLAGS)
TESTS += tests/check_direct
EXTRA_PROGRAMS += tests/bench_kernels
tests_bench_kernels_SOURCES = tests/bench_kernels.c
tests_bench_kernels_LDADD = $(DEVICE_LDADD)
tests_bench_kernels_LDFLAGS = $(OPENMP_CFLAGS)
