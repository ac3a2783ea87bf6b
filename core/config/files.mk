# Files of core/config.
libcore_la_SOURCES += core/config/blame.c core/config/config.c core/config/config.h core/config/entries.h \
	core/config/list.c core/config/list.h core/config/option.c core/config/option_hash.c core/config/read.c core/config/sections.c core/config/sections.h
libcore_la_SOURCES += core/config/shortage.c core/config/shortage.h
