/*
 * slide_patch.c - read the pixels of a patch, and make a volume or a hash of them.
 */
#include "data/slide/slide_patch.h"

#include <stdlib.h>

enum { UINT8_CODE = 2 };

static int64_t count_values(const slide_patch *p)
{
    return p->region.rows * p->region.columns * 3;
}

/* Read by an open slide of its own, which no other patch has broken. */
static pons_status read_alone(const slide_patch *p, uint8_t *rgb, pons_error *err)
{
    slide *s;

    if (slide_open(slide_pool_path(p->pool, p->slide), &s, err) == PONS_OK) {
        slide_read(s, &p->region, rgb, err);
        slide_close(s);
    }
    return err->status;
}

static pons_status read_region(const slide_patch *p, uint8_t *rgb, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    slide *s;

    if (slide_pool_borrow(p->pool, p->slide, &s, err) != PONS_OK)
        return err->status;
    slide_read(s, &p->region, rgb, &problem);
    slide_pool_release(p->pool, p->slide, problem.status == PONS_DATA);
    if (problem.status == PONS_DATA)
        return read_alone(p, rgb, err);
    return problem.status == PONS_OK ? PONS_OK : pons_fail(err, problem.status, "%s", problem.text);
}

/* The caller frees *out. */
static pons_status read_pixels(const slide_patch *p, uint8_t **out, pons_error *err)
{
    uint8_t *rgb = malloc((size_t)count_values(p));

    if (rgb == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    read_region(p, rgb, err);
    if (err->status != PONS_OK)
        free(rgb);
    else
        *out = rgb;
    return err->status;
}

void slide_patch_facts(const slide_patch *p, volume_facts *out)
{
    *out = (volume_facts){
        .grid = { .extent = { 1, p->region.rows, p->region.columns }, .spacing = { 1, 1, 1 },
                  .axes = 3, .sform_code = 1 },
        .channels = 3, .datatype = UINT8_CODE, .type_name = "uint8", .slope = 1
    };
    for (int a = 0; a < 3; a++)
        out->grid.affine[a][a] = out->grid.sform[a][a] = 1;
}

pons_status slide_patch_volume(const slide_patch *p, volume *out, pons_error *err)
{
    const int64_t extent[3] = { 1, p->region.rows, p->region.columns };
    uint8_t *rgb;

    if (read_pixels(p, &rgb, err) != PONS_OK)
        return err->status;
    if (pons_volume_init(out, PONS_F32, 3, extent, err) == PONS_OK) {
        float *to = out->voxels;
        for (int64_t n = 0; n < count_values(p); n++)
            to[n] = rgb[n];
    }
    free(rgb);
    return err->status;
}

pons_status slide_patch_hash(const slide_patch *p, hash128 *out, pons_error *err)
{
    const int64_t extent[2] = { p->region.rows, p->region.columns };
    hash128 total = { 0 };
    uint8_t *rgb;

    if (read_pixels(p, &rgb, err) != PONS_OK)
        return err->status;
    hash128_add(&total, extent, sizeof extent);
    hash128_add(&total, rgb, (size_t)count_values(p));
    free(rgb);
    *out = total;
    return PONS_OK;
}
