# Tests of training, prediction, evaluation and measurement.
PROGRAM_TESTS += %D%/check_bench %D%/check_diffusion %D%/check_diffusion_nodes \
	%D%/check_evaluation %D%/check_fold_networks %D%/check_froc %D%/check_metric %D%/check_metrics_resume \
	%D%/check_mixing %D%/check_mlflow %D%/check_nnunet_model %D%/check_peak %D%/check_predict %D%/check_profile \
	%D%/check_rate_curve \
	%D%/check_records %D%/check_resume %D%/check_memory_limit %D%/check_scaling_model %D%/check_schedule %D%/check_steady \
	%D%/check_surface_distance %D%/check_tensorboard %D%/check_wandb \
	%D%/check_window_blend
%C%_check_bench_LDADD = $(DEVICE_LDADD)
%C%_check_records_LDADD = libevents.la libwandb_records.la $(LDADD)
EXTRA_%C%_check_records_DEPENDENCIES = tests/plugins/alarm.la tests/plugins/sink_refuses.la
EXTRA_%C%_check_steady_DEPENDENCIES = tests/plugins/slow_patch.la tests/plugins/slow_step.la
%C%_check_profile_LDADD = $(LDADD) -lm
%C%_check_tensorboard_LDADD = libevents.la $(LDADD)
%C%_check_wandb_LDADD = libwandb_records.la $(LDADD)
%C%_check_steady_LDADD = $(LDADD) -lm
