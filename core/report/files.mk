# Files of core/report.
libcore_la_SOURCES += core/report/metrics.c core/report/metrics.h core/report/run_folder.c \
	core/report/run_folder.h
