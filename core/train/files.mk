# Files of core/train.
libcore_la_SOURCES += core/train/checkpoint_contents.c core/train/checkpoint_contents.h \
	core/train/lr_schedule.c core/train/lr_schedule.h core/train/signals.c core/train/signals.h \
	core/train/trainer.c core/train/trainer.h core/train/trainer_devices.c \
	core/train/trainer_internal.h core/train/trainer_metrics.c core/train/trainer_open.c \
	core/train/trainer_plan.c core/train/trainer_profile.c core/train/trainer_ranks.c \
	core/train/trainer_save.c core/train/trainer_validate.c
