# Files of core/train.
libcore_la_SOURCES += core/train/activation.c core/train/activation.h \
	core/train/best.c core/train/best.h core/train/case_record.c core/train/case_record.h \
	core/train/checkpoint.c core/train/checkpoint.h core/train/components.c \
	core/train/components.h core/train/evaluate.c core/train/evaluate.h \
	core/train/evaluate_run.c core/train/evaluate_run.h core/train/experiment.c \
	core/train/experiment_devices.c core/train/experiment_parts.h core/train/feed.c \
	core/train/replicas.c \
	core/train/replicas.h \
	core/train/experiment.h core/train/forecast.c core/train/forecast.h core/train/interrupt.c \
	core/train/interrupt.h core/train/measure.c core/train/measure.h \
	core/train/measure_kernels.c core/train/measure_limits.c core/train/metric.c \
	core/train/metric.h core/train/model_axes.c core/train/network.c core/train/network.h \
	core/train/predict.c core/train/predict.h core/train/predict_back.c \
	core/train/predict_parts.h core/train/predict_run.c core/train/provenance.c \
	core/train/provenance.h core/train/resolved.c core/train/resolved.h core/train/safetensors.c \
	core/train/safetensors.h core/train/schedule.c core/train/schedule.h core/train/trainer.c \
	core/train/trainer.h core/train/trainer_state.c core/train/trainer_state.h \
	core/train/saved_state.c core/train/saved_state.h core/train/resume.c core/train/resume.h \
	core/train/validation.c core/train/validation.h core/train/weights.c core/train/weights.h \
	core/train/spread.c core/train/spread.h core/train/stitch.h core/train/window.c \
	core/train/window.h
libcore_la_SOURCES += core/train/trainer_open.c core/train/trainer_parts.h core/train/trainer_plan.c \
	core/train/trainer_save.c core/train/trainer_validate.c core/train/trainer_devices.c \
	core/train/trainer_metrics.c
libcore_la_SOURCES += core/train/plugin_nodes.c core/train/plugin_nodes.h
libcore_la_SOURCES += core/train/patch_nodes.c core/train/patch_nodes.h core/train/held_cases.c
libcore_la_SOURCES += core/train/held_sums.c core/train/held_sums.h core/train/window_nodes.c \
	core/train/window_nodes.h core/train/experiment_window.c
libcore_la_SOURCES += core/train/measure_data.c core/train/measure_data.h
libcore_la_SOURCES += core/train/snapshot.c core/train/snapshot.h
libcore_la_SOURCES += core/train/predict_foreign.c
libcore_la_SOURCES += core/train/id_areas.c core/train/id_areas.h

# Loops over voxels.
libvoxels_la_SOURCES += core/train/stitch.c
libcore_la_SOURCES += core/train/tuning.c core/train/tuning.h
libcore_la_SOURCES += core/train/trace.c core/train/trace.h core/train/scaling.c core/train/scaling.h \
	core/train/measure_sums.c
libcore_la_SOURCES += core/train/agreement.c core/train/agreement.h core/train/processes.c \
	core/train/processes.h core/train/trainer_ranks.c
