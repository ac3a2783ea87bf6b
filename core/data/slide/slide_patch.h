/*
 * slide_patch.h - a patch of a slide as an image: [1, rows, columns], 3 channels, values 0 to 255.
 */
#ifndef CORE_DATA_SLIDE_SLIDE_PATCH_H
#define CORE_DATA_SLIDE_SLIDE_PATCH_H

#include "base/hash/hash128.h"
#include "data/slide/slide_pool.h"
#include "data/volume/volume.h"

typedef struct slide_patch {
    slide_pool *pool;
    int slide;                 /* its number in the pool                                          */
    slide_region region;
} slide_patch;

/* The facts of the image, without reading it: spacing 1, as of pictures. */
void slide_patch_facts(const slide_patch *p, volume_facts *out);
/*
 * Read the image as F32. Thread-safe; errors are those of slide_open and slide_read. Damage in
 * other patches of the slide is no error.
 */
pons_status slide_patch_volume(const slide_patch *p, volume *out, pons_error *err);
/* The hash of the pixels. */
pons_status slide_patch_hash(const slide_patch *p, hash128 *out, pons_error *err);

#endif
