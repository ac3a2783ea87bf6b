/*
 * idx_file.c - check the header of an IDX file, read its bytes and make volumes of its images.
 */
#include "data/idx/idx_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "data/nifti/gzip.h"

enum { HEADER_MAX = 16, BYTE_TYPE = 0x08, EXTENT_MAX = 16384 };

/* The content of a file, inflated or as it is. */
typedef struct idx_content {
    const char *path;
    char *packed;                 /* the file                                                     */
    size_t packed_size;
    bool gzip;
    unsigned char head[HEADER_MAX];
    size_t head_size;             /* bytes in 'head'                                              */
} idx_content;

bool idx_file_is(const char *path, int rank)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *end = rank == 3 ? "idx3-ubyte" : "idx1-ubyte", *found = strstr(name, end);

    return found != NULL && (found[strlen(end)] == '\0' || strcmp(found + strlen(end), ".gz") == 0);
}

static pons_status open_content(const char *path, idx_content *c, pons_error *err)
{
    *c = (idx_content){ .path = path, .head_size = HEADER_MAX };
    if (file_read(path, SIZE_MAX / 2, &c->packed, &c->packed_size, PONS_DATA, err) != PONS_OK)
        return err->status;
    const unsigned char *bytes = (const unsigned char *)c->packed;
    c->gzip = c->packed_size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
    if (c->gzip)
        return gzip_peek(path, bytes, c->packed_size, c->head, &c->head_size, err);
    c->head_size = c->packed_size < HEADER_MAX ? c->packed_size : HEADER_MAX;
    memcpy(c->head, bytes, c->head_size);
    return PONS_OK;
}

static uint32_t big_endian(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Check the magic number and the extents. */
static pons_status read_header(const idx_content *c, int rank, idx_file *out, pons_error *err)
{
    static const char *const words[] = { "images", "rows", "columns" };
    uint32_t magic = BYTE_TYPE << 8 | (uint32_t)rank;

    if (c->head_size < 4 || big_endian(c->head) != magic)
        return pons_fail(err, PONS_DATA, "cannot read '%s': magic number 0x%08x, expected 0x%08x, "
                         "an IDX file of %s", c->path,
                         c->head_size < 4 ? 0 : (unsigned)big_endian(c->head), (unsigned)magic,
                         rank == 3 ? "images" : "labels");
    if (c->head_size < 4 + 4 * (size_t)rank)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it ends after %zu bytes, expected a "
                         "header of %d", c->path, c->head_size, 4 + 4 * rank);
    *out = (idx_file){ c->path, rank, { 1, 1, 1 }, NULL };
    for (int a = 0; a < rank; a++) {
        uint32_t extent = big_endian(c->head + 4 + 4 * a), most = a == 0 ? INT32_MAX : EXTENT_MAX;

        if (extent < 1 || extent > most)
            return pons_fail(err, PONS_DATA, "cannot read '%s': %u %s, expected 1 to %u", c->path,
                             (unsigned)extent, rank == 1 ? "labels" : words[a], (unsigned)most);
        out->extent[a] = extent;
    }
    return PONS_OK;
}

/* Compare the length of the file with the header's; no memory is taken for a false header. */
static pons_status check_length(const idx_content *c, size_t size, pons_error *err)
{
    if (!c->gzip && c->packed_size != size)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it has %zu bytes, expected %zu as its "
                         "header says", c->path, c->packed_size, size);
    if (c->gzip && size / DEFLATE_RATIO_MAX > c->packed_size)
        return pons_fail(err, PONS_DATA, "cannot read '%s': its header says %zu bytes, expected at "
                         "most %zu in a compressed file of %zu", c->path, size,
                         c->packed_size * DEFLATE_RATIO_MAX, c->packed_size);
    return PONS_OK;
}

pons_status idx_file_read(arena *memory, const char *path, int rank, idx_file *out,
                          pons_error *err)
{
    idx_content c;
    unsigned char *bytes;
    size_t size, head = 4 + 4 * (size_t)rank;

    if (open_content(path, &c, err) == PONS_OK && read_header(&c, rank, out, err) == PONS_OK) {
        size = head + (size_t)(out->extent[0] * out->extent[1] * out->extent[2]);
        if (check_length(&c, size, err) == PONS_OK) {
            bytes = arena_alloc(memory, size);
            out->path = arena_string(memory, path);
            out->bytes = bytes + head;
            if (c.gzip)
                gzip_inflate(path, (unsigned char *)c.packed, c.packed_size, bytes, size, err);
            else
                memcpy(bytes, c.packed, size);
        }
    }
    free(c.packed);
    return err->status;
}

/* ---- volumes --------------------------------------------------------------------------------- */

void idx_file_facts(const idx_file *stack, volume_facts *out)
{
    enum { UINT8_CODE = 2, MILLIMETRES = 2 };
    volume_grid *g = &out->grid;

    *out = (volume_facts){ .channels = 1, .datatype = UINT8_CODE, .type_name = "uint8", .slope = 1,
                           .nifti = 1 };
    g->units = MILLIMETRES;
    g->axes = 3;
    for (int a = 0; a < 3; a++) {
        g->extent[a] = a == 0 ? 1 : stack->extent[a];
        g->spacing[a] = 1;
        g->affine[a][a] = 1;
    }
}

pons_status idx_file_volume(const idx_file *stack, int64_t number, volume *out, pons_error *err)
{
    int64_t extent[3] = { 1, stack->extent[1], stack->extent[2] };
    int64_t count = extent[1] * extent[2];
    const unsigned char *from = stack->bytes + number * count;

    *out = (volume){ .voxels = NULL };
    if (pons_volume_init(out, PONS_F32, 1, extent, err) != PONS_OK)
        return err->status;
    float *to = out->voxels;
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
    return PONS_OK;
}
