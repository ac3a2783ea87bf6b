# Files of core/report.
libcore_la_SOURCES += core/report/run_folder.c core/report/run_folder.h
