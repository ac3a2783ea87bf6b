# Files of core/detection.
libcore_la_SOURCES += core/detection/froc.c core/detection/froc.h core/detection/map_peaks.c \
	core/detection/map_peaks.h core/detection/slide_mask.c core/detection/slide_mask.h \
	core/detection/target_areas.c core/detection/target_areas.h
