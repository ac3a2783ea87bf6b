# Files of core/bench.
libcore_la_SOURCES += core/bench/measure.c core/bench/measure.h core/bench/measure_data.c \
	core/bench/measure_data.h core/bench/measure_kernels.c core/bench/measure_peak.c \
	core/bench/measure_sums.c core/bench/memory_estimate.c core/bench/memory_estimate.h \
	core/bench/rate_curve.c core/bench/rate_curve.h \
	core/bench/rate_measure.c core/bench/rate_measure.h core/bench/scaling_model.c \
	core/bench/scaling_model.h core/bench/training_cases.c core/bench/training_cases.h
