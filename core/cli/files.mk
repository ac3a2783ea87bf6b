# Files of core/cli.
libcore_la_SOURCES += core/cli/pons_main.c
