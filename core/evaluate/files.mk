# Files of core/evaluate.
libcore_la_SOURCES += core/evaluate/classification_score.c core/evaluate/classification_score.h \
	core/evaluate/decisions.c core/evaluate/decisions.h
libcore_la_SOURCES += core/evaluate/comparison/comparison.c core/evaluate/comparison/comparison.h \
	core/evaluate/comparison/comparison_json.c core/evaluate/evaluation.c core/evaluate/evaluation.h \
	core/evaluate/evaluation_csv.c core/evaluate/evaluation_folds.c \
	core/evaluate/evaluation_images.c core/evaluate/evaluation_interval.c \
	core/evaluate/evaluation_json.c core/evaluate/evaluation_run.c \
	core/evaluate/evaluation_run.h core/evaluate/evaluation_summary.c core/evaluate/evaluation_table.c \
	core/evaluate/slide_detection.c core/evaluate/slide_detection.h \
	core/evaluate/slide_detection_print.c \
	core/evaluate/synthesis_score.c core/evaluate/synthesis_score.h core/evaluate/validation.c \
	core/evaluate/validation.h core/evaluate/validation_loss.c core/evaluate/validation_loss.h \
	core/evaluate/value_text.c core/evaluate/value_text.h
