/*
 * slide.c - read regions of whole-slide images by OpenSlide, whose pixels are premultiplied ARGB.
 *
 * The library depends on some fifty others, so a program that reads no slide does not load it.
 */
#include "data/slide/slide.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openslide/openslide.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/system/shared_library.h"
#include "base/text/text.h"

/* The interface of version 4 is that of version 3 and more; its library has another name. */
#ifdef OPENSLIDE_PROPERTY_NAME_ICC_SIZE
#define LIBRARY "libopenslide.so.1"
#else
#define LIBRARY "libopenslide.so.0"
#endif

#define OPENSLIDE_FUNCTIONS(X) \
    X(openslide_open) X(openslide_close) X(openslide_get_error) X(openslide_get_level_count) \
    X(openslide_get_level_dimensions) X(openslide_get_level_downsample) \
    X(openslide_get_property_value) X(openslide_read_region)

typedef struct openslide_library {
    OPENSLIDE_FUNCTIONS(SHARED_LIBRARY_POINTER)
} openslide_library;

struct slide {
    openslide_library lib;
    openslide_t *handle;
    char *path;
    int level_count;
    slide_level level[SLIDE_LEVELS_MAX];
    double micrometres[2];
    unsigned background[3];    /* red, green, blue                                                */
};

/* Pixels of one region: their numbers of bytes fit every type. */
enum { REGION_PIXELS_MAX = 1 << 28 };

/* ---- the library ----------------------------------------------------------------------------- */

/*
 * OpenSlide reports what libtiff refuses, but leaves libtiff's own printing on. Our decoder of TIFF
 * pictures has handlers of its own, which take precedence.
 */
static void silence_libtiff(void)
{
    static const char *const setters[] = { "TIFFSetErrorHandler", "TIFFSetWarningHandler" };
    void *library = dlopen("libtiff.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *(*set)(void *handler);

    for (size_t i = 0; library != NULL && i < sizeof setters / sizeof *setters; i++) {
        void *function = dlsym(library, setters[i]);
        memcpy(&set, &function, sizeof set);
        if (set != NULL)
            set(NULL);
    }
    if (library != NULL)
        dlclose(library);
}

static pons_status open_library(const char *path, openslide_library *out, pons_error *err)
{
    static const char *const names[] = { OPENSLIDE_FUNCTIONS(SHARED_LIBRARY_NAME) };

    if (shared_library_open(&(shared_library){ LIBRARY, "whole-slide images",
                                               "OpenSlide 3.4.1 or later", names,
                                               sizeof names / sizeof *names }, path, out, err)
        == PONS_OK)
        silence_libtiff();
    return err->status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static pons_status check_file(const char *path, pons_error *err)
{
    FILE *file = file_open_reader(path);

    if (file == NULL)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read '%s': %s", path,
                         strerror(errno));
    fclose(file);
    return PONS_OK;
}

static pons_status open_handle(slide *s, pons_error *err)
{
    const char *problem;

    s->handle = s->lib.openslide_open(s->path);
    if (s->handle == NULL)
        return pons_fail(err, PONS_DATA, "cannot read '%s': expected a whole-slide image; its "
                         "format is unknown, or it is cut off", s->path);
    problem = s->lib.openslide_get_error(s->handle);
    return problem == NULL ? PONS_OK : pons_fail(err, PONS_DATA, "cannot read '%s': %s (OpenSlide)",
                                                 s->path, problem);
}

/* The number of a property of the file; 0: it has none. */
static double property_of(const slide *s, const char *name)
{
    const char *text = s->lib.openslide_get_property_value(s->handle, name);
    double value;

    return text != NULL && text_real(text, &value) ? value : 0;
}

/* OpenSlide ends the process where a tile does not fit the memory. */
static pons_status read_tile(slide *s, int level, pons_error *err)
{
    double side[2];
    char name[64];

    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "openslide.level[%d].tile-%s", level,
                 i == 0 ? "height" : "width");
        side[i] = property_of(s, name);
    }
    if (side[0] * side[1] > SLIDE_TILE_PIXELS_MAX)
        return pons_fail(err, PONS_DATA, "cannot read '%s': its tiles have %.0f x %.0f pixels at "
                         "level %d, expected at most %d in all", s->path, side[1], side[0], level,
                         SLIDE_TILE_PIXELS_MAX);
    for (int i = 0; i < 2; i++)
        s->level[level].tile[i] = side[i] >= 1 && side[i] <= SLIDE_TILE_PIXELS_MAX
                                  ? (int64_t)side[i] : 0;
    return PONS_OK;
}

static pons_status read_level(slide *s, int level, pons_error *err)
{
    slide_level *l = &s->level[level];

    s->lib.openslide_get_level_dimensions(s->handle, level, &l->columns, &l->rows);
    l->downsample = s->lib.openslide_get_level_downsample(s->handle, level);
    if (l->rows < 1 || l->columns < 1 || l->rows > SLIDE_SIDE_MAX || l->columns > SLIDE_SIDE_MAX)
        return pons_fail(err, PONS_DATA, "cannot read '%s': level %d has %lld x %lld pixels, "
                         "expected 1 to %d along each side", s->path, level,
                         (long long)l->columns, (long long)l->rows, SLIDE_SIDE_MAX);
    if (!(l->downsample >= 1) || !isfinite(l->downsample))
        return pons_fail(err, PONS_DATA, "cannot read '%s': level %d is scaled down by %g, "
                         "expected at least 1", s->path, level, l->downsample);
    return read_tile(s, level, err);
}

