# Files of core/device.
libcore_la_SOURCES += core/device/open.h core/device/open.c core/device/local.h \
	core/device/local.c core/device/crew.h core/device/crew.c core/device/list.h core/device/list.c
libcore_la_SOURCES += core/device/visible.h core/device/visible.c
libcore_la_SOURCES += core/device/choose.h core/device/choose.c
