# Files of core/base.
libcore_la_SOURCES += core/base/arena.h core/base/random.h core/base/hash.h core/base/file.h \
	core/base/log.h core/base/error.c
libcore_la_SOURCES += core/base/json.h core/base/json.c
