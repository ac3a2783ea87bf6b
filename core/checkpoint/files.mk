# Files of core/checkpoint.
libcore_la_SOURCES += core/checkpoint/checkpoint.c core/checkpoint/checkpoint.h \
	core/checkpoint/run_folds.c core/checkpoint/run_folds.h core/checkpoint/safetensors.c \
	core/checkpoint/safetensors.h core/checkpoint/saved_state.c \
	core/checkpoint/saved_state.h core/checkpoint/tensor_names.c core/checkpoint/tensor_names.h
