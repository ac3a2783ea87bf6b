# Files of core/metric.
libcore_la_SOURCES += core/metric/best_metric.c core/metric/best_metric.h \
	core/metric/connected_components.c core/metric/connected_components.h core/metric/id_areas.c \
	core/metric/id_areas.h core/metric/metric.c core/metric/metric.h
