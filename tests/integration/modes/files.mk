# Tests of whole runs, which have the same bits in every mode.
PROGRAM_TESTS += %D%/check_ddp %D%/check_modes %D%/check_slide_map %D%/check_window_scheduler
SCRIPT_TESTS += %D%/check_augment_bits.sh %D%/check_best.sh \
	%D%/check_classification.sh %D%/check_deep.sh %D%/check_device_cache.sh \
	%D%/check_dropout_passes.sh %D%/check_folds.sh %D%/check_jobs.sh \
	%D%/check_mixing.sh %D%/check_picture_runs.sh %D%/check_smart_cache.sh \
	%D%/check_synthesis.sh
EXTRA_%C%_check_ddp_DEPENDENCIES = tests/plugins/rank_key.la tests/plugins/gloo.la
