# Files of core/train.
libcore_la_SOURCES += core/train/safetensors.h core/train/safetensors.c
libcore_la_SOURCES += core/train/metric.h core/train/metric.c core/train/window.h core/train/window.c