static pons_status read_levels(slide *s, pons_error *err)
{
    s->level_count = s->lib.openslide_get_level_count(s->handle);
    if (s->level_count < 1 || s->level_count > SLIDE_LEVELS_MAX)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it has %d levels, expected 1 to %d",
                         s->path, s->level_count, SLIDE_LEVELS_MAX);
    for (int level = 0; level < s->level_count; level++)
        if (read_level(s, level, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static void read_properties(slide *s)
{
    const char *colour = s->lib.openslide_get_property_value(
        s->handle, OPENSLIDE_PROPERTY_NAME_BACKGROUND_COLOR);
    unsigned red, green, blue;

    s->micrometres[0] = fmax(property_of(s, OPENSLIDE_PROPERTY_NAME_MPP_Y), 0);
    s->micrometres[1] = fmax(property_of(s, OPENSLIDE_PROPERTY_NAME_MPP_X), 0);
    for (int c = 0; c < 3; c++)
        s->background[c] = 255;
    if (colour != NULL && sscanf(colour, "%2x%2x%2x", &red, &green, &blue) == 3) {
        s->background[0] = red;
        s->background[1] = green;
        s->background[2] = blue;
    }
}

pons_status slide_open(const char *path, slide **out, pons_error *err)
{
    slide *s = calloc(1, sizeof *s);

    if (s == NULL || (s->path = strdup(path)) == NULL) {
        free(s);
        return pons_fail(err, PONS_DEVICE, "out of memory: cannot open '%s'", path);
    }
    if (check_file(path, err) != PONS_OK || open_library(path, &s->lib, err) != PONS_OK
        || open_handle(s, err) != PONS_OK || read_levels(s, err) != PONS_OK) {
        slide_close(s);
        return err->status;
    }
    read_properties(s);
    *out = s;
    return PONS_OK;
}

void slide_close(slide *s)
{
    if (s == NULL)
        return;
    if (s->handle != NULL)
        s->lib.openslide_close(s->handle);
    free(s->path);
    free(s);
}

/* ---- facts ----------------------------------------------------------------------------------- */

const char *slide_path(const slide *s)
{
    return s->path;
}

int slide_level_count(const slide *s)
{
    return s->level_count;
}

const slide_level *slide_level_at(const slide *s, int level)
{
    return &s->level[level];
}

static bool has_whole_tile(const slide_level *l)
{
    return l->rows >= l->tile[0] && l->columns >= l->tile[1];
}

pons_status slide_check_level(const slide *s, int level, pons_error *err)
{
    const slide_level *l = &s->level[level];

    if (has_whole_tile(l))
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "cannot read '%s': level %d has %lld x %lld pixels, expected "
                     "at least the %lld x %lld of a tile, because OpenSlide misplaces those of a "
                     "smaller level", s->path, level, (long long)l->columns, (long long)l->rows,
                     (long long)l->tile[1], (long long)l->tile[0]);
}

int slide_level_for(const slide *s, double downsample)
{
    int best = 0;

    for (int level = 1; level < s->level_count; level++)
        if (s->level[level].downsample <= downsample * 1.01 && has_whole_tile(&s->level[level]))
            best = level;
    return best;
}

void slide_resolution(const slide *s, double micrometres[2])
{
    memcpy(micrometres, s->micrometres, sizeof s->micrometres);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/* Lay premultiplied colours over the background. */
static void blend_pixels(const slide *s, const uint32_t *argb, int64_t count, uint8_t *rgb)
{
    for (int64_t n = 0; n < count; n++)
        for (int c = 0; c < 3; c++) {
            unsigned clear = 255 - (argb[n] >> 24), colour = argb[n] >> (16 - 8 * c) & 255;
            rgb[3 * n + c] = (uint8_t)(colour + (s->background[c] * clear + 127) / 255);
        }
}

/* Drop the alpha of opaque pixels; false: some are not. */
static bool copy_pixels(const uint32_t *argb, int64_t count, uint8_t *rgb)
{
    uint32_t all = UINT32_MAX;

    for (int64_t n = 0; n < count; n++) {
        uint32_t value = argb[n];
        all &= value;
        rgb[3 * n] = (uint8_t)(value >> 16);
        rgb[3 * n + 1] = (uint8_t)(value >> 8);
        rgb[3 * n + 2] = (uint8_t)value;
    }
    return all >> 24 == 255;
}

pons_status slide_read(slide *s, const slide_region *region, uint8_t *rgb, pons_error *err)
{
    const char *problem;
    uint32_t *argb;
    int64_t count;

    if (region->rows < 1 || region->columns < 1
        || region->rows > REGION_PIXELS_MAX / region->columns)
        return pons_fail(err, PONS_CONFIG, "cannot read '%s': a region has %lld x %lld pixels, "
                         "expected 1 to %d in all", s->path, (long long)region->columns,
                         (long long)region->rows, REGION_PIXELS_MAX);
    if (slide_check_level(s, region->level, err) != PONS_OK)
        return err->status;
    count = region->rows * region->columns;
    argb = malloc((size_t)count * sizeof *argb);
    if (argb == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: a region of '%s' needs %lld bytes",
                         s->path, (long long)count * (long long)sizeof *argb);
    s->lib.openslide_read_region(s->handle, argb, region->column, region->row, region->level,
                                 region->columns, region->rows);
    problem = s->lib.openslide_get_error(s->handle);
    if (problem != NULL)
        pons_fail(err, PONS_DATA, "cannot read '%s': %s (OpenSlide), in the region at column %lld, "
                  "row %lld of level %d", s->path, problem, (long long)region->column,
                  (long long)region->row, region->level);
    if (problem == NULL && !copy_pixels(argb, count, rgb))
        blend_pixels(s, argb, count, rgb);
    free(argb);
    return err->status;
}
