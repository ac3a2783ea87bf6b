/*
 * predict_patches.c - tell slides from images of the size of a patch.
 */
#include "cli/predict/predict_patches.h"

#include <string.h>

#include "base/file/file_kind.h"
#include "data/slide/slide.h"
#include "experiment/data_settings.h"

bool predict_patches_known(const experiment *e, slide_settings *out)
{
    const data_options *d = &e->sections.data;

    *out = data_slide_settings(d);
    out->validation = NULL;
    return strcmp(data_layouts[d->layout], "slides") == 0;
}

/* Whether OpenSlide reads a file as a slide with more pixels than 'patch' along a side. */
static bool is_larger(const char *file, int64_t patch)
{
    pons_error ignored = PONS_ERROR_INIT;
    const slide_level *top;
    slide *s;
    bool larger;

    if (slide_open(file, &s, &ignored) != PONS_OK)
        return false;
    top = slide_level_at(s, 0);
    larger = top->rows > patch || top->columns > patch;
    slide_close(s);
    return larger;
}

pons_status predict_patches_check(const experiment *e, const predict_input *c, pons_error *err)
{
    const char *file = c->file[0];
    slide_settings known;
    bool patches = predict_patches_known(e, &known);
    bool picture = file_kind_ending(file, FILE_PICTURE) > 0;

    if (c->patch != NULL || file_kind_ending(file, FILE_SLIDE) == 0
        || (picture && !(patches && is_larger(file, known.extent))))
        return PONS_OK;
    return pons_fail(err, PONS_USAGE, "'%s' is a slide, expected images for a table\nhint: -o "
                     "map.tiff writes the probability map of the slide%s", file, patches
                     ? "; a list .csv of slide, x, y names patches of it" : "");
}
