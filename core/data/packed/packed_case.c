/*
 * packed_case.c - pack an image as codes into a table of its values, and unpack it.
 */
#include "data/packed/packed_case.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"
#include "data/packed/sampling_index.h"

/* A quarter of the slots is used at most: 256 values at first, 65,536 at the end. */
enum { SLOT_BITS_MIN = 10, SLOT_BITS_STEP = 2, SLOT_BITS_MAX = 18 };

/*
 * A hash table of bit patterns with open addressing, which grows; values are numbered in order of
 * appearance.
 */
typedef struct value_table {
    int slot_bits;    /* log2 of the number of slots */
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

/* The slot of a pattern, or the free one that it would take. */
static inline uint32_t slot_of(const value_table *t, uint32_t bits)
{
    uint32_t at = (bits * UINT32_C(0x9e3779b1)) >> (32 - t->slot_bits);

    while (t->slot[at] >= 0 && t->bits[t->slot[at]] != bits)
        at = (at + 1) & ((UINT32_C(1) << t->slot_bits) - 1);
    return at;
}

/* Give the table 2^slot_bits slots; false: no memory. */
static bool value_table_resize(value_table *t, int slot_bits)
{
    size_t slots = (size_t)1 << slot_bits;
    uint32_t *bits = realloc(t->bits, slots / 4 * sizeof *bits);
    int32_t *slot = malloc(slots * sizeof *slot);

    t->bits = bits != NULL ? bits : t->bits;
    if (bits == NULL || slot == NULL) {
        free(slot);
        return false;
    }
    free(t->slot);
    t->slot = slot;
    t->slot_bits = slot_bits;
    memset(slot, 0xff, slots * sizeof *slot);
    for (int i = 0; i < t->count; i++)
        slot[slot_of(t, t->bits[i])] = i;
    return true;
}

/* The number of a value, which is added if new; -1: the table is full. */
static int value_number(value_table *t, float x)
{
    uint32_t bits = bits_of(x), at = slot_of(t, bits);

    if (t->slot[at] >= 0)
        return t->slot[at];
    if (t->count == 1 << t->slot_bits >> 2) {
        if (t->slot_bits == SLOT_BITS_MAX || !value_table_resize(t, t->slot_bits + SLOT_BITS_STEP))
            return -1;
        at = slot_of(t, bits);
    }
    t->bits[t->count] = bits;
    t->slot[at] = t->count;
    return t->count++;
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
    bool packed = codes != NULL && value_table_resize(&t, SLOT_BITS_MIN)
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
