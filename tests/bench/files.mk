# Programs that time kernels, run by hand, and tests that count instructions.
check_PROGRAMS += %D%/bench_cpu_kernels %D%/bench_few_channels %D%/bench_map %D%/bench_ops %D%/count_kernels
%C%_bench_cpu_kernels_LDADD = $(DEVICE_LDADD)
%C%_bench_few_channels_LDADD = $(DEVICE_LDADD)
%C%_bench_map_LDADD = $(DEVICE_LDADD)
%C%_bench_ops_LDADD = $(DEVICE_LDADD)
EXTRA_%C%_bench_ops_DEPENDENCIES = $(OP_MODULES)
%C%_count_kernels_SOURCES = %D%/count_kernels.c %D%/step_counter.c %D%/step_counter.h
%C%_count_kernels_LDADD = $(DEVICE_LDADD)
SCRIPT_TESTS += %D%/check_benches.sh %D%/check_counts.sh %D%/check_peers.sh %D%/check_steps.sh
EXTRA_DIST += %D%/bench_arguments.h %D%/bench_clock.h %D%/counts %D%/counts.sh %D%/counts_avx512bf16
