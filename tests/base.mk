# Tests of base, configuration, plugins and the command line.
PROGRAM_TESTS += tests/check_arena tests/check_config tests/check_config_gallery \
	tests/check_environment tests/check_file tests/check_hash tests/check_integer tests/check_log \
	tests/check_name_index tests/check_parallel tests/check_plugin tests/check_quota tests/check_quote \
	tests/check_random tests/check_start tests/check_text
SCRIPT_TESTS += tests/check_exports.sh tests/check_folders.sh tests/check_settings.sh tests/check_loss_pass.sh \
	tests/check_own_build.sh tests/check_reports.sh tests/cli.sh

SOAK_TESTS += tests/check_plugin
tests_check_plugin_DEPENDENCIES = tests/libpons.la tests/plugins/effect.la
check_LTLIBRARIES += tests/plugins/effect.la

# Ops for tests: one that keeps the rules, and one that breaks one of them at a time.
OP_MODULES = tests/plugins/box_mean.la tests/plugins/odd.la tests/plugins/mute.la \
	tests/plugins/half.la tests/plugins/nine.la
check_LTLIBRARIES += $(OP_MODULES)
tests_plugins_box_mean_la_SOURCES = tests/outside/box_mean.c
tests_plugins_mute_la_SOURCES = tests/plugins/odd.c
tests_plugins_mute_la_CPPFLAGS = $(AM_CPPFLAGS) -DMUTE
tests_plugins_half_la_SOURCES = tests/plugins/odd.c
tests_plugins_half_la_CPPFLAGS = $(AM_CPPFLAGS) -DHALF
tests_plugins_nine_la_SOURCES = tests/plugins/odd.c
tests_plugins_nine_la_CPPFLAGS = $(AM_CPPFLAGS) -DNINE

# Plugins of the other kinds that break a rule of theirs.
BROKEN_MODULES = tests/plugins/crooked.la tests/plugins/dicey.la tests/plugins/stiff.la \
	tests/plugins/late.la tests/plugins/deaf.la tests/plugins/lame.la tests/plugins/stopped.la \
	tests/plugins/silent.la tests/plugins/idle.la tests/plugins/blank.la
check_LTLIBRARIES += $(BROKEN_MODULES)
tests_plugins_dicey_la_SOURCES = tests/plugins/crooked.c
tests_plugins_dicey_la_CPPFLAGS = $(AM_CPPFLAGS) -DRANDOM
tests_plugins_stiff_la_SOURCES = tests/plugins/crooked.c
tests_plugins_stiff_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTIFF
tests_plugins_idle_la_SOURCES = tests/plugins/silent.c
tests_plugins_idle_la_CPPFLAGS = $(AM_CPPFLAGS) -DOPTIMIZER
tests_plugins_blank_la_SOURCES = tests/plugins/silent.c
tests_plugins_blank_la_CPPFLAGS = $(AM_CPPFLAGS) -DMODEL
