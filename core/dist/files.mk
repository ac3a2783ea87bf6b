# Files of core/dist.
libcore_la_SOURCES += core/dist/place.h core/dist/store.h core/dist/group.h
libcore_la_SOURCES += core/dist/board.c core/dist/board.h
libcore_la_SOURCES += core/dist/place.c core/dist/nodelist.c core/dist/nodelist.h
