/*
 * packed_case.h - a preprocessed case in few bytes, without loss (R27).
 *
 * An image with at most 65536 different floats is stored as codes into a table of them; any other
 * image as floats. Every 8- or 16-bit file qualifies until it is interpolated. Up to 256 values
 * take 1 byte per voxel, up to 65536 take 2.
 *
 * A table covers every image that int16 with a scale or float16 represents exactly, and others: a
 * clipped and scaled CT, or a normalised 12-bit MR, has values that are no multiples of one number
 * and do not fit the 11 bits of a float16. The cost is a look-up in at most 256 KiB when a patch
 * is extracted.
 */
#ifndef CORE_DATA_PACKED_PACKED_CASE_H
#define CORE_DATA_PACKED_PACKED_CASE_H

#include <pons/transform.h>

#include "base/file/mapped_file.h"

/* The sets of voxels from which a sampler draws patch centres. */
typedef enum sampling_sets {
    SAMPLING_SETS_NONE = 0,
    SAMPLING_SETS_BALANCED, /* set 0: foreground, set 1: background above a value                 */
    SAMPLING_SETS_CLASSES,  /* set c: voxels of class c, or region c                              */
    SAMPLING_SETS_BALANCED_VALID, /* as BALANCED, without voxels of TARGET_IGNORED                */
    SAMPLING_SETS_CLASSES_VALID /* as CLASSES; the last set: voxels that are not TARGET_IGNORED   */
} sampling_sets;

static inline bool sampling_sets_balanced(sampling_sets sets)
{
    return sets == SAMPLING_SETS_BALANCED || sets == SAMPLING_SETS_BALANCED_VALID;
}

/* The target of a voxel that no loss and no metric counts, in all channels. */
enum { TARGET_IGNORED = 255 };

typedef struct packed_case {
    pons_volume image, label;  /* position and shape; voxels NULL                                 */
    int code_size;             /* 1 or 2: bytes of an index into 'table'; 4: the value itself     */
    int table_count;
    float *table;
    void *codes;               /* [D, H, W, C] codes or floats                                    */
    uint8_t *target;           /* [D, H, W, 1 | R], may hold TARGET_IGNORED; NULL: no label       */
    sampling_sets sets;
    int set_count;
    double background_above;
    int64_t block_count;
    int64_t *before;    /* [set][block + 1] voxels of the set before the block (sampling_index.h) */
    size_t size;               /* bytes of all arrays                                             */
    mapped_file *mapping;      /* not NULL: the arrays are in a mapped file and read-only         */
    size_t mapping_size;
} packed_case;

/* The sampling sets that are indexed in each case. */
typedef struct sampling_spec {
    sampling_sets sets;
    int set_count;             /* CLASSES: number of classes or regions; CLASSES_VALID: 1 more    */
    double background_above;
} sampling_spec;

/* Set the target to TARGET_IGNORED where the mask 'valid' is 0, and release the mask. */
void packed_case_mark_ignored(pons_case *c);
/*
 * Pack a case, with its mask in the target. It takes the volumes of 'c', which are empty
 * afterwards, also on failure.
 */
pons_status packed_case_init(packed_case *p, pons_case *c, const sampling_spec *spec,
                             pons_error *err);
void packed_case_clear(packed_case *p);
/*
 * Check after reading that a mapped file is still whole. PONS_DATA: a part of it has vanished, so
 * the values read must not be used.
 */
pons_status packed_case_check(const packed_case *p, pons_error *err);
/* Unpack floats and target into a new case (name NULL). */
pons_status packed_case_unpack(const packed_case *p, pons_case *out, pons_error *err);

static inline float packed_case_value(const packed_case *p, int64_t at)
{
    if (p->code_size == 2)
        return p->table[((const uint16_t *)p->codes)[at]];
    if (p->code_size == 1)
        return p->table[((const uint8_t *)p->codes)[at]];
    return ((const float *)p->codes)[at];
}

#endif
