# Tests of train.
check_PROGRAMS += tests/check_safetensors
TESTS += tests/check_safetensors
tests_check_safetensors_SOURCES = tests/check_safetensors.c
tests_check_safetensors_LDADD = libcore.la $(CHECK_LIBS)
