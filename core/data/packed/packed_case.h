/*
 * packed_case.h - a preprocessed case in as few bytes as give every value back exactly (R27).
 *
 * An image whose values are at most 65536 different floats (any 8- or 16-bit file, until it is
 * interpolated) is kept as codes into a table of them; any other as floats. Codes into a table do
 * what R27's int16 with a scale and float16 do, and more of it: an image that either holds exactly
 * has at most 65536 values, but not the other way round. A CT that was clipped and scaled, or a
 * normalised 12-bit MR, has 256 to 4096 values that are no multiples of one number and not exact in
 * 11 bits of a float16: they would need 4 bytes. Up to 256 values take 1 byte instead of 2. The
 * price is a look-up in at most 256 KiB when a patch is cut.
 */
#ifndef CORE_DATA_PACKED_PACKED_CASE_H
#define CORE_DATA_PACKED_PACKED_CASE_H

#include <pons/transform.h>

#include "base/file/mapped_file.h"

/* Which voxels a patch may be centred on, for the sampler. */
typedef enum packed_sets {
    PACKED_SETS_NONE = 0,
    PACKED_SETS_BALANCED, /* set 0: foreground, set 1: background above a value                   */
    PACKED_SETS_CLASSES   /* set c: class c, or region c                                          */
} packed_sets;

typedef struct packed_case {
    pons_volume image, label;  /* place and shape; voxels NULL                                    */
    int code_size;             /* bytes: 1 or 2, an index into 'table'; 4, the value itself       */
    int table_count;
    float *table;
    void *codes;               /* [D, H, W, C]                                                    */
    uint8_t *target;           /* [D, H, W, 1 | R]; NULL: no label                                */
    packed_sets sets;
    int set_count;
    double background_above;
    int64_t block_count;
    int64_t *before;           /* [set][block + 1]: voxels of the set in the blocks before        */
    size_t size;               /* bytes of all that                                               */
    mapped_file *mapping;      /* not NULL: all that lies in a mapped file, which is not written  */
    size_t mapping_size;
} packed_case;

/* What is to be found beforehand in each case. */
typedef struct packed_wish {
    packed_sets sets;
    int set_count;             /* CLASSES: how many                                               */
    double background_above;
} packed_wish;

/* Takes the case over: its volumes are empty afterwards, also on failure. */
pons_status packed_case_init(packed_case *p, pons_case *c, const packed_wish *wish,
                             pons_error *err);
void packed_case_clear(packed_case *p);
/*
 * After it was read: PONS_DATA where a part of its file was gone by then, so that what was read is
 * not to be used.
 */
pons_status packed_case_check(const packed_case *p, pons_error *err);
/* The floats and the target again, as a new case (name NULL). */
pons_status packed_case_open(const packed_case *p, pons_case *out, pons_error *err);

static inline float packed_value(const packed_case *p, int64_t at)
{
    if (p->code_size == 2)
        return p->table[((const uint16_t *)p->codes)[at]];
    if (p->code_size == 1)
        return p->table[((const uint8_t *)p->codes)[at]];
    return ((const float *)p->codes)[at];
}

#endif
