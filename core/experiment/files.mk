# Files of core/experiment.
libcore_la_SOURCES += core/experiment/agreement.c core/experiment/agreement.h \
	core/experiment/case_list.c core/experiment/case_list.h core/experiment/class_weights.c \
	core/experiment/class_weights.h core/experiment/data_settings.c \
	core/experiment/data_settings.h core/experiment/experiment.c core/experiment/experiment.h \
	core/experiment/experiment_axes.c core/experiment/experiment_devices.c \
	core/experiment/experiment_internal.h core/experiment/experiment_remarks.c \
	core/experiment/experiment_task.c \
	core/experiment/experiment_window.c \
	core/experiment/processes.c core/experiment/processes.h core/experiment/provenance.c \
	core/experiment/provenance.h core/experiment/resolved.c core/experiment/resolved.h \
	core/experiment/resume.c core/experiment/resume.h core/experiment/run_identity.c \
	core/experiment/run_identity.h core/experiment/tuning.c core/experiment/tuning.h
