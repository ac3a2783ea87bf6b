# Files of core/data.
libcore_la_SOURCES += core/data/dataset.h core/data/loader.h
ponsinclude_HEADERS += core/pons/transform.h
libcore_la_SOURCES += core/data/volume.h core/data/volume_chain.h
libcore_la_SOURCES += core/data/class_list.c core/data/class_list.h core/data/class_seen.c \
	core/data/class_seen.h core/data/dataset.c \
	core/data/label_map.c core/data/label_map.h core/data/layout.c core/data/layout.h \
	core/data/layout_decathlon.c core/data/layout_globs.c core/data/split.c core/data/split.h \
	core/data/stream.c
libcore_la_SOURCES += core/data/gzip_zlib.c core/data/nifti.h core/data/nifti_header.c core/data/nifti_read.h core/data/nifti_write.h core/data/volume_geometry.h core/data/volume_back.h \
	core/data/nifti_read.c core/data/nifti_write.c core/data/transform.c \
	core/data/volume.c
libcore_la_SOURCES += core/data/case_check.c core/data/case_check.h core/data/volume_chain.c
libcore_la_SOURCES += core/data/augment.c core/data/augment.h core/data/cache.c \
	core/data/cache.h core/data/case_read.h core/data/stream.h core/data/settings.h \
	core/data/patch_find.h core/data/case_files.c core/data/case_files.h core/data/case_read.c \
	core/data/dataset_check.c core/data/loader.c \
	core/data/packed_case.c core/data/packed_case.h core/data/packed_set.c \
	core/data/packed_set.h core/data/patch_cut.h core/data/patch_find.c \
	core/data/patch_make.c core/data/patch_make.h core/data/settings.c
libcore_la_SOURCES += core/data/case_layout.c core/data/case_layout.h core/data/patch_parts.c \
	core/data/patch_parts.h
libcore_la_SOURCES += core/data/cache_disk.c core/data/cache_disk.h core/data/cache_key.c \
	core/data/cache_key.h core/data/case_file.c core/data/case_file.h core/data/case_source.c \
	core/data/case_source.h
libcore_la_SOURCES += core/data/case_geometry.c core/data/case_geometry.h \
	core/data/dataset_mixture.c
libcore_la_SOURCES += core/data/cache_fill.c core/data/cache_parts.h core/data/cache_share.c \
	core/data/cache_share.h
libcore_la_SOURCES += core/data/crop.c core/data/crop.h core/data/phantom.c core/data/phantom.h \
	core/data/preprocess.c core/data/preprocess.h
if HAVE_DEFLATE
libcore_la_SOURCES += core/data/gzip_libdeflate.c
else
libcore_la_SOURCES += core/data/gzip_plain.c
endif

# Loops over voxels. -O2 in CFLAGS comes behind these flags and does not take them back; neither flag
# of mathematics changes a value.
VOXEL_CFLAGS = $(AM_CFLAGS) -ftree-vectorize $(VECTORS_ALWAYS) -fno-math-errno \
	-fno-trapping-math
noinst_LTLIBRARIES += libvoxels.la
libvoxels_la_SOURCES = core/data/nifti_convert.c core/data/nifti_kind.c core/data/patch_cut.c \
	core/data/place.c core/data/place.h core/data/transpose.c core/data/transpose.h \
	core/data/volume_back.c core/data/volume_geometry.c core/data/volume_resample.c \
	core/data/voxel_normals.c
libvoxels_la_CFLAGS = $(VOXEL_CFLAGS)
libcore_la_LIBADD += libvoxels.la
libcore_la_SOURCES += core/data/volume_files.c core/data/volume_files.h
