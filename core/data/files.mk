# Files of core/data.
libcore_la_SOURCES += core/data/dataset.h core/data/loader.h
ponsinclude_HEADERS += core/pons/transform.h
libcore_la_SOURCES += core/data/volume.h core/data/volume_chain.h
