# Transform plugins.
transform_LTLIBRARIES += plugins/transforms/center_crop.la plugins/transforms/clip.la plugins/transforms/crop_foreground.la \
	plugins/transforms/flip.la \
	plugins/transforms/gaussian_noise.la plugins/transforms/normalize.la \
	plugins/transforms/orient.la plugins/transforms/pad.la plugins/transforms/resize.la \
	plugins/transforms/rotate90.la plugins/transforms/scale_intensity.la \
	plugins/transforms/scale_percentiles.la plugins/transforms/scale_range.la \
	plugins/transforms/shift_intensity.la plugins/transforms/spacing.la \
	plugins/transforms/random/adjust_contrast.la plugins/transforms/random/bias_field.la \
	plugins/transforms/random/brightness.la plugins/transforms/random/channel_dropout.la \
	plugins/transforms/random/coarse_dropout.la plugins/transforms/random/color_jitter.la \
	plugins/transforms/random/contrast.la \
	plugins/transforms/random/gaussian_sharpen.la plugins/transforms/random/gaussian_smooth.la \
	plugins/transforms/random/low_resolution.la plugins/transforms/random/affine.la \
	plugins/transforms/random/random_resized_crop.la \
	plugins/transforms/random/elastic.la plugins/transforms/random/zoom.la
AXIS_RESIZE = core/data/volume/axis_cover.c core/data/volume/axis_cover.h core/data/volume/axis_resize.c \
	core/data/volume/axis_resize.h
NNUNET_RESAMPLE = plugins/transforms/nnunet_resample.c plugins/transforms/nnunet_resample.h $(AXIS_RESIZE)
RANDOM_NUMBER = plugins/transforms/random_number.c plugins/transforms/random_number.h
CHANNEL_DRAWS = %D%/random/channel_draws.c %D%/random/channel_draws.h
GAUSSIAN_FILTER = %D%/random/gaussian_filter.c %D%/random/gaussian_filter.h
%C%_random_adjust_contrast_la_SOURCES = %D%/random/adjust_contrast.c %D%/random/unit_power.h $(CHANNEL_DRAWS)
%C%_random_affine_la_SOURCES = %D%/random/affine.c $(CHANNEL_DRAWS)
%C%_random_bias_field_la_SOURCES = %D%/random/bias_field.c %D%/random/bias_field.h $(CHANNEL_DRAWS)
%C%_random_brightness_la_SOURCES = %D%/random/brightness.c $(CHANNEL_DRAWS)
%C%_random_channel_dropout_la_SOURCES = %D%/random/channel_dropout.c $(CHANNEL_DRAWS)
%C%_random_coarse_dropout_la_SOURCES = %D%/random/coarse_dropout.c %D%/random/coarse_dropout.h \
	$(CHANNEL_DRAWS)
%C%_random_color_jitter_la_SOURCES = %D%/random/color_jitter.c %D%/random/color_jitter.h
%C%_random_contrast_la_SOURCES = %D%/random/contrast.c $(CHANNEL_DRAWS)
%C%_random_elastic_la_SOURCES = %D%/random/elastic.c %D%/random/elastic.h $(GAUSSIAN_FILTER) $(CHANNEL_DRAWS)
%C%_random_gaussian_sharpen_la_SOURCES = %D%/random/gaussian_sharpen.c $(GAUSSIAN_FILTER) \
	$(CHANNEL_DRAWS)
%C%_random_gaussian_smooth_la_SOURCES = %D%/random/gaussian_smooth.c $(GAUSSIAN_FILTER) $(CHANNEL_DRAWS)
%C%_random_low_resolution_la_SOURCES = %D%/random/low_resolution.c $(CHANNEL_DRAWS)
%C%_random_zoom_la_SOURCES = %D%/random/zoom.c $(CHANNEL_DRAWS)
plugins_transforms_normalize_la_SOURCES = plugins/transforms/normalize.c core/data/volume/filled_mask.c \
	core/data/volume/filled_mask.h
plugins_transforms_resize_la_SOURCES = plugins/transforms/resize_case.c $(AXIS_RESIZE)
plugins_transforms_scale_intensity_la_SOURCES = plugins/transforms/scale_intensity.c $(RANDOM_NUMBER)
plugins_transforms_shift_intensity_la_SOURCES = plugins/transforms/shift_intensity.c $(RANDOM_NUMBER)
plugins_transforms_spacing_la_SOURCES = plugins/transforms/spacing.c $(NNUNET_RESAMPLE)
$(transform_LTLIBRARIES:.la=.lo) plugins/transforms/resize_case.lo plugins/transforms/nnunet_resample.lo \
	core/data/volume/axis_resize.lo core/data/volume/filled_mask.lo plugins/transforms/random_number.lo \
	%D%/random/channel_draws.lo %D%/random/gaussian_filter.lo: private CFLAGS := $(VOXEL_LOOPS) $(CFLAGS)
