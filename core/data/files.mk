# Files of core/data.
libcore_la_SOURCES += core/data/dataset.h core/data/loader.h
ponsinclude_HEADERS += core/pons/transform.h
libcore_la_SOURCES += core/data/volume.h core/data/volume_chain.h
libcore_la_SOURCES += core/data/class_list.c core/data/class_list.h core/data/dataset.c \
	core/data/label_map.c core/data/label_map.h core/data/layout.c core/data/layout.h \
	core/data/layout_decathlon.c core/data/layout_globs.c core/data/split.c core/data/split.h \
	core/data/stream.c
libcore_la_SOURCES += core/data/gzip_zlib.c core/data/nifti.h core/data/nifti_header.c \
	core/data/nifti_kind.c core/data/nifti_read.c core/data/nifti_write.c core/data/transform.c \
	core/data/volume.c \
	core/data/volume_geometry.c core/data/volume_resample.c
libcore_la_SOURCES += core/data/volume_chain.c
