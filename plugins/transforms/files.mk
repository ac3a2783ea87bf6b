# Transform plugins.
transform_LTLIBRARIES += plugins/transforms/crop_foreground.la plugins/transforms/flip.la \
	plugins/transforms/gaussian_noise.la plugins/transforms/normalize.la \
	plugins/transforms/orient.la plugins/transforms/pad.la plugins/transforms/rotate90.la \
	plugins/transforms/scale_intensity.la plugins/transforms/scale_percentiles.la \
	plugins/transforms/scale_range.la plugins/transforms/shift_intensity.la \
	plugins/transforms/spacing.la
RANDOM_NUMBER = plugins/transforms/random_number.c plugins/transforms/random_number.h
plugins_transforms_scale_intensity_la_SOURCES = plugins/transforms/scale_intensity.c $(RANDOM_NUMBER)
plugins_transforms_shift_intensity_la_SOURCES = plugins/transforms/shift_intensity.c $(RANDOM_NUMBER)
$(transform_LTLIBRARIES:.la=.lo) plugins/transforms/random_number.lo: \
	private CFLAGS := $(VOXEL_LOOPS) $(CFLAGS)
