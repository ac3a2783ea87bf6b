# Files of core/config.
libcore_la_SOURCES += core/config/config.c core/config/config.h core/config/config_internal.h \
	core/config/config_read.c core/config/list.c core/config/list.h core/config/location.c \
	core/config/memory_hints.c core/config/memory_hints.h core/config/option.c \
	core/config/option_hash.c core/config/sections.c core/config/sections.h
