# Tests of base, configuration, plugins and the command line.
#
# TEST_LDADD links the tests' libpons, which exports every symbol of the core under the soname of the
# installed one, so that plugins which a test loads bind to the test's copy.
check_LTLIBRARIES += tests/libpons.la
tests_libpons_la_SOURCES =
tests_libpons_la_LIBADD = libcore.la
tests_libpons_la_LDFLAGS = -rpath $(libdir) -version-info 0:0:0
TEST_LDADD = tests/libpons.la $(CHECK_LIBS)

check_PROGRAMS += tests/check_arena tests/check_file tests/check_hash tests/check_log \
	tests/check_random tests/check_text
tests_check_arena_SOURCES = tests/check_arena.c tests/suite.h
tests_check_arena_LDADD = $(TEST_LDADD)
tests_check_file_SOURCES = tests/check_file.c
tests_check_file_LDADD = $(TEST_LDADD)
tests_check_hash_SOURCES = tests/check_hash.c
tests_check_hash_LDADD = $(TEST_LDADD)
tests_check_log_SOURCES = tests/check_log.c
tests_check_log_LDADD = $(TEST_LDADD)
tests_check_random_SOURCES = tests/check_random.c
tests_check_random_LDADD = $(TEST_LDADD)
tests_check_text_SOURCES = tests/check_text.c
tests_check_text_LDADD = $(TEST_LDADD)
TESTS += tests/check_arena tests/check_file tests/check_hash tests/check_log tests/check_random \
	tests/check_text
TESTS += tests/check_exports.sh
EXTRA_DIST += tests/check_exports.sh
check_PROGRAMS += tests/check_config tests/check_config_gallery
tests_check_config_SOURCES = tests/check_config.c
tests_check_config_LDADD = $(TEST_LDADD)
tests_check_config_gallery_SOURCES = tests/check_config_gallery.c tests/gallery_ini.h
tests_check_config_gallery_LDADD = $(TEST_LDADD)
TESTS += tests/check_config tests/check_config_gallery

check_PROGRAMS += tests/check_plugin
tests_check_plugin_SOURCES = tests/check_plugin.c tests/gallery_plugin.h
tests_check_plugin_LDADD = $(TEST_LDADD)
tests_check_plugin_DEPENDENCIES = tests/libpons.la tests/plugins/effect.la
TESTS += tests/check_plugin

# Plugins for tests are modules outside of every plugin folder.
check_LTLIBRARIES += tests/plugins/effect.la
tests_plugins_effect_la_SOURCES = tests/plugins/effect.c
tests_plugins_effect_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

check_PROGRAMS += tests/check_environment
tests_check_environment_SOURCES = tests/check_environment.c
tests_check_environment_LDADD = $(TEST_LDADD)
TESTS += tests/check_environment
TESTS += tests/check_settings.sh
EXTRA_DIST += tests/check_settings.sh
TESTS += tests/cli.sh
EXTRA_DIST += tests/cli.sh
# Ops for tests: one that keeps the rules, and one that breaks one of them at a time.
OP_MODULES = tests/plugins/box_mean.la tests/plugins/odd.la tests/plugins/mute.la \
	tests/plugins/half.la tests/plugins/nine.la
check_LTLIBRARIES += $(OP_MODULES)
OP_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_plugins_box_mean_la_SOURCES = tests/outside/box_mean.c
tests_plugins_box_mean_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_odd_la_SOURCES = tests/plugins/odd.c
tests_plugins_odd_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_mute_la_SOURCES = tests/plugins/odd.c
tests_plugins_mute_la_CPPFLAGS = $(AM_CPPFLAGS) -DMUTE
tests_plugins_mute_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_half_la_SOURCES = tests/plugins/odd.c
tests_plugins_half_la_CPPFLAGS = $(AM_CPPFLAGS) -DHALF
tests_plugins_half_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_nine_la_SOURCES = tests/plugins/odd.c
tests_plugins_nine_la_CPPFLAGS = $(AM_CPPFLAGS) -DNINE
tests_plugins_nine_la_LDFLAGS = $(OP_LDFLAGS)

# Plugins of the other kinds that break a rule of theirs.
BROKEN_MODULES = tests/plugins/crooked.la tests/plugins/dicey.la tests/plugins/stiff.la \
	tests/plugins/late.la tests/plugins/deaf.la tests/plugins/lame.la
check_LTLIBRARIES += $(BROKEN_MODULES)
tests_plugins_crooked_la_SOURCES = tests/plugins/crooked.c
tests_plugins_crooked_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_dicey_la_SOURCES = tests/plugins/crooked.c
tests_plugins_dicey_la_CPPFLAGS = $(AM_CPPFLAGS) -DRANDOM
tests_plugins_dicey_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_stiff_la_SOURCES = tests/plugins/crooked.c
tests_plugins_stiff_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTIFF
tests_plugins_stiff_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_late_la_SOURCES = tests/plugins/late.c
tests_plugins_late_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_deaf_la_SOURCES = tests/plugins/deaf.c
tests_plugins_deaf_la_LDFLAGS = $(OP_LDFLAGS)
tests_plugins_lame_la_SOURCES = tests/plugins/lame.c
tests_plugins_lame_la_LDFLAGS = $(OP_LDFLAGS)

check_LTLIBRARIES += tests/plugins/stopped.la
tests_plugins_stopped_la_SOURCES = tests/plugins/stopped.c
tests_plugins_stopped_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
