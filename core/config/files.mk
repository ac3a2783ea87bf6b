# Files of core/config.
libcore_la_SOURCES += core/config/augment_profile.c core/config/augment_profile.h core/config/config.c \
	core/config/config.h core/config/config_internal.h \
	core/config/config_location.c core/config/config_option.c core/config/config_option_hash.c \
	core/config/config_read.c core/config/diffusion_table.c \
	core/config/diffusion_table.h core/config/list.c core/config/list.h core/config/memory_hints.c \
	core/config/memory_hints.h core/config/sections.c core/config/sections.h
