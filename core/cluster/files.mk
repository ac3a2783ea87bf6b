# Files of core/cluster.
libcore_la_SOURCES += core/cluster/group/gpu_comm.c core/cluster/group/gpu_comm.h \
	core/cluster/group/group.c core/cluster/group/group.h core/cluster/group/group_agree.c \
	core/cluster/group/group_internal.h core/cluster/group/group_join.c \
	core/cluster/group/group_sum.c
libcore_la_SOURCES += core/cluster/launch/launch.c core/cluster/launch/launch.h \
	core/cluster/launch/launch_failure.c core/cluster/launch/launch_internal.h \
	core/cluster/launch/launch_output.c core/cluster/launch/launch_start.c
libcore_la_SOURCES += core/cluster/rendezvous/nodelist.c core/cluster/rendezvous/nodelist.h \
	core/cluster/rendezvous/rank_info.c core/cluster/rendezvous/rank_info.h
libcore_la_SOURCES += core/cluster/store/message.c core/cluster/store/message.h \
	core/cluster/store/server.c core/cluster/store/server.h core/cluster/store/socket.c \
	core/cluster/store/socket.h core/cluster/store/store.c core/cluster/store/store.h \
	core/cluster/store/table.c core/cluster/store/table.h
libcore_la_SOURCES += core/cluster/watchdog/heartbeat.c core/cluster/watchdog/heartbeat.h \
	core/cluster/watchdog/status_page.c core/cluster/watchdog/status_page.h \
	core/cluster/watchdog/watchdog.c core/cluster/watchdog/watchdog.h \
	core/cluster/watchdog/watchdog_internal.h core/cluster/watchdog/watchdog_outcome.c \
	core/cluster/watchdog/watchdog_rounds.c
