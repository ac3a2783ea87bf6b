/*
 * picture_read.c - find the format of a picture, and make a volume of its values. The decoders of
 * the formats are in files of their own.
 */
#include "data/picture/picture_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"
#include "data/picture/picture_internal.h"

/* Bytes of the largest file that is read. */
enum { FILE_SIZE_MAX = 0x7fffffff };
/* NIfTI's codes of the types. */
enum { TYPE_UINT8 = 2, TYPE_UINT16 = 512 };

static const struct picture_format {
    const char *magic;
    size_t size;
    picture_decode *decode;
} formats[] = {
    { "\x89PNG\r\n\x1a\n", 8, picture_decode_png },
    { "\xff\xd8\xff", 3, picture_decode_jpeg },
    { "II*\0", 4, picture_decode_tiff }, { "MM\0*", 4, picture_decode_tiff },
    { "II+\0", 4, picture_decode_tiff }, { "MM\0+", 4, picture_decode_tiff },
};

/* ---- files ----------------------------------------------------------------------------------- */

pons_status picture_refuse_format(const char *path, const char *format, const char *library,
                                  pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "cannot read '%s': %s pictures need %s, which is not in "
                     "this build", path, format, library);
}

pons_status picture_check_extent(const char *path, uint64_t width, uint64_t height,
                                 pons_error *err)
{
    if (width == 0 || height == 0)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it has %llu x %llu pixels, expected at "
                         "least 1 x 1", path, (unsigned long long)width,
                         (unsigned long long)height);
    if (width > PICTURE_PIXELS_MAX || height > PICTURE_PIXELS_MAX / width)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it has %llu x %llu pixels, expected at "
                         "most %d in all", path, (unsigned long long)width,
                         (unsigned long long)height, PICTURE_PIXELS_MAX);
    return PONS_OK;
}

pons_status picture_begin(const picture_bytes *bytes, picture_use use, const picture *shape,
                          picture *out, pons_error *err)
{
    size_t size = (size_t)(shape->height * shape->width) * (size_t)(shape->channels * shape->size);

    *out = *shape;
    out->values = NULL;
    if (use == PICTURE_LABEL && shape->channels != 1)
        return pons_fail(err, PONS_DATA, "cannot read label '%s': it has %d channels, expected 1: "
                         "grey, or indices of a palette", bytes->path, shape->channels);
    if (!picture_has_values(use))
        return PONS_OK;
    out->values = huge_pages_alloc(size);
    if (out->values == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: the pixels of '%s' need %zu bytes",
                         bytes->path, size);
    return PONS_OK;
}

static pons_status decode_bytes(const picture_bytes *bytes, picture_use use, picture *out,
                                pons_error *err)
{
    const file_kind *kind;

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (bytes->size >= formats[i].size
            && memcmp(bytes->data, formats[i].magic, formats[i].size) == 0)
            return formats[i].decode(bytes, use, out, err);
    kind = file_kind_find(bytes->data, bytes->size);
    if (kind != NULL)
        return file_kind_refuse(kind, bytes->path, "", FILE_PICTURE, err);
    return pons_fail(err, PONS_DATA, "cannot read '%s': %s, expected a picture (PNG, JPEG, TIFF)",
                     bytes->path, bytes->size == 0 ? "it is empty" : "its format is unknown");
}

