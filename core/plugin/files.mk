# Files of core/plugin.
libcore_la_SOURCES += core/plugin/plugin_load.h
