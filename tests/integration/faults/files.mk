# Tests of faults that a run survives: slow and failing disks, kills, signals, stops, non-finite values.
# Whole trainings on several ranks:
PROGRAM_TESTS += %D%/check_endurance %D%/check_ranks %D%/check_out_of_memory %D%/check_slow %D%/check_trouble
SOAK_TESTS += %D%/check_endurance %D%/check_ranks %D%/check_out_of_memory %D%/check_slow
%C%_check_endurance_LDADD = $(LDADD) -lm
EXTRA_%C%_check_out_of_memory_DEPENDENCIES = tests/plugins/limit.la tests/plugins/smaller.la
EXTRA_%C%_check_ranks_DEPENDENCIES = tests/plugins/disk_shim.la tests/plugins/held.la
%C%_check_trouble_LDADD = $(LDADD) -lm
EXTRA_%C%_check_trouble_DEPENDENCIES = tests/plugins/trouble.la tests/plugins/poison.la tests/plugins/unsound.la
if HAVE_GLOO
PROGRAM_TESTS += %D%/check_network
SOAK_TESTS += %D%/check_network
endif

PROGRAM_TESTS += %D%/check_disk %D%/check_kill %D%/check_nonfinite %D%/check_power %D%/check_stops
SOAK_TESTS += %D%/check_disk %D%/check_kill %D%/check_stops
EXTRA_%C%_check_stops_DEPENDENCIES = tests/plugins/alarm.la
EXTRA_%C%_check_nonfinite_DEPENDENCIES = tests/plugins/poison.la tests/plugins/unsound.la

# The symbols of the shim must replace those of the tests' libpons. The separate flags give each program its
# own object of it.
%C%_check_disk_SOURCES = %D%/check_disk.c $(DISK_SHIM)
%C%_check_disk_LDFLAGS = -export-dynamic
%C%_check_disk_CPPFLAGS = $(AM_CPPFLAGS)
%C%_check_power_SOURCES = %D%/check_power.c $(DISK_SHIM)
%C%_check_power_LDFLAGS = -export-dynamic
%C%_check_power_CPPFLAGS = $(AM_CPPFLAGS)
