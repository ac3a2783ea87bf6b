# Files of core/data.
libcore_la_SOURCES += core/data/dataset.h core/data/loader.h
