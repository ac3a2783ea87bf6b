/*
 * picture_internal.h - shared by the decoders of pictures, one for each format.
 */
#ifndef CORE_DATA_PICTURE_PICTURE_INTERNAL_H
#define CORE_DATA_PICTURE_PICTURE_INTERNAL_H

#include "data/picture/picture_read.h"

typedef enum picture_use {
    PICTURE_FACTS = 0,         /* the header alone of an image                                    */
    PICTURE_LABEL_FACTS,       /* the header alone of a label                                     */
    PICTURE_IMAGE,             /* palettes become colours, fewer than 8 bits are stretched to 8   */
    PICTURE_LABEL              /* values as stored                                                */
} picture_use;

static inline bool picture_is_label(picture_use use)
{
    return use == PICTURE_LABEL || use == PICTURE_LABEL_FACTS;
}

static inline bool picture_has_values(picture_use use)
{
    return use == PICTURE_IMAGE || use == PICTURE_LABEL;
}

typedef struct picture_bytes {
    const char *path;
    const unsigned char *data;
    size_t size;
} picture_bytes;

typedef struct picture {
    int64_t height, width;
    int channels;              /* 1 or 3                                                          */
    int size;                  /* bytes of a value, 1 or 2, in native order                       */
    unsigned char *values;     /* malloc'ed [H, W, C]; NULL: the header alone was read            */
} picture;

/*
 * Decode a file that begins with the magic number of its format. On failure out->values may hold
 * memory that the caller frees.
 */
typedef pons_status picture_decode(const picture_bytes *bytes, picture_use use, picture *out,
                                   pons_error *err);
pons_status picture_decode_png(const picture_bytes *bytes, picture_use use, picture *out,
                               pons_error *err);
pons_status picture_decode_jpeg(const picture_bytes *bytes, picture_use use, picture *out,
                                pons_error *err);
pons_status picture_decode_tiff(const picture_bytes *bytes, picture_use use, picture *out,
                                pons_error *err);

/* Take the shape of a picture, and memory for its values if 'use' has any. */
pons_status picture_begin(const picture_bytes *bytes, picture_use use, const picture *shape,
                          picture *out, pons_error *err);
/* PONS_DATA if the picture has no pixel, or more than PICTURE_PIXELS_MAX. */
pons_status picture_check_extent(const char *path, uint64_t width, uint64_t height,
                                 pons_error *err);
/* PONS_CONFIG: the build lacks the library of the format. */
pons_status picture_refuse_format(const char *path, const char *format, const char *library,
                                  pons_error *err);
/* The first byte of row 'y'. */
static inline unsigned char *picture_row(const picture *p, int64_t y)
{
    return p->values + y * p->width * p->channels * p->size;
}

#endif
