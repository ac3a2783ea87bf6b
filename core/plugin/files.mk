# Files of core/plugin.
libcore_la_SOURCES += core/plugin/descriptor.c core/plugin/descriptor.h core/plugin/elf_dynamic.c \
	core/plugin/elf_dynamic.h core/plugin/elf_dynamic_relocations.c core/plugin/elf_dynamic_symbols.c \
	core/plugin/elf_image.c core/plugin/elf_image.h core/plugin/elf_note.c core/plugin/elf_note.h \
	core/plugin/function.c core/plugin/function.h core/plugin/owner.c core/plugin/owner.h \
	core/plugin/plugin_file.c core/plugin/plugin_file.h core/plugin/plugin_load.c \
	core/plugin/plugin_load.h core/plugin/plugin_options.c core/plugin/plugin_options.h \
	core/plugin/plugin_search.c core/plugin/plugin_search.h core/plugin/plugin_status.c \
	core/plugin/plugin_status.h core/plugin/sink_load.c core/plugin/sink_load.h
