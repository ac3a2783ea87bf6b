# Tests of plugins. A sanitizer build has undefined symbols that -z defs would refuse.
SCRIPT_TESTS += tests/check_outside.sh
EXTRA_DIST += tests/outside/Makefile tests/outside/outside.ini \
	tests/outside/branches.c tests/outside/power.c tests/outside/unit.c tests/outside/box_mean.c \
	tests/outside/gamma_shift.c tests/outside/lines.c
