/*
 * picture_tiff.c - decode the first page of a TIFF file by libtiff. Pixels lie in strips or tiles,
 * samples side by side or in separate planes. Samples are grey, colours or indices of a palette,
 * with 1, 2, 4, 8 or 16 bits.
 */
#include "data/picture/picture_internal.h"

#include <string.h>

#include "base/integer.h"
#include "data/tiff/tiff_file.h"

typedef struct tiff_reading {
    tiff_file file;
    const picture_bytes *bytes;
    uint64_t at;               /* position in the file                                            */
    pons_error *err;
    uint32_t width, height;
    uint16_t bits, samples, photometric, planes;
    const uint16_t *palette[3]; /* NULL: no palette is applied                                    */
} tiff_reading;

/* ---- the file in memory ---------------------------------------------------------------------- */

static tmsize_t read_bytes(void *context, void *out, tmsize_t size)
{
    tiff_reading *r = context;
    uint64_t left = r->at < r->bytes->size ? r->bytes->size - r->at : 0;

    size = (tmsize_t)min_u64((uint64_t)size, left);
    if (size > 0)
        memcpy(out, r->bytes->data + r->at, (size_t)size);
    r->at += (uint64_t)size;
    return size;
}

static tmsize_t refuse_writing(void *context, void *from, tmsize_t size)
{
    return 0;
}

static toff_t seek(void *context, toff_t offset, int whence)
{
    tiff_reading *r = context;
    uint64_t from = whence == SEEK_CUR ? r->at : whence == SEEK_END ? r->bytes->size : 0;

    return r->at = from + offset;
}

static toff_t size_of(void *context)
{
    return ((const tiff_reading *)context)->bytes->size;
}

/* ---- tags ------------------------------------------------------------------------------------ */

static pons_status refuse_tag(const tiff_reading *r, const char *name, unsigned value,
                              const char *expected)
{
    return pons_fail(r->err, PONS_DATA, "cannot read '%s': '%s' is %u, expected %s", r->bytes->path,
                     name, value, expected);
}

