/*
 * picture.c - see picture.h.
 */
#include "report/picture/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "report/picture/class_marks.h"
#include "report/picture/png_write.h"

/* ---- pictures -------------------------------------------------------------------------------- */

pons_status picture_init(picture *p, int width, int height, pons_error *err)
{
    *p = (picture){ width, height, calloc((size_t)width * (size_t)height, 3) };
    if (p->pixels == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: a picture of %d x %d pixels", width,
                         height);
    return PONS_OK;
}

void picture_clear(picture *p)
{
    free(p->pixels);
    p->pixels = NULL;
}

uint8_t *picture_pixel(picture *p, int x, int y)
{
    return p->pixels + ((size_t)y * (size_t)p->width + (size_t)x) * 3;
}

void picture_square(picture *p, int x, int y, int radius, const uint8_t color[3])
{
    for (int j = max_int(y - radius, 0); j <= min_int(y + radius, p->height - 1); j++)
        for (int i = max_int(x - radius, 0); i <= min_int(x + radius, p->width - 1); i++)
            memcpy(picture_pixel(p, i, j), color, 3);
}

void picture_line(picture *p, const int from[2], const int to[2], int radius,
                  const uint8_t color[3])
{
    int dx = to[0] - from[0], dy = to[1] - from[1];
    int steps = max_int(max_int(abs(dx), abs(dy)), 1);

    for (int i = 0; i <= steps; i++)
        picture_square(p, from[0] + (int)lround((double)dx * i / steps),
                       from[1] + (int)lround((double)dy * i / steps), radius, color);
}

static pons_status make_folder(const char *path, pons_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
    pons_status status = folder ? folder_make(folder, err) : PONS_OK;

    free(folder);
    return status;
}

pons_status picture_write(const picture *p, const char *path, pons_error *err)
{
    if (make_folder(path, err) != PONS_OK)
        return err->status;
    return png_write_rgb(path, p->width, p->height, p->pixels, err);
}

/* ---- planes ---------------------------------------------------------------------------------- */

void plane_init(plane *p, int axis, int64_t slice, const int64_t extent[3],
                const double spacing[3], int side)
{
    double width, height;

    *p = (plane){ .axis = axis, .right = axis == 0 ? 1 : 0, .up = axis == 2 ? 1 : 2,
                  .slice = slice };
    memcpy(p->extent, extent, sizeof p->extent);
    memcpy(p->spacing, spacing, sizeof p->spacing);
    width = (double)extent[p->right] * spacing[p->right];
    height = (double)extent[p->up] * spacing[p->up];
    p->step = fmax(width, height) / side;
    p->width = (int)fmax(1, rint(width / p->step));
    p->height = (int)fmax(1, rint(height / p->step));
}

void plane_voxel(const plane *p, int x, int y, int64_t at[3])
{
    double right = ((double)x + 0.5) * p->step / p->spacing[p->right];
    double up = ((double)(p->height - 1 - y) + 0.5) * p->step / p->spacing[p->up];

    at[p->axis] = p->slice;
    at[p->right] = (int64_t)fmin(right, (double)p->extent[p->right] - 1);
    at[p->up] = (int64_t)fmin(up, (double)p->extent[p->up] - 1);
}

int64_t plane_voxel_index(const plane *p, int x, int y)
{
    int64_t at[3];

    plane_voxel(p, x, y, at);
    return (at[0] * p->extent[1] + at[1]) * p->extent[2] + at[2];
}

static bool is_other(const plane *p, const volume *label, int channel, int here, int x, int y)
{
    return x < 0 || y < 0 || x >= p->width || y >= p->height
        || mark_value(label, plane_voxel_index(p, x, y), channel) != here;
}

static bool is_edge(const plane *p, const volume *label, int channel, int here, int width,
                    const int at[2])
{
    for (int by = 1; by <= width; by++)
        if (is_other(p, label, channel, here, at[0] - by, at[1])
            || is_other(p, label, channel, here, at[0] + by, at[1])
            || is_other(p, label, channel, here, at[0], at[1] - by)
            || is_other(p, label, channel, here, at[0], at[1] + by))
            return true;
    return false;
}

int plane_outline_at(const plane *p, const volume *label, int width, int x, int y)
{
    int64_t voxel = plane_voxel_index(p, x, y);
    int found = 0;

    for (int c = 0; c < label->channels; c++) {
        int here = mark_value(label, voxel, c);

        if (here != 0 && is_edge(p, label, c, here, width, (const int[]){ x, y }))
            found = label->channels > 1 ? c + 1 : here;
    }
    return found;
}

/* ---- greys ----------------------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

void grey_samples(const float *image, int64_t voxels, int channels, float sample[GREY_SAMPLES])
{
    for (uint64_t n = 0; n < GREY_SAMPLES; n++) {
        uint64_t voxel = (n * UINT64_C(0x9e3779b97f4a7c15) >> 16) % (uint64_t)voxels;

        sample[n] = image[voxel * (uint64_t)channels];
    }
}

grey_range grey_range_of(const float sample[GREY_SAMPLES])
{
    float sorted[GREY_SAMPLES];
    grey_range range;

    memcpy(sorted, sample, sizeof sorted);
    qsort(sorted, GREY_SAMPLES, sizeof *sorted, compare_floats);
    range = (grey_range){ sorted[GREY_SAMPLES / 100],
                          sorted[GREY_SAMPLES - 1 - GREY_SAMPLES / 100] };
    if (!(range.high > range.low))
        range.high = range.low + 1;
    return range;
}

grey_range grey_range_of_image(const volume *image, int channel)
{
    float sample[GREY_SAMPLES];

    grey_samples((const float *)image->voxels + channel, pons_volume_count(image),
                 image->channels, sample);
    return grey_range_of(sample);
}

uint8_t grey_of(const grey_range *range, float value)
{
    float x = (value - range->low) / (range->high - range->low);

    return (uint8_t)(255 * (x > 1 ? 1 : x > 0 ? x : 0));
}

uint8_t grey_at(const grey_range *range, const volume *image, int channel, int64_t voxel)
{
    return grey_of(range, ((const float *)image->voxels)[voxel * image->channels + channel]);
}
