# Files of core/replica.
libcore_la_SOURCES += core/replica/comm_trace.c core/replica/comm_trace.h \
	core/replica/device_cases.c core/replica/device_cases.h core/replica/diffusion_nodes.c \
	core/replica/diffusion_nodes.h core/replica/head_tensors.c core/replica/head_tensors.h \
	core/replica/mixing_nodes.c core/replica/mixing_nodes.h \
	core/replica/input_copy.c \
	core/replica/input_copy.h core/replica/patch_nodes.c core/replica/patch_nodes.h \
	core/replica/plugin_build.c core/replica/plugin_build.h core/replica/programs.c \
	core/replica/programs.h core/replica/replicas.c core/replica/replicas.h \
	core/replica/task_nodes.c core/replica/task_nodes.h \
	core/replica/window_nodes.c core/replica/window_nodes.h