/* Colours of JPEG in TIFF are converted by libjpeg. */
static void set_colour_mode(tiff_reading *r)
{
    uint16_t compression = COMPRESSION_NONE;

    r->file.lib.TIFFGetFieldDefaulted(r->file.tiff, TIFFTAG_COMPRESSION, &compression);
    if (compression != COMPRESSION_JPEG || r->photometric != PHOTOMETRIC_YCBCR)
        return;
    r->file.lib.TIFFSetField(r->file.tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    r->photometric = PHOTOMETRIC_RGB;
}

static pons_status check_samples(const tiff_reading *r, uint16_t format)
{
    bool coloured = r->photometric == PHOTOMETRIC_RGB;

    if (format != SAMPLEFORMAT_UINT)
        return refuse_tag(r, "SampleFormat", format, "1 (whole numbers without a sign)");
    if (r->bits != 1 && r->bits != 2 && r->bits != 4 && r->bits != 8 && r->bits != 16)
        return refuse_tag(r, "BitsPerSample", r->bits, "1, 2, 4, 8 or 16");
    if (r->photometric > PHOTOMETRIC_PALETTE)
        return refuse_tag(r, "PhotometricInterpretation", r->photometric,
                          "0 to 3 (grey, colours or a palette)");
    if (r->samples < (coloured ? 3 : 1) || r->samples > (coloured ? 4 : 2))
        return refuse_tag(r, "SamplesPerPixel", r->samples,
                          coloured ? "3, or 4 with alpha" : "1, or 2 with alpha");
    if (r->photometric == PHOTOMETRIC_PALETTE && r->bits == 16)
        return refuse_tag(r, "BitsPerSample", r->bits, "1, 2, 4 or 8 with a palette");
    return PONS_OK;
}

static pons_status read_tags(tiff_reading *r)
{
    uint16_t format = SAMPLEFORMAT_UINT;

    if (!r->file.lib.TIFFGetField(r->file.tiff, TIFFTAG_IMAGEWIDTH, &r->width)
        || !r->file.lib.TIFFGetField(r->file.tiff, TIFFTAG_IMAGELENGTH, &r->height))
        return pons_fail(r->err, PONS_DATA, "cannot read '%s': it has no 'ImageWidth' and "
                         "'ImageLength'", r->bytes->path);
    if (picture_check_extent(r->bytes->path, r->width, r->height, r->err) != PONS_OK)
        return r->err->status;
    r->photometric = PHOTOMETRIC_MINISBLACK;
    r->file.lib.TIFFGetFieldDefaulted(r->file.tiff, TIFFTAG_BITSPERSAMPLE, &r->bits);
    r->file.lib.TIFFGetFieldDefaulted(r->file.tiff, TIFFTAG_SAMPLESPERPIXEL, &r->samples);
    r->file.lib.TIFFGetFieldDefaulted(r->file.tiff, TIFFTAG_SAMPLEFORMAT, &format);
    r->file.lib.TIFFGetFieldDefaulted(r->file.tiff, TIFFTAG_PLANARCONFIG, &r->planes);
    r->file.lib.TIFFGetField(r->file.tiff, TIFFTAG_PHOTOMETRIC, &r->photometric);
    set_colour_mode(r);
    return check_samples(r, format);
}

static pons_status read_palette(tiff_reading *r)
{
    uint16_t *red, *green, *blue;

    if (!r->file.lib.TIFFGetField(r->file.tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
        return pons_fail(r->err, PONS_DATA, "cannot read '%s': it has no 'ColorMap'",
                         r->bytes->path);
    r->palette[0] = red;
    r->palette[1] = green;
    r->palette[2] = blue;
    return PONS_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static pons_status begin_blocks(tiff_reading *r)
{
    tiff_file *f = &r->file;

    tiff_find_blocks(f, r->width, r->height);
    if (picture_check_extent(f->path, f->width, f->height, r->err) != PONS_OK)
        return r->err->status;
    if (f->block_size < 1)
        return pons_fail(r->err, PONS_DATA, "cannot read '%s': it has strips or tiles without "
                         "content", f->path);
    return PONS_OK;
}

/* Sample 'n' of a row of the block. */
static unsigned sample_at(const tiff_reading *r, const unsigned char *row, size_t n)
{
    unsigned shift;
    uint16_t wide;

    if (r->bits == 8)
        return row[n];
    if (r->bits == 16) {
        memcpy(&wide, row + 2 * n, sizeof wide);
        return wide;
    }
    shift = 8 - r->bits - (unsigned)(n * r->bits % 8);
    return row[n * r->bits / 8] >> shift & ((1u << r->bits) - 1);
}

/* The value of channel 'c' in the picture. Labels are what the file stores. */
static unsigned value_of(const tiff_reading *r, picture_use use, unsigned sample, int c)
{
    unsigned top = (1u << r->bits) - 1;

    if (use == PICTURE_LABEL)
        return sample;
    if (r->palette[c] != NULL)
        return r->palette[c][sample] >> 8;
    if (r->photometric == PHOTOMETRIC_MINISWHITE)
        sample = top - sample;
    return r->bits < 8 ? sample * 255 / top : sample;
}

/* Write a row of pixels. Separate planes without a palette give the channel 'plane', others all. */
static void put_row(const tiff_reading *r, picture_use use, const unsigned char *row, int plane,
                    int64_t count, unsigned char *to, const picture *out)
{
    bool apart = r->planes == PLANARCONFIG_SEPARATE, indexed = r->palette[0] != NULL;
    int first = apart && !indexed ? plane : 0, end = apart && !indexed ? plane + 1 : out->channels;
    size_t step = apart ? 1 : r->samples;

    for (int64_t x = 0; x < count; x++)
        for (int c = first; c < end; c++) {
            size_t n = (size_t)x * step + (apart || indexed ? 0 : (size_t)c);
            unsigned value = value_of(r, use, sample_at(r, row, n), c);
            int64_t at = x * out->channels + c;
            if (out->size == 1)
                to[at] = (unsigned char)value;
            else
                memcpy(to + 2 * at, &(uint16_t){ (uint16_t)value }, 2);
        }
}

/* Read the block whose first pixel is (x, y); 'plane' is the sample if planes are separate. */
static pons_status read_block(tiff_reading *r, picture_use use, uint32_t x, uint32_t y, int plane,
                              picture *out)
{
    tiff_file *f = &r->file;
    int64_t columns = min_i64(f->width, (int64_t)r->width - x);
    int64_t rows = min_i64(f->height, (int64_t)r->height - y);

    if (tiff_read_block(f, x, y, (uint16_t)plane, rows) != PONS_OK)
        return r->err->status;
    for (int64_t i = 0; i < rows; i++)
        put_row(r, use, f->block + i * tiff_row_size(f), plane, columns,
                picture_row(out, y + i) + (int64_t)x * out->channels * out->size, out);
    return PONS_OK;
}

static pons_status read_blocks(tiff_reading *r, picture_use use, picture *out)
{
    int planes = r->planes != PLANARCONFIG_SEPARATE || r->palette[0] != NULL ? 1 : out->channels;

    if (begin_blocks(r) != PONS_OK)
        return r->err->status;
    for (int plane = 0; plane < planes; plane++)
        for (uint32_t y = 0; y < r->height; y += r->file.height)
            for (uint32_t x = 0; x < r->width; x += r->file.width)
                if (read_block(r, use, x, y, plane, out) != PONS_OK)
                    return r->err->status;
    return PONS_OK;
}

static pons_status read_page(tiff_reading *r, picture_use use, picture *out)
{
    bool palette, coloured;
    picture shape;

    if (read_tags(r) != PONS_OK)
        return r->err->status;
    palette = r->photometric == PHOTOMETRIC_PALETTE && !picture_is_label(use);
    coloured = palette || r->photometric == PHOTOMETRIC_RGB;
    shape = (picture){ .height = r->height, .width = r->width, .channels = coloured ? 3 : 1,
                       .size = r->bits == 16 ? 2 : 1 };
    if (palette && read_palette(r) != PONS_OK)
        return r->err->status;
    if (picture_begin(r->bytes, use, &shape, out, r->err) != PONS_OK
        || !picture_has_values(use))
        return r->err->status;
    return read_blocks(r, use, out);
}

pons_status picture_decode_tiff(const picture_bytes *bytes, picture_use use, picture *out,
                                pons_error *err)
{
    tiff_reading r = {
        .file = { .stream = { read_bytes, refuse_writing, seek, size_of, &r },
                  .action = "cannot read", .path = bytes->path, .use = "TIFF pictures",
                  .err = err },
        .bytes = bytes, .err = err
    };

    /* The mode 'm' turns off memory mapping of the file. */
    if (tiff_open(&r.file, "rm") == PONS_OK)
        read_page(&r, use, out);
    tiff_close(&r.file);
    return err->status;
}
