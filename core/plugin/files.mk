# Files of core/plugin.
libcore_la_SOURCES += core/plugin/answer.c core/plugin/answer.h core/plugin/elf_note.c \
	core/plugin/elf_note.h core/plugin/load.c core/plugin/owner.c core/plugin/owner.h \
	core/plugin/plugin_load.h core/plugin/search.c \
	core/plugin/verify.c core/plugin/verify.h
