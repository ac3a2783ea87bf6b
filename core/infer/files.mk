# Files of core/infer.
libcore_la_SOURCES += core/infer/activation.c core/infer/activation.h \
	core/infer/classifier.c core/infer/classifier.h \
	core/infer/device_accumulator.c core/infer/device_accumulator.h \
	core/infer/diffusion_sampler.c core/infer/diffusion_sampler.h core/infer/heat_map.c \
	core/infer/heat_map.h core/infer/infer_internal.h \
	core/infer/predict.c core/infer/predict.h core/infer/predict_classification.c core/infer/predict_foreign.c \
	core/infer/predict_members.c core/infer/predict_members.h core/infer/predict_memory.c \
	core/infer/predict_memory.h core/infer/predict_previous.c \
	core/infer/predict_run.c core/infer/predict_synthesis.c \
	core/infer/predict_slide.c core/infer/predict_slide.h \
	core/infer/restore_grid.c core/infer/uncertainty.c \
	core/infer/window_scheduler.c core/infer/window_scheduler.h
