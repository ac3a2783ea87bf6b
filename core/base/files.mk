# Files of core/base.
libcore_la_SOURCES += core/base/arena.c core/base/arena.h core/base/error.c core/base/file.c \
	core/base/file.h core/base/fingerprint.c core/base/fingerprint.h core/base/hash.c core/base/hash.h \
	core/base/hash_file.c \
	core/base/hash_blocks.c core/base/hash_blocks.h core/base/hash_x86.c core/base/json.c core/base/json.h \
	core/base/finite.h core/base/whole.h core/base/log.c core/base/log.h core/base/pages.c core/base/pages.h \
	core/base/random.c core/base/random.h core/base/random_normal.h core/base/text.c core/base/text.h
libcore_la_SOURCES += core/base/aside.c core/base/aside.h
libcore_la_SOURCES += core/base/apart.c core/base/apart.h
libcore_la_SOURCES += core/base/background.c core/base/background.h
libcore_la_SOURCES += core/base/broken_pipe.c core/base/broken_pipe.h
libcore_la_SOURCES += core/base/clock.h
libcore_la_SOURCES += core/base/errno_status.c core/base/errno_status.h
libcore_la_SOURCES += core/base/parallel.c core/base/parallel.h
libcore_la_SOURCES += core/base/quote.c core/base/quote.h
libcore_la_SOURCES += core/base/shell_word.c core/base/shell_word.h
libcore_la_SOURCES += core/base/mapped_file.c core/base/mapped_file.h
libcore_la_SOURCES += core/base/name_index.c core/base/name_index.h
libcore_la_SOURCES += core/base/part.c core/base/part.h
libcore_la_SOURCES += core/base/room.c core/base/room.h
libcore_la_SOURCES += core/base/tree.c core/base/tree.h
libcore_la_SOURCES += core/base/kernel_name.c core/base/kernel_name.h
libcore_la_SOURCES += core/base/thread.c core/base/thread.h
libcore_la_SOURCES += core/base/seal.c core/base/seal.h
libcore_la_SOURCES += core/base/signal_name.c core/base/signal_name.h
libcore_la_SOURCES += core/base/quota.c core/base/quota.h
libcore_la_SOURCES += core/base/user_folder.c core/base/user_folder.h
libcore_la_SOURCES += core/base/terminal.c core/base/terminal.h
libcore_la_SOURCES += core/base/file_kind.c core/base/file_kind.h
