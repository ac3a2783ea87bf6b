# Files of core/checkpoint.
libcore_la_SOURCES += core/checkpoint/checkpoint.c core/checkpoint/checkpoint.h \
	core/checkpoint/run_folds.c core/checkpoint/run_folds.h core/checkpoint/safetensors.c \
	core/checkpoint/safetensors.h core/checkpoint/saved_state.c \
	core/checkpoint/saved_state.h core/checkpoint/tensor_names.c core/checkpoint/tensor_names.h \
	core/checkpoint/weights/weights_convert.c core/checkpoint/weights/weights_convert.h \
	core/checkpoint/weights/weights_file.c core/checkpoint/weights/weights_file.h \
	core/checkpoint/weights/weights_path.c core/checkpoint/weights/weights_path.h \
	core/checkpoint/torch/pickle.c core/checkpoint/torch/pickle.h \
	core/checkpoint/torch/pickle_names.c core/checkpoint/torch/pickle_names.h \
	core/checkpoint/torch/torch_file.c core/checkpoint/torch/torch_file.h \
	core/checkpoint/torch/torch_value.c core/checkpoint/torch/torch_value.h \
	core/checkpoint/torch/torch_write.c core/checkpoint/torch/torch_write.h \
	core/checkpoint/torch/zip_archive.c core/checkpoint/torch/zip_archive.h \
	core/checkpoint/torch/zip_writer.c core/checkpoint/torch/zip_writer.h
