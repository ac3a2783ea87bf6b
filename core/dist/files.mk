# Files of core/dist.
libcore_la_SOURCES += core/dist/place.h core/dist/store.h core/dist/group.h
libcore_la_SOURCES += core/dist/board.c core/dist/board.h
libcore_la_SOURCES += core/dist/place.c core/dist/nodelist.c core/dist/nodelist.h
libcore_la_SOURCES += core/dist/link.c core/dist/link.h core/dist/store.c \
	core/dist/store_message.c core/dist/store_message.h core/dist/store_server.c \
	core/dist/store_server.h core/dist/store_table.c core/dist/store_table.h
libcore_la_SOURCES += core/dist/launch.c core/dist/launch.h core/dist/launch_cause.c \
	core/dist/launch_output.c core/dist/launch_parts.h core/dist/launch_start.c
libcore_la_SOURCES += core/dist/card_comm.c core/dist/card_comm.h
libcore_la_SOURCES += core/dist/beat.c core/dist/beat.h core/dist/group.c core/dist/group_agree.c core/dist/group_parts.h \
	core/dist/group_meet.c core/dist/group_sum.c core/dist/watch.c core/dist/watch.h \
	core/dist/watch_parts.h core/dist/watch_rounds.c core/dist/watch_verdict.c
