# Tests of train.
check_PROGRAMS += tests/check_safetensors
TESTS += tests/check_safetensors
tests_check_safetensors_SOURCES = tests/check_safetensors.c
tests_check_safetensors_LDADD = libcore.la $(CHECK_LIBS)
check_PROGRAMS += tests/check_metric tests/check_window
TESTS += tests/check_metric tests/check_window
tests_check_metric_SOURCES = tests/check_metric.c
tests_check_metric_LDADD = libcore.la $(CHECK_LIBS)
tests_check_window_SOURCES = tests/check_window.c
tests_check_window_LDADD = libcore.la $(CHECK_LIBS)
