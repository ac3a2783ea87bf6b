# Tests of train.
check_PROGRAMS += tests/check_checkpoint tests/check_metric tests/check_predict \
	tests/check_resume tests/check_safetensors tests/check_window
tests_check_checkpoint_SOURCES = tests/check_checkpoint.c
tests_check_checkpoint_LDADD = $(TEST_LDADD)
tests_check_metric_SOURCES = tests/check_metric.c
tests_check_metric_LDADD = $(TEST_LDADD)
tests_check_predict_SOURCES = tests/check_predict.c tests/run_json.h tests/run_pons.h
tests_check_predict_LDADD = $(TEST_LDADD)
tests_check_resume_SOURCES = tests/check_resume.c tests/run_pons.h
tests_check_resume_LDADD = $(TEST_LDADD)
tests_check_safetensors_SOURCES = tests/check_safetensors.c tests/fuzz_file.h \
	tests/fuzz_safetensors.c tests/gallery_safetensors.h
tests_check_safetensors_LDADD = $(TEST_LDADD)
tests_check_window_SOURCES = tests/check_window.c
tests_check_window_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/check_peak
tests_check_peak_SOURCES = tests/check_peak.c
tests_check_peak_LDADD = $(TEST_LDADD)
TESTS += tests/check_peak
check_PROGRAMS += tests/check_schedule
tests_check_schedule_SOURCES = tests/check_schedule.c tests/run_json.h tests/run_pons.h
tests_check_schedule_LDADD = $(TEST_LDADD)
TESTS += tests/check_schedule
TESTS += tests/check_checkpoint tests/check_metric tests/check_predict tests/check_resume \
	tests/check_safetensors tests/check_window
EXTRA_DIST += tests/golden
TESTS += tests/check_options.sh
EXTRA_DIST += tests/check_options.sh tests/options
check_PROGRAMS += tests/check_records
tests_check_records_SOURCES = tests/check_records.c tests/run_pons.h
tests_check_records_LDADD = $(TEST_LDADD)
tests_check_records_DEPENDENCIES = tests/libpons.la tests/plugins/alarm.la
check_LTLIBRARIES += tests/plugins/alarm.la
tests_plugins_alarm_la_SOURCES = tests/plugins/alarm.c
tests_plugins_alarm_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
TESTS += tests/check_records
check_PROGRAMS += tests/check_bench
tests_check_bench_SOURCES = tests/check_bench.c tests/run_json.h tests/run_pons.h
tests_check_bench_LDADD = $(DEVICE_LDADD)
tests_check_bench_LDFLAGS = $(OPENMP_CFLAGS)
TESTS += tests/check_bench

check_PROGRAMS += tests/check_modes
tests_check_modes_SOURCES = tests/check_modes.c tests/run_modes.h tests/run_pons.h
tests_check_modes_LDADD = $(TEST_LDADD)
TESTS += tests/check_modes
check_PROGRAMS += tests/check_spread
tests_check_spread_SOURCES = tests/check_spread.c tests/run_pons.h
tests_check_spread_LDADD = $(TEST_LDADD)
TESTS += tests/check_spread
check_PROGRAMS += tests/check_ddp
tests_check_ddp_SOURCES = tests/check_ddp.c tests/run_modes.h tests/run_pons.h
tests_check_ddp_LDADD = $(TEST_LDADD)
tests_check_ddp_DEPENDENCIES = tests/libpons.la tests/plugins/rank_key.la
check_LTLIBRARIES += tests/plugins/rank_key.la
tests_plugins_rank_key_la_SOURCES = tests/plugins/rank_key.c
tests_plugins_rank_key_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
TESTS += tests/check_ddp

check_PROGRAMS += tests/check_room
tests_check_room_SOURCES = tests/check_room.c
tests_check_room_LDADD = $(TEST_LDADD)
TESTS += tests/check_room
