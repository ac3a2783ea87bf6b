# Tests of train.
PROGRAM_TESTS += tests/check_bench tests/check_checkpoint tests/check_contract tests/check_ddp \
	tests/check_metric tests/check_metrics_resume tests/check_modes tests/check_patch_nodes tests/check_peak \
	tests/check_predict tests/check_records tests/check_resume tests/check_room \
	tests/check_safetensors tests/check_schedule tests/check_spread tests/check_steady tests/check_window
SCRIPT_TESTS += tests/check_device_cache.sh tests/check_old_runs.sh tests/check_options.sh
EXTRA_DIST += tests/old_runs.sh tests/options
tests_check_bench_LDADD = $(DEVICE_LDADD)
tests_check_safetensors_SOURCES = tests/check_safetensors.c tests/fuzz_safetensors.c

tests_check_records_DEPENDENCIES = tests/libpons.la tests/plugins/alarm.la
check_LTLIBRARIES += tests/plugins/alarm.la

tests_check_steady_DEPENDENCIES = tests/libpons.la tests/plugins/slow_patch.la tests/plugins/slow_step.la
tests_check_steady_LDADD = $(LDADD) -lm
check_LTLIBRARIES += tests/plugins/slow_patch.la tests/plugins/slow_step.la

tests_check_ddp_DEPENDENCIES = tests/libpons.la tests/plugins/rank_key.la tests/plugins/gloo.la
check_LTLIBRARIES += tests/plugins/rank_key.la tests/plugins/gloo.la
tests_plugins_gloo_la_SOURCES = tests/plugins/damaged_gloo.c
tests_check_patch_nodes_LDADD = $(DEVICE_LDADD)
