# Files of core/data.
libcore_la_SOURCES += core/data/cache/case_hash.c core/data/cache/case_hash.h core/data/cache/cache.c \
	core/data/cache/cache.h core/data/cache/cache_disk.c core/data/cache/cache_disk.h \
	core/data/cache/cache_fill.c core/data/cache/cache_internal.h core/data/cache/cache_keep.c \
	core/data/cache/cache_keep.h core/data/cache/cache_key.c \
	core/data/cache/cache_key.h core/data/cache/cache_keyed.c core/data/cache/cache_memory.c \
	core/data/cache/shared_memory.c core/data/cache/shared_memory.h
if HAVE_LMDB
libcore_la_SOURCES += core/data/cache/cache_lmdb.c core/data/cache/cache_lmdb.h \
	core/data/cache/cache_lmdb_check.c
else
libcore_la_SOURCES += core/data/cache/cache_lmdb_absent.c
endif
libcore_la_SOURCES += core/data/cache/cache_smart.c core/data/cache/cache_smart.h \
	core/data/cache/cache_smart_internal.h core/data/cache/cache_smart_shared.c \
	core/data/cache/case_window.c core/data/cache/case_window.h
libcore_la_SOURCES += core/data/dataset/case_class.c core/data/dataset/case_class.h \
	core/data/dataset/case_file.c core/data/dataset/case_file.h \
	core/data/case/case_load.c core/data/case/case_load.h \
	core/data/case/case_read.c core/data/case/case_read.h core/data/case/class_coverage.c \
	core/data/case/class_coverage.h core/data/dataset/class_list.c core/data/dataset/class_list.h \
	core/data/dataset/dataset.c core/data/dataset/dataset.h core/data/dataset/label_map.c core/data/dataset/label_map.h \
	core/data/dataset/layout.c core/data/dataset/layout.h core/data/dataset/layout_bids.c \
	core/data/dataset/layout_brats.c core/data/dataset/layout_csv.c \
	core/data/dataset/layout_datalist.c core/data/dataset/layout_decathlon.c \
	core/data/dataset/layout_folders.c core/data/dataset/layout_globs.c core/data/dataset/layout_idx.c \
	core/data/dataset/layout_json.c core/data/dataset/layout_list.c \
	core/data/dataset/layout_nnunet.c core/data/dataset/layout_slides.c core/data/dataset/split.c core/data/dataset/split.h \
	core/data/dataset/split_file.c
libcore_la_SOURCES += core/data/check/dataset_check.c core/data/check/dataset_check.h \
	core/data/check/dataset_check_mixture.c
libcore_la_SOURCES += core/data/idx/idx_file.c core/data/idx/idx_file.h
libcore_la_SOURCES += core/data/loader/batch_layout.c core/data/loader/batch_layout.h \
	core/data/loader/device_case_layout.c core/data/loader/device_case_layout.h \
	core/data/loader/epoch_order.c core/data/loader/epoch_order.h core/data/loader/loader.c \
	core/data/loader/loader.h core/data/loader/patch_batch.c core/data/loader/patch_batch.h \
	core/data/loader/patch_crop.c core/data/loader/patch_crop.h \
	core/data/loader/patch_extract.h core/data/loader/patch_interpolate.h core/data/loader/sampler.c \
	core/data/loader/sampler.h
libvoxels_la_SOURCES += core/data/loader/patch_extract.c core/data/loader/patch_interpolate.c
libcore_la_SOURCES += core/data/nifti/crop.c core/data/nifti/crop.h core/data/nifti/gzip.h core/data/nifti/gzip_zlib.c \
	core/data/nifti/nifti_header.c core/data/nifti/nifti_internal.h core/data/nifti/nifti_read.c \
	core/data/nifti/nifti_read.h core/data/nifti/nifti_write.c core/data/nifti/nifti_write.h
libvoxels_la_SOURCES += core/data/nifti/nifti_convert.c core/data/nifti/nifti_kind.c
if HAVE_DEFLATE
libcore_la_SOURCES += core/data/nifti/gzip_libdeflate.c
else
libcore_la_SOURCES += core/data/nifti/gzip_plain.c
endif
libcore_la_SOURCES += core/data/packed/case_geometry.c core/data/packed/case_geometry.h \
	core/data/packed/packed_case.c core/data/packed/packed_case.h \
	core/data/packed/packed_case_file.c core/data/packed/packed_case_file.h \
	core/data/packed/sampling_index.c core/data/packed/sampling_index.h
libcore_la_SOURCES += core/data/phantom/phantom.c core/data/phantom/phantom.h
libcore_la_SOURCES += core/data/slide/map_file.h core/data/slide/slide_thumbnail.c \
	core/data/slide/slide_thumbnail.h core/data/slide/tissue_mask.c core/data/slide/tissue_mask.h
if HAVE_TIFF
libcore_la_SOURCES += core/data/slide/map_file.c
else
libcore_la_SOURCES += core/data/slide/map_file_absent.c
endif
libcore_la_SOURCES += core/data/picture/picture_read.c core/data/picture/picture_read.h \
	core/data/picture/picture_internal.h
if HAVE_PNG
libcore_la_SOURCES += core/data/picture/picture_png.c
else
libcore_la_SOURCES += core/data/picture/picture_png_absent.c
endif
if HAVE_JPEG
libcore_la_SOURCES += core/data/picture/picture_jpeg.c
else
libcore_la_SOURCES += core/data/picture/picture_jpeg_absent.c
endif
if HAVE_TIFF
libcore_la_SOURCES += core/data/picture/picture_tiff.c core/data/tiff/tiff_file.c \
	core/data/tiff/tiff_file.h
else
libcore_la_SOURCES += core/data/picture/picture_tiff_absent.c
endif
libcore_la_SOURCES += core/data/slide/slide.h core/data/slide/slide_patch.c core/data/slide/slide_patch.h \
	core/data/slide/slide_pool.c core/data/slide/slide_pool.h
if HAVE_OPENSLIDE
libcore_la_SOURCES += core/data/slide/slide.c
else
libcore_la_SOURCES += core/data/slide/slide_absent.c
endif
libcore_la_SOURCES += core/data/transform/augment.c core/data/transform/augment.h \
	core/data/transform/case_check.c core/data/transform/case_check.h core/data/transform/pipeline.c \
	core/data/transform/pipeline.h core/data/transform/transform.c
libvoxels_la_SOURCES += core/data/transform/voxel_normals.c
libcore_la_SOURCES += core/data/volume/geometry.h core/data/volume/interpolation.h \
	core/data/volume/inverse_resample.h core/data/volume/transpose.h core/data/volume/volume.c \
	core/data/volume/volume.h core/data/volume/volume_files.c core/data/volume/volume_files.h \
	core/data/reader/volume_read.c core/data/reader/volume_read.h
libvoxels_la_SOURCES += core/data/volume/axis_cover.c core/data/volume/axis_cover.h \
	core/data/volume/axis_resize.c core/data/volume/axis_resize.h \
	core/data/volume/filled_mask.c core/data/volume/filled_mask.h \
	core/data/volume/geometry.c core/data/volume/interpolation.c \
	core/data/volume/inverse_resample.c core/data/volume/resample.c core/data/volume/transpose.c