static pons_status read_picture(const char *path, picture_use use, picture *out, pons_error *err)
{
    picture_bytes bytes = { .path = path };
    char *data;

    *out = (picture){ .values = NULL };
    if (file_read(path, FILE_SIZE_MAX, &data, &bytes.size, PONS_DATA, err) != PONS_OK)
        return err->status;
    bytes.data = (const unsigned char *)data;
    if (decode_bytes(&bytes, use, out, err) != PONS_OK) {
        free(out->values);
        out->values = NULL;
    }
    free(data);
    return err->status;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static volume_facts facts_of(const picture *p)
{
    volume_facts facts = {
        .grid = { .extent = { 1, p->height, p->width }, .spacing = { 1, 1, 1 }, .axes = 3,
                  .sform_code = 1 },
        .channels = p->channels, .datatype = p->size == 1 ? TYPE_UINT8 : TYPE_UINT16,
        .type_name = p->size == 1 ? "uint8" : "uint16", .slope = 1
    };

    for (int a = 0; a < 3; a++)
        facts.grid.affine[a][a] = facts.grid.sform[a][a] = 1;
    return facts;
}

typedef struct conversion {
    const picture *from;
    volume *to;
} conversion;

#define CONVERT(FROM, TO)                                                                         \
    do {                                                                                          \
        const FROM *from = (const FROM *)c->from->values;                                         \
        TO *to = c->to->voxels;                                                                   \
        for (int64_t n = first; n < end; n++)                                                     \
            to[n] = (TO)from[n];                                                                  \
    } while (0)

static void convert_values(void *context, int64_t first, int64_t end)
{
    const conversion *c = context;

    if (c->to->type == PONS_F32 && c->from->size == 1)
        CONVERT(uint8_t, float);
    else if (c->to->type == PONS_F32)
        CONVERT(uint16_t, float);
    else if (c->to->type == PONS_U8 && c->from->size == 1)
        CONVERT(uint8_t, uint8_t);
    else if (c->to->type == PONS_U8)
        CONVERT(uint16_t, uint8_t);
    else if (c->from->size == 1)
        CONVERT(uint8_t, int32_t);
    else
        CONVERT(uint16_t, int32_t);
}

static bool fits_u8(const picture *p)
{
    const uint16_t *value = (const uint16_t *)p->values;
    uint16_t all = 0;

    for (int64_t n = 0; p->size == 2 && n < p->height * p->width * p->channels; n++)
        all |= value[n];
    return all <= UINT8_MAX;
}

static pons_status read_volume(const char *path, picture_use use, bool compact, volume *out,
                               volume_facts *facts, pons_error *err)
{
    picture p;
    volume fresh;
    pons_type type;

    if (read_picture(path, use, &p, err) != PONS_OK)
        return err->status;
    type = use == PICTURE_IMAGE ? PONS_F32 : compact && fits_u8(&p) ? PONS_U8 : PONS_I32;
    if (pons_volume_init(&fresh, type, p.channels, (const int64_t[]){ 1, p.height, p.width }, err)
        == PONS_OK) {
        parallel_run(p.height * p.width * p.channels, parallel_piece(1), convert_values,
                     &(conversion){ &p, &fresh });
        *out = fresh;
        if (facts != NULL)
            *facts = facts_of(&p);
    }
    free(p.values);
    return err->status;
}

typedef struct repetition {
    const float *grey;
    float *to;
} repetition;

static void repeat_grey(void *context, int64_t first, int64_t end)
{
    const repetition *r = context;

    for (int64_t n = first; n < end; n++)
        r->to[3 * n] = r->to[3 * n + 1] = r->to[3 * n + 2] = r->grey[n];
}

pons_status picture_match_channels(const char *path, int channels, volume *image, pons_error *err)
{
    volume fresh;

    if (channels != 3 || image->channels != 1 || file_kind_ending(path, FILE_PICTURE) == 0)
        return PONS_OK;
    if (pons_volume_init(&fresh, PONS_F32, channels, image->extent, err) != PONS_OK)
        return err->status;
    volume_copy_position(&fresh, image);
    parallel_run(pons_volume_count(image), parallel_piece(channels), repeat_grey,
                 &(repetition){ image->voxels, fresh.voxels });
    pons_volume_clear(image);
    *image = fresh;
    return PONS_OK;
}

static pons_status read_facts(const char *path, picture_use use, volume_facts *facts,
                              pons_error *err)
{
    picture p;

    if (read_picture(path, use, &p, err) == PONS_OK)
        *facts = facts_of(&p);
    return err->status;
}

pons_status picture_read_facts(const char *path, volume_facts *facts, pons_error *err)
{
    return read_facts(path, PICTURE_FACTS, facts, err);
}

pons_status picture_read_label_facts(const char *path, volume_facts *facts, pons_error *err)
{
    return read_facts(path, PICTURE_LABEL_FACTS, facts, err);
}

pons_status picture_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return read_volume(path, PICTURE_IMAGE, false, out, facts, err);
}

pons_status picture_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return read_volume(path, PICTURE_LABEL, false, out, facts, err);
}

pons_status picture_read_label_compact(const char *path, volume *out, volume_facts *facts,
                                       pons_error *err)
{
    return read_volume(path, PICTURE_LABEL, true, out, facts, err);
}
