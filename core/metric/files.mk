# Files of core/metric.
libcore_la_SOURCES += core/metric/best_metric.c core/metric/best_metric.h \
	core/metric/class_ranking.c core/metric/class_ranking.h \
	core/metric/connected_components.c core/metric/connected_components.h \
	core/metric/id_partition.c core/metric/id_partition.h core/metric/image_quality.c \
	core/metric/image_quality.h core/metric/label_pair.c core/metric/label_pair.h \
	core/metric/label_runs.c core/metric/label_runs.h core/metric/lesions.c core/metric/lesions.h \
	core/metric/metric.c \
	core/metric/metric.h core/metric/paired_test.c core/metric/paired_test.h \
	core/metric/surface_distance.c core/metric/surface_distance.h core/metric/voxel_distance.c \
	core/metric/voxel_distance.h
