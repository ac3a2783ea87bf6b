/*
 * slide_absent.c - refuse whole-slide images, in a build without OpenSlide. No slide is ever open.
 */
#include "data/slide/slide.h"

pons_status slide_open(const char *path, slide **out, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "cannot read '%s': whole-slide images need OpenSlide, which "
                     "is not in this build", path);
}

void slide_close(slide *s)
{
}

const char *slide_path(const slide *s)
{
    return "";
}

int slide_level_count(const slide *s)
{
    return 0;
}

const slide_level *slide_level_at(const slide *s, int level)
{
    static const slide_level none = { .downsample = 1 };

    return &none;
}

pons_status slide_check_level(const slide *s, int level, pons_error *err)
{
    return PONS_OK;
}

int slide_level_for(const slide *s, double downsample)
{
    return 0;
}

void slide_resolution(const slide *s, double micrometres[2])
{
    micrometres[0] = micrometres[1] = 0;
}

pons_status slide_read(slide *s, const slide_region *region, uint8_t *rgb, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "whole-slide images need OpenSlide, which is not in this "
                     "build");
}
