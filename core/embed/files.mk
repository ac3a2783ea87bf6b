# Files of core/embed: the functions of pons/predict.h and pons/train.h.
libcore_la_SOURCES += core/embed/embed_call.c core/embed/embed_internal.h core/embed/image.c core/embed/image.h \
	core/embed/predictor.c core/embed/training.c
