/*
 * packed_case.c - pack an image as codes into a table of its values, and unpack it.
 */
#include "data/packed/packed_case.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"
#include "data/packed/sampling_index.h"

#define VALUES_MAX 65536
enum { SLOT_BITS_MIN = 8, SLOT_BITS_MAX = 18 }; /* load factor of at most 1/4 */

/* A hash table of bit patterns with open addressing; values are numbered in order of appearance. */
typedef struct value_table {
    int slot_bits;    /* log2 of the number of slots; small for a small image */
    uint32_t *bits;   /* [a quarter of the slots] */
    int32_t *slot;    /* index into bits; -1: free */
    int count;
} value_table;

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The number of a value, which is added if new; -1: the table is full. */
static int value_number(value_table *t, float x)
{
    uint32_t bits = bits_of(x);
    uint32_t at = (bits * UINT32_C(0x9e3779b1)) >> (32 - t->slot_bits);

    while (t->slot[at] >= 0) {
        if (t->bits[t->slot[at]] == bits)
            return t->slot[at];
        at = (at + 1) & ((UINT32_C(1) << t->slot_bits) - 1);
    }
    if (t->count == VALUES_MAX)
        return -1;
    t->bits[t->count] = bits;
    t->slot[at] = t->count;
    return t->count++;
}

/* Make room for the distinct values among 'values' elements, at most VALUES_MAX. */
static bool value_table_init(value_table *t, int64_t values)
{
    size_t slots;

    t->count = 0;
    for (t->slot_bits = SLOT_BITS_MIN; t->slot_bits < SLOT_BITS_MAX
         && (INT64_C(1) << t->slot_bits) < 4 * values; )
        t->slot_bits++;
    slots = (size_t)1 << t->slot_bits;
    t->bits = malloc(slots / 4 * sizeof *t->bits);
    t->slot = malloc(slots * sizeof *t->slot);
    if (t->bits == NULL || t->slot == NULL)
        return false;
    memset(t->slot, 0xff, slots * sizeof *t->slot);
    return true;
}

static void value_table_clear(value_table *t)
{
    free(t->bits);
    free(t->slot);
}

/* Write the code of each value; false: too many different values. */
static bool number_values(value_table *t, const float *x, int64_t count, uint16_t *codes)
{
    uint32_t last_bits = 0;
    int last = -1;

    for (int64_t i = 0; i < count; i++) {
        if (last < 0 || bits_of(x[i]) != last_bits) {
            last = value_number(t, x[i]);
            last_bits = bits_of(x[i]);
        }
        if (last < 0)
            return false;
        codes[i] = (uint16_t)last;
    }
    return true;
}

/* Convert 16-bit codes to 8-bit codes in place; 'codes' shrinks. */
static void *shrink_codes(uint16_t *codes, int64_t count)
{
    uint8_t *bytes = (uint8_t *)codes;
    void *less;

    for (int64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)codes[i];
    less = realloc(bytes, (size_t)count);
    return less != NULL ? less : bytes;
}

/* Pack an image as codes; false: too many values or no memory, floats are kept. */
static bool pack_values(packed_case *p, const float *x, int64_t count)
{
    value_table t = { .count = 0 };
    uint16_t *codes = malloc((size_t)count * sizeof *codes);
    bool packed = codes != NULL && value_table_init(&t, count)
                  && number_values(&t, x, count, codes);

    if (packed)
        p->table = malloc((size_t)t.count * sizeof *p->table);
    packed = packed && p->table != NULL;
    if (packed) {
        memcpy(p->table, t.bits, (size_t)t.count * sizeof *p->table);
        p->code_size = t.count <= 256 ? 1 : 2;
        p->codes = p->code_size == 1 ? shrink_codes(codes, count) : codes;
        p->table_count = t.count;
        p->size += (size_t)t.count * sizeof *p->table;
    } else {
        free(codes);
    }
    value_table_clear(&t);
    return packed;
}

void packed_case_mark_ignored(pons_case *c)
{
    const uint8_t *valid = c->valid.voxels;
    uint8_t *target = c->label.voxels;
    size_t channels = (size_t)c->label.channels;
    int64_t count = valid != NULL && target != NULL ? pons_volume_count(&c->label) : 0;

    for (int64_t v = 0; v < count; v++) {
        if (valid[v] == 0)
            memset(target + (size_t)v * channels, TARGET_IGNORED, channels);
    }
    pons_volume_clear(&c->valid);
}

pons_status packed_case_init(packed_case *p, pons_case *c, const sampling_spec *spec,
                             pons_error *err)
{
    int64_t count = pons_volume_count(&c->image) * c->image.channels;

    packed_case_mark_ignored(c);
    *p = (packed_case){ .image = c->image, .label = c->label, .code_size = 4 };
    p->image.voxels = NULL;
    p->label.voxels = NULL;
    if (!pack_values(p, c->image.voxels, count)) {
        p->codes = c->image.voxels;
        c->image.voxels = NULL;
    }
    p->size += (size_t)count * (size_t)p->code_size;
    p->target = c->label.voxels;
    c->label.voxels = NULL;
    if (p->target != NULL)
        p->size += (size_t)pons_volume_count(&p->label) * (size_t)p->label.channels;
    pons_volume_clear(&c->image);
    pons_volume_clear(&c->label);
    if (sampling_index_make(p, spec, err) == PONS_OK)
        return PONS_OK;
    packed_case_clear(p);
    return PONS_DEVICE;
}

void packed_case_clear(packed_case *p)
{
    if (p->mapping != NULL) {
        mapped_file_close(p->mapping);
    } else {
        free(p->table);
        free(p->codes);
        free(p->target);
        free(p->before);
    }
    *p = (packed_case){ .code_size = 0 };
}

pons_status packed_case_check(const packed_case *p, pons_error *err)
{
    if (p->mapping == NULL || mapped_file_is_whole(p->mapping))
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "its file in the cache was cut or cannot be read\n"
                     "hint: start again, which preprocesses the case anew");
}

typedef struct unpacking {
    const packed_case *p;
    float *image;
} unpacking;

static void unpack_values(void *context, int64_t first, int64_t end)
{
    const unpacking *o = context;

    for (int64_t i = first; i < end; i++)
        o->image[i] = packed_case_value(o->p, i);
}

pons_status packed_case_unpack(const packed_case *p, pons_case *out, pons_error *err)
{
    int64_t count = pons_volume_count(&p->image) * p->image.channels;
    size_t target_size = p->target == NULL ? 0
                         : (size_t)pons_volume_count(&p->label) * (size_t)p->label.channels;
    float *image = huge_pages_alloc((size_t)count * sizeof *image);
    uint8_t *target = target_size > 0 ? malloc(target_size) : NULL;

    if (image == NULL || (target == NULL && target_size > 0)) {
        free(image);
        free(target);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    parallel_run(count, parallel_piece(1), unpack_values, &(unpacking){ p, image });
    if (target != NULL)
        memcpy(target, p->target, target_size);
    if (packed_case_check(p, err) != PONS_OK) {
        free(image);
        free(target);
        return err->status;
    }
    *out = (pons_case){ .size = sizeof *out, .image = p->image, .label = p->label };
    out->image.voxels = image;
    out->label.voxels = target;
    return PONS_OK;
}
