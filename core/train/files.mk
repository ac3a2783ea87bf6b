# Files of core/train.
libcore_la_SOURCES += core/train/safetensors.h core/train/safetensors.c
