# Files of core/device.
libcore_la_SOURCES += core/device/cuda_visible_devices.c core/device/cuda_visible_devices.h \
	core/device/device_choose.c core/device/device_choose.h core/device/device_list.c \
	core/device/device_list.h core/device/device_open.c core/device/device_open.h \
	core/device/local_comm.c core/device/local_comm.h core/device/replica_threads.c \
	core/device/replica_threads.h
