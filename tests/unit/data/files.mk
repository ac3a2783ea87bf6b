# Tests of core/data.
PROGRAM_TESTS += %D%/check_augment %D%/check_augment_profile %D%/check_cache %D%/check_case_geometry \
	%D%/check_channels %D%/check_dataset %D%/check_golden_augment %D%/check_golden_transforms %D%/check_loader \
	%D%/check_nifti %D%/check_patch_nodes %D%/check_preprocess %D%/check_shared_cache %D%/check_parallel_slabs \
	%D%/check_epoch_order %D%/check_transforms %D%/check_volume %D%/check_layout_nnunet %D%/check_split_file \
	%D%/check_layout_lists %D%/check_pictures %D%/check_brats %D%/check_bids \
	%D%/check_case_window %D%/check_lmdb_cache %D%/check_patch_interpolate %D%/check_smart_cache
%C%_check_nifti_LDADD = $(LDADD) $(ZLIB_LIBS)
%C%_check_patch_nodes_LDADD = $(DEVICE_LDADD)
%C%_check_golden_augment_SOURCES = %D%/check_golden_augment.c $(GAUSSIAN_FILTER)
%C%_check_golden_augment_CFLAGS = $(AM_CFLAGS)
%C%_check_golden_transforms_SOURCES = %D%/check_golden_transforms.c $(NNUNET_RESAMPLE)
# Flags of its own give the program's objects names that differ from those of libtool.
%C%_check_golden_transforms_CFLAGS = $(AM_CFLAGS)
