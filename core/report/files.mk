# Files of core/report.
libcore_la_SOURCES += core/report/csv_header.c core/report/csv_header.h \
	core/report/devices_file.c core/report/devices_file.h core/report/metrics.c \
	core/report/metrics.h core/report/metrics_resume.c core/report/metrics_resume.h \
	core/report/run_folder.c core/report/run_folder.h core/report/sink_file.c \
	core/report/sinks_send.c core/report/sinks_send.h
libcore_la_SOURCES += core/report/history/curves_table.c core/report/history/curves_table.h \
	core/report/history/run_history.c core/report/history/run_history.h
libcore_la_SOURCES += core/report/picture/class_marks.c core/report/picture/class_marks.h \
	core/report/picture/curve_plot.c core/report/picture/curve_plot.h \
	core/report/picture/overlay.c core/report/picture/overlay.h \
	core/report/picture/picture.c core/report/picture/picture.h \
	core/report/picture/picture_legend.c core/report/picture/picture_legend.h \
	core/report/picture/pixel_text.c core/report/picture/pixel_text.h \
	core/report/picture/png_write.h core/report/picture/sheet.c core/report/picture/sheet.h \
	core/report/picture/slice_counts.c core/report/picture/slice_counts.h
if HAVE_PNG
libcore_la_SOURCES += core/report/picture/png_write_libpng.c
else
libcore_la_SOURCES += core/report/picture/png_write_missing.c
endif
libcore_la_SOURCES += core/report/html/chart.c core/report/html/chart.h core/report/html/html.c \
	core/report/html/html.h core/report/html/page_frame.c core/report/html/page_frame.h
libcore_la_SOURCES += core/report/live/train_view.c core/report/live/train_view.h \
	core/report/live/value_series.c core/report/live/value_series.h
libcore_la_SOURCES += core/report/page/case_scores.c core/report/page/case_scores.h \
	core/report/page/compare_page.c core/report/page/compare_page.h \
	core/report/page/mosaic.c core/report/page/mosaic.h core/report/page/network_levels.c \
	core/report/page/network_levels.h core/report/page/page_cases.c \
	core/report/page/page_curves.c core/report/page/page_facts.c \
	core/report/page/page_internal.h core/report/page/page_network.c core/report/page/page_time.c \
	core/report/page/progress_plot.c \
	core/report/page/progress_plot.h core/report/page/report_page.c \
	core/report/page/report_page.h core/report/page/report_run.c core/report/page/report_run.h \
	core/report/page/report_writer.c core/report/page/report_writer.h \
	core/report/page/run_reporter.c core/report/page/run_reporter.h \
	core/report/page/worst_cases.c core/report/page/worst_cases.h
libcore_la_SOURCES += core/report/profile/flame_graph.c core/report/profile/profile_files.c \
	core/report/profile/profile_files.h core/report/profile/profile_files_internal.h \
	core/report/profile/profile_totals.c core/report/profile/trace_events.c
libcore_la_SOURCES += core/report/sinks/case_pictures.c core/report/sinks/case_pictures.h \
	core/report/sinks/network_boxes.c core/report/sinks/network_boxes.h
