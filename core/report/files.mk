# Files of core/report.
libcore_la_SOURCES += core/report/csv_header.c core/report/csv_header.h core/report/curve_plot.c \
	core/report/curve_plot.h core/report/devices_file.c \
	core/report/devices_file.h core/report/metrics.c core/report/metrics.h \
	core/report/metrics_resume.c core/report/metrics_resume.h core/report/overlay.c \
	core/report/overlay.h core/report/picture.c core/report/picture.h core/report/png_write.h \
	core/report/run_folder.c core/report/run_folder.h core/report/sheet.c core/report/sheet.h \
	core/report/sink_file.c
if HAVE_PNG
libcore_la_SOURCES += core/report/png_write_libpng.c
else
libcore_la_SOURCES += core/report/png_write_missing.c
endif
