# Files of core/evaluate.
libcore_la_SOURCES += core/evaluate/evaluate.c core/evaluate/evaluate.h \
	core/evaluate/evaluate_run.c core/evaluate/evaluate_run.h core/evaluate/validation.c \
	core/evaluate/validation.h
