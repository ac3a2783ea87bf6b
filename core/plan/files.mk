# Files of core/plan.
libcore_la_SOURCES += core/plan/case_scan.c core/plan/case_scan.h \
	core/plan/dataset_statistics.c core/plan/dataset_statistics.h \
	core/plan/intensity_statistics.c core/plan/intensity_statistics.h core/plan/network_plan.c \
	core/plan/network_plan.h core/plan/network_plan_geometry.c core/plan/percentile.c \
	core/plan/percentile.h
