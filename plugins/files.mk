# Files of plugins.
sink_LTLIBRARIES += plugins/sinks/csv.la
plugins_sinks_csv_la_SOURCES = plugins/sinks/csv.c
plugins_sinks_csv_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_sinks_csv_la_LIBADD = $(PLUGIN_LIBADD)
