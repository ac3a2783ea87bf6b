# Tests of what a run survives: slow and failing disks, kills, signals, stops, damaged numbers.
#
# 'make soak' runs the programs in SOAK_TESTS at the sizes of a release; each asks soak.h for its own.
SOAK_TESTS = tests/check_checkpoint

check_LTLIBRARIES += tests/plugins/disk_shim.la
tests_plugins_disk_shim_la_SOURCES = tests/disk_shim.c tests/disk_shim.h
tests_plugins_disk_shim_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

check_PROGRAMS += tests/check_saving
tests_check_saving_SOURCES = tests/check_saving.c tests/run_pons.h tests/tiny_run.h
tests_check_saving_LDADD = $(TEST_LDADD)
tests_check_saving_DEPENDENCIES = tests/libpons.la tests/plugins/disk_shim.la
TESTS += tests/check_saving

check_PROGRAMS += tests/check_stops
tests_check_stops_SOURCES = tests/check_stops.c tests/run_pons.h tests/soak.h tests/tiny_run.h
tests_check_stops_LDADD = $(TEST_LDADD)
tests_check_stops_DEPENDENCIES = tests/libpons.la tests/plugins/alarm.la
TESTS += tests/check_stops
SOAK_TESTS += tests/check_stops

# Its shim stands in front of the C library: the symbols must be seen by the tests' libpons.
check_PROGRAMS += tests/check_disk
tests_check_disk_SOURCES = tests/check_disk.c tests/disk_shim.c tests/disk_shim.h tests/run_pons.h \
	tests/soak.h tests/tiny_run.h
tests_check_disk_LDADD = $(TEST_LDADD)
tests_check_disk_LDFLAGS = -export-dynamic
tests_check_disk_CPPFLAGS = $(AM_CPPFLAGS)
TESTS += tests/check_disk
SOAK_TESTS += tests/check_disk

check_PROGRAMS += tests/check_power
tests_check_power_SOURCES = tests/check_power.c tests/disk_shim.c tests/disk_shim.h \
	tests/run_pons.h tests/soak.h tests/tiny_run.h
tests_check_power_LDADD = $(TEST_LDADD)
tests_check_power_LDFLAGS = -export-dynamic
tests_check_power_CPPFLAGS = $(AM_CPPFLAGS)
TESTS += tests/check_power

check_PROGRAMS += tests/check_kill
tests_check_kill_SOURCES = tests/check_kill.c tests/run_pons.h tests/soak.h tests/tiny_run.h
tests_check_kill_LDADD = $(TEST_LDADD)
TESTS += tests/check_kill
SOAK_TESTS += tests/check_kill

check_PROGRAMS += tests/check_nonfinite
tests_check_nonfinite_SOURCES = tests/check_nonfinite.c tests/finite.h tests/run_pons.h tests/tiny_run.h
tests_check_nonfinite_LDADD = $(TEST_LDADD)
tests_check_nonfinite_DEPENDENCIES = tests/libpons.la tests/plugins/poison.la tests/plugins/unsound.la
TESTS += tests/check_nonfinite
check_LTLIBRARIES += tests/plugins/poison.la tests/plugins/unsound.la
tests_plugins_poison_la_SOURCES = tests/plugins/poison.c
tests_plugins_poison_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_plugins_unsound_la_SOURCES = tests/plugins/unsound.c
tests_plugins_unsound_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

soak:
	SOAK=yes $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(SOAK_TESTS)'
.PHONY: soak
