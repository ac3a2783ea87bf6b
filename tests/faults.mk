# Tests of what a run survives: slow and failing disks, kills, signals, stops, damaged numbers.
#
# 'make soak' runs the programs in SOAK_TESTS at the sizes of a release; each asks soak.h for its own.
SOAK_TESTS += tests/check_checkpoint tests/check_disk tests/check_kill tests/check_stops
PROGRAM_TESTS += tests/check_disk tests/check_kill tests/check_nonfinite tests/check_power \
	tests/check_saving tests/check_stops

check_LTLIBRARIES += tests/plugins/disk_shim.la
tests_plugins_disk_shim_la_SOURCES = tests/disk_shim.c
tests_check_saving_DEPENDENCIES = tests/libpons.la tests/plugins/disk_shim.la
tests_check_stops_DEPENDENCIES = tests/libpons.la tests/plugins/alarm.la

# Its shim stands in front of the C library: the symbols must be seen by the tests' libpons.
tests_check_disk_SOURCES = tests/check_disk.c tests/disk_shim.c
tests_check_disk_LDFLAGS = -export-dynamic
tests_check_disk_CPPFLAGS = $(AM_CPPFLAGS)
tests_check_power_SOURCES = tests/check_power.c tests/disk_shim.c
tests_check_power_LDFLAGS = -export-dynamic
tests_check_power_CPPFLAGS = $(AM_CPPFLAGS)

tests_check_nonfinite_DEPENDENCIES = tests/libpons.la tests/plugins/poison.la \
	tests/plugins/unsound.la
check_LTLIBRARIES += tests/plugins/poison.la tests/plugins/unsound.la

soak:
	SOAK=yes $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(SOAK_TESTS)'
.PHONY: soak
