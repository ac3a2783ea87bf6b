# Files of core/config.
libcore_la_SOURCES += core/config/config.h
