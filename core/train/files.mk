# Files of core/train.
libcore_la_SOURCES += core/train/checkpoint.c core/train/checkpoint.h core/train/metric.c \
	core/train/metric.h core/train/safetensors.c core/train/safetensors.h \
	core/train/schedule.c core/train/schedule.h core/train/window.c \
	core/train/window.h
