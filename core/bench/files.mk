# Files of core/bench.
libcore_la_SOURCES += core/bench/measure.c core/bench/measure.h core/bench/measure_data.c \
	core/bench/measure_data.h core/bench/measure_kernels.c core/bench/measure_peak.c \
	core/bench/measure_sums.c core/bench/memory_estimate.c core/bench/memory_estimate.h \
	core/bench/scaling_model.c core/bench/scaling_model.h
