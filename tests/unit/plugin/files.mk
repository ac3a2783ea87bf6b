# Tests of core/plugin and of the rules for plugins. A sanitizer build has undefined symbols that -z defs would refuse.
PROGRAM_TESTS += %D%/check_contract %D%/check_op %D%/check_plugin
SCRIPT_TESTS += %D%/check_exports.sh %D%/check_outside.sh
SOAK_TESTS += %D%/check_plugin
EXTRA_%C%_check_op_DEPENDENCIES = $(OP_MODULES)
EXTRA_%C%_check_plugin_DEPENDENCIES = tests/plugins/effect.la
EXTRA_DIST += %D%/exports tests/outside/Makefile tests/outside/outside.ini tests/outside/branches.c tests/outside/power.c \
	tests/outside/unit.c tests/outside/box_mean.c tests/outside/gamma_shift.c \
	tests/outside/host.c tests/outside/levels.c tests/outside/lines.c tests/outside/single.c
