# Files of core/device.
libcore_la_SOURCES += core/device/open.h core/device/open.c
