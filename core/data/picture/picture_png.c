/*
 * picture_png.c - decode PNG by libpng.
 *
 * libpng returns by longjmp on errors. What such a jump must not lose lies in a struct that the
 * function with setjmp does not own.
 */
#include "data/picture/picture_internal.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "data/nifti/gzip.h"

typedef struct png_reading {
    const picture_bytes *bytes;
    size_t at;                 /* bytes that libpng has taken                                     */
    pons_error *err;
    png_structp png;
    png_infop info;
} png_reading;

static void take_bytes(png_structp png, png_bytep out, size_t size)
{
    png_reading *r = png_get_io_ptr(png);

    if (size > r->bytes->size - r->at)
        png_error(png, "it ends too early");
    memcpy(out, r->bytes->data + r->at, size);
    r->at += size;
}

static void refuse_png(png_structp png, png_const_charp text)
{
    const png_reading *r = png_get_error_ptr(png);

    pons_fail(r->err, PONS_DATA, "cannot read '%s': %s (byte %zu of %zu, libpng)", r->bytes->path,
              text, r->at, r->bytes->size);
    png_longjmp(png, 1);
}

/* Warnings concern what a picture does not need, such as colour profiles. */
static void ignore_warning(png_structp png, png_const_charp text)
{
}

/* Set 8 or 16 bits in native order, no alpha, and colours for a palette unless 'use' is a label. */
static void set_conversion(png_reading *r, picture_use use)
{
    png_byte colour = png_get_color_type(r->png, r->info);
    bool little = *(const unsigned char *)&(const uint16_t){ 1 } == 1;

    if (picture_is_label(use))
        png_set_packing(r->png);
    else if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    else if (colour == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (!picture_is_label(use) || (colour & PNG_COLOR_MASK_ALPHA) != 0)
        png_set_strip_alpha(r->png);
    if (little)
        png_set_swap(r->png);
}

static pons_status check_size(const png_reading *r, pons_error *err)
{
    uint64_t width = png_get_image_width(r->png, r->info);
    uint64_t height = png_get_image_height(r->png, r->info);
    uint64_t row = png_get_rowbytes(r->png, r->info);

    if (picture_check_extent(r->bytes->path, width, height, err) != PONS_OK)
        return err->status;
    if (row * height / DEFLATE_RATIO_MAX > r->bytes->size)
        return pons_fail(err, PONS_DATA, "cannot read '%s': its %zu bytes cannot hold %llu x %llu "
                         "pixels", r->bytes->path, r->bytes->size, (unsigned long long)width,
                         (unsigned long long)height);
    return PONS_OK;
}

/* Read the header, which sets the shape of *out, and the pixels. */
static void read_png(png_reading *r, picture_use use, picture *out)
{
    picture shape;
    int passes;

    if (setjmp(png_jmpbuf(r->png)))
        return;
    png_read_info(r->png, r->info);
    if (check_size(r, r->err) != PONS_OK)
        return;
    set_conversion(r, use);
    passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    shape = (picture){ .height = png_get_image_height(r->png, r->info),
                       .width = png_get_image_width(r->png, r->info),
                       .channels = png_get_channels(r->png, r->info),
                       .size = png_get_bit_depth(r->png, r->info) / 8 };
    if (picture_begin(r->bytes, use, &shape, out, r->err) != PONS_OK
        || !picture_has_values(use))
        return;
    for (; passes > 0; passes--)
        for (int64_t y = 0; y < out->height; y++)
            png_read_row(r->png, picture_row(out, y), NULL);
    png_read_end(r->png, NULL);
}

pons_status picture_decode_png(const picture_bytes *bytes, picture_use use, picture *out,
                               pons_error *err)
{
    png_reading r = { .bytes = bytes, .err = err };

    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, refuse_png, ignore_warning);
    r.info = r.png != NULL ? png_create_info_struct(r.png) : NULL;
    if (r.info == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else {
        png_set_read_fn(r.png, &r, take_bytes);
        read_png(&r, use, out);
    }
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return err->status;
}
