# Files of core/window.
libcore_la_SOURCES += core/window/window.c core/window/window.h core/window/window_blend.h
libvoxels_la_SOURCES += core/window/window_blend.c
