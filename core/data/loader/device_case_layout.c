/*
 * device_case_layout.c - lay out packed cases one after another: codes, value table, target.
 */
#include "data/loader/device_case_layout.h"

#include <stdlib.h>
#include <string.h>

#include <pons/device.h>

#include "base/integer.h"
#include "data/cache/cache.h"

/* The arrays of a case, in this order. */
typedef struct case_array {
    const void *from;
    size_t size;
} case_array;

enum { PIECE_VALUES, PIECE_TABLE, PIECE_TARGET, PIECE_COUNT };

static void list_arrays(const packed_case *p, case_array piece[PIECE_COUNT])
{
    size_t values = (size_t)pons_volume_count(&p->image) * (size_t)p->image.channels;
    size_t targets = (size_t)pons_volume_count(&p->label) * (size_t)p->label.channels;

    piece[PIECE_VALUES] = (case_array){ p->codes, values * (size_t)p->code_size };
    piece[PIECE_TABLE] = (case_array){ p->table, (size_t)p->table_count * sizeof *p->table };
    piece[PIECE_TARGET] = (case_array){ p->target, p->target != NULL ? targets : 0 };
}

static pons_status check_case_size(const cache *cases, int rank, const packed_case *p,
                                   pons_error *err)
{
    const char *id = cache_dataset(cases)->cases[rank].id;

    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "[data] cache = device needs all training cases, but "
                         "cache_limit leaves no room for '%s'\nhint: --set data.cache=memory", id);
    if (pons_volume_count(&p->image) > INT32_MAX)
        return pons_fail(err, PONS_DEVICE, "case '%s' has %lld voxels, expected at most %d with "
                         "[data] cache = device\nhint: --set data.cache=memory", id,
                         (long long)pons_volume_count(&p->image), INT32_MAX);
    return PONS_OK;
}

static pons_status set_offsets(device_case_layout *l, const packed_case *p,
                               device_case_offsets *offsets, pons_error *err)
{
    int32_t *const begin[PIECE_COUNT] = { &offsets->values, &offsets->table, &offsets->target };
    case_array piece[PIECE_COUNT];

    list_arrays(p, piece);
    offsets->code_size = p->code_size;
    for (int i = 0; i < PIECE_COUNT; i++) {
        if (l->size / PONS_PATCH_UNIT > INT32_MAX)
            return pons_fail(err, PONS_DEVICE, "the training cases take more than %lld bytes, the "
                             "most that [data] cache = device can hold\nhint: --set "
                             "data.cache=memory",
                             (long long)INT32_MAX * PONS_PATCH_UNIT);
        *begin[i] = (int32_t)(l->size / PONS_PATCH_UNIT);
        l->size += round_up_size(piece[i].size, PONS_PATCH_UNIT);
    }
    return PONS_OK;
}

pons_status device_case_layout_make(const cache *cases, int count, const int *ranks,
                                    device_case_layout *out, pons_error *err)
{
    device_case_layout l = { .count = count };

    l.rank = malloc((size_t)count * sizeof *l.rank);
    l.offsets = malloc((size_t)count * sizeof *l.offsets);
    if (l.rank == NULL || l.offsets == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        const packed_case *p = cache_packed(cases, ranks[i]);
        l.rank[i] = ranks[i];
        if (check_case_size(cases, ranks[i], p, err) == PONS_OK)
            set_offsets(&l, p, &l.offsets[i], err);
    }
    if (err->status != PONS_OK)
        device_case_layout_clear(&l);
    *out = l;
    return err->status;
}

void device_case_layout_clear(device_case_layout *l)
{
    free(l->rank);
    free(l->offsets);
    *l = (device_case_layout){ .size = 0 };
}

device_case_offsets device_case_layout_find(const device_case_layout *l, int rank)
{
    int i = 0;

    while (l->rank[i] != rank)
        i++;
    return l->offsets[i];
}

/* Write 'size' bytes t at 'offset' as 255 - t. */
static pons_status write_complement(device_case_layout_writer *write, void *context, size_t offset,
                                    const void *from, size_t size, pons_error *err)
{
    const uint8_t *byte = from;
    uint8_t part[16384];

    for (size_t first = 0; first < size; first += sizeof part) {
        size_t count = min_size(size - first, sizeof part);
        for (size_t i = 0; i < count; i++)
            part[i] = (uint8_t)~byte[first + i];
        if (write(context, offset + first, part, count, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status device_case_layout_copy(const device_case_layout *l, const cache *cases,
                                    bool complement, device_case_layout_writer *write,
                                    void *context, pons_error *err)
{
    for (int i = 0; i < l->count; i++) {
        const device_case_offsets *offsets = &l->offsets[i];
        const int32_t begin[PIECE_COUNT] = { offsets->values, offsets->table, offsets->target };
        const packed_case *p = cache_packed(cases, l->rank[i]);
        case_array piece[PIECE_COUNT];

        list_arrays(p, piece);
        for (int k = 0; k < PIECE_COUNT && err->status == PONS_OK; k++) {
            size_t offset = (size_t)begin[k] * PONS_PATCH_UNIT;
            if (complement && k == PIECE_TARGET)
                write_complement(write, context, offset, piece[k].from, piece[k].size, err);
            else if (piece[k].size > 0)
                write(context, offset, piece[k].from, piece[k].size, err);
        }
        if (err->status != PONS_OK || packed_case_check(p, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}
