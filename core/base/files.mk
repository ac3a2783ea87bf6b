# Files of core/base.
libcore_la_SOURCES += core/base/arena.c core/base/arena.h core/base/avx2_clone.h \
	core/base/broken_pipe.c core/base/broken_pipe.h core/base/build_feature.c \
	core/base/build_feature.h core/base/clock.h core/base/errno_status.c \
	core/base/errno_status.h core/base/error.c core/base/finite.h core/base/integer.h \
	core/base/log.c core/base/log.h core/base/number_order.h \
	core/base/numpy_shuffle.c core/base/numpy_shuffle.h \
	core/base/pairwise_sum.c core/base/pairwise_sum.h core/base/progress.c core/base/progress.h \
	core/base/random.c core/base/random.h core/base/random_normal.h core/base/terminal.c \
	core/base/terminal.h core/base/whole.h
libcore_la_SOURCES += core/base/file/aside.c core/base/file/aside.h core/base/file/csv_text.c core/base/file/csv_text.h core/base/file/csv_table.c \
	core/base/file/csv_table.h core/base/file/file.c core/base/file/file.h \
	core/base/file/file_kind.c core/base/file/file_kind.h core/base/file/file_system.c \
	core/base/file/file_system.h core/base/file/folder_list.c \
	core/base/file/folder_list.h core/base/file/json.c core/base/file/json.h \
	core/base/file/mapped_file.c core/base/file/mapped_file.h core/base/file/table_file.c \
	core/base/file/table_file.h
libcore_la_SOURCES += core/base/hash/hash128.c core/base/hash/hash128.h \
	core/base/hash/hmac_sha256.c core/base/hash/hmac_sha256.h core/base/hash/json_digest.c \
	core/base/hash/json_digest.h core/base/hash/name_index.c core/base/hash/name_index.h \
	core/base/hash/sha256.c core/base/hash/sha256.h \
	core/base/hash/sha256_blocks.c core/base/hash/sha256_blocks.h core/base/hash/sha256_blocks_x86.c \
	core/base/hash/sha256_file.c
libcore_la_SOURCES += core/base/profile/profile.c core/base/profile/profile.h \
	core/base/profile/range_kind.c core/base/profile/range_kind.h
libcore_la_SOURCES += core/base/system/boot_id.c core/base/system/boot_id.h \
	core/base/system/cgroup.c core/base/system/cgroup.h \
	core/base/system/cpu_quota.c core/base/system/cpu_quota.h \
	core/base/system/cxx_memory.c core/base/system/cxx_memory.h \
	core/base/system/host_facts.c core/base/system/host_facts.h core/base/system/huge_pages.c \
	core/base/system/huge_pages.h core/base/system/memory_limit.c core/base/system/memory_limit.h \
	core/base/system/shared_library.c core/base/system/shared_library.h \
	core/base/system/signal_name.c core/base/system/signal_name.h core/base/system/subprocess.c \
	core/base/system/subprocess.h core/base/system/user_folder.c core/base/system/user_folder.h
libcore_la_SOURCES += core/base/text/quote.c core/base/text/quote.h core/base/text/shell_word.c \
	core/base/text/shell_word.h core/base/text/text.c core/base/text/text.h \
	core/base/text/text_stream.c core/base/text/text_stream.h
libcore_la_SOURCES += core/base/thread/parallel.c core/base/thread/parallel.h \
	core/base/thread/thread.c core/base/thread/thread.h core/base/thread/worker.c \
	core/base/thread/worker.h
