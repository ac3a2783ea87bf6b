/*
 * picture.h - an RGB picture, and slices of volumes drawn into it in true proportions.
 *
 * Volumes are [D, H, W, C]; spacing is in millimetres along axes 0, 1, 2. Pixel (0, 0) is at the
 * top left.
 */
#ifndef CORE_REPORT_PICTURE_PICTURE_H
#define CORE_REPORT_PICTURE_PICTURE_H

#include "data/volume/volume.h"

typedef struct picture {
    int width, height;
    uint8_t *pixels;         /* [height, width, 3]                                                */
} picture;

/* A black picture; picture_clear frees it. */
pons_status picture_init(picture *p, int width, int height, pons_error *err);
void picture_clear(picture *p);
uint8_t *picture_pixel(picture *p, int x, int y);
/* Fill a square of 2 radius + 1 pixels, cut at the sides. */
void picture_square(picture *p, int x, int y, int radius, const uint8_t color[3]);
/* Draw a straight line of such squares. */
void picture_line(picture *p, const int from[2], const int to[2], int radius,
                  const uint8_t color[3]);
/* Write a PNG, and the folder above it. PONS_CONFIG in a build without libpng. */
pons_status picture_write(const picture *p, const char *path, pons_error *err);

/* A slice across 'axis'; axes 'right' and 'up' run in these directions of the picture. */
typedef struct plane {
    int axis, right, up;
    int64_t slice;
    int width, height;       /* pixels                                                            */
    double step;             /* millimetres per pixel                                             */
    int64_t extent[3];       /* of the volume                                                     */
    double spacing[3];
} plane;

/* The longer side gets 'side' pixels. */
void plane_init(plane *p, int axis, int64_t slice, const int64_t extent[3],
                const double spacing[3], int side);
/* The voxel at a pixel, and its number. */
void plane_voxel(const plane *p, int x, int y, int64_t at[3]);
int64_t plane_voxel_index(const plane *p, int x, int y);
/*
 * The class whose outline goes through a pixel: another class is at most 'width' pixels away.
 * 'label' is U8 or I32, of class indices or of a 0/1 channel for each region, of which a later one
 * covers earlier ones. 0: none.
 */
int plane_outline_at(const plane *p, const volume *label, int width, int x, int y);

/* Values drawn black and white. */
typedef struct grey_range {
    float low, high;
} grey_range;

enum { GREY_SAMPLES = 4096 };
/* Take scattered values of the first channel of an image. */
void grey_samples(const float *image, int64_t voxels, int channels, float sample[GREY_SAMPLES]);
/* The 1st and 99th percentile of samples. */
grey_range grey_range_of(const float sample[GREY_SAMPLES]);
/* The same of an F32 channel. */
grey_range grey_range_of_image(const volume *image, int channel);
/* The grey of a value, 0 to 255. */
uint8_t grey_of(const grey_range *range, float value);
/* The grey of a voxel. */
uint8_t grey_at(const grey_range *range, const volume *image, int channel, int64_t voxel);

#endif
