/*
 * device_case_layout.c - preprocessed cases one after another: values, their table, the target.
 */
#include "data/loader/device_case_layout.h"

#include <stdlib.h>
#include <string.h>

#include <pons/device.h>

#include "base/integer.h"
#include "data/cache/cache.h"

/* The pieces of a case, in their order. */
typedef struct case_piece {
    const void *from;
    size_t size;
} case_piece;

enum { PIECE_VALUES, PIECE_TABLE, PIECE_TARGET, PIECE_COUNT };

static void list_pieces(const packed_case *p, case_piece piece[PIECE_COUNT])
{
    size_t values = (size_t)pons_volume_count(&p->image) * (size_t)p->image.channels;
    size_t targets = (size_t)pons_volume_count(&p->label) * (size_t)p->label.channels;

    piece[PIECE_VALUES] = (case_piece){ p->codes, values * (size_t)p->code_size };
    piece[PIECE_TABLE] = (case_piece){ p->table, (size_t)p->table_count * sizeof *p->table };
    piece[PIECE_TARGET] = (case_piece){ p->target, p->target != NULL ? targets : 0 };
}

static pons_status check_case(const cache *held, int rank, const packed_case *p, pons_error *err)
{
    const char *id = cache_dataset(held)->cases[rank].id;

    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "[data] cache = device needs all training cases, but "
                         "cache_limit leaves no room for '%s'\nhint: --set data.cache=memory", id);
    if (pons_volume_count(&p->image) > INT32_MAX)
        return pons_fail(err, PONS_DEVICE, "case '%s' has %lld voxels, expected at most %d with "
                         "[data] cache = device\nhint: --set data.cache=memory", id,
                         (long long)pons_volume_count(&p->image), INT32_MAX);
    return PONS_OK;
}

static pons_status place_case(case_layout *l, const packed_case *p, case_place *place,
                              pons_error *err)
{
    int32_t *const begin[PIECE_COUNT] = { &place->values, &place->table, &place->target };
    case_piece piece[PIECE_COUNT];

    list_pieces(p, piece);
    place->code_size = p->code_size;
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

pons_status case_layout_make(const cache *held, int count, const int *ranks, case_layout *out,
                             pons_error *err)
{
    case_layout l = { .count = count };

    l.rank = malloc((size_t)count * sizeof *l.rank);
    l.place = malloc((size_t)count * sizeof *l.place);
    if (l.rank == NULL || l.place == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        const packed_case *p = cache_packed(held, ranks[i]);
        l.rank[i] = ranks[i];
        if (check_case(held, ranks[i], p, err) == PONS_OK)
            place_case(&l, p, &l.place[i], err);
    }
    if (err->status != PONS_OK)
        case_layout_clear(&l);
    *out = l;
    return err->status;
}

void case_layout_clear(case_layout *l)
{
    free(l->rank);
    free(l->place);
    *l = (case_layout){ .size = 0 };
}

case_place case_layout_of(const case_layout *l, int rank)
{
    int i = 0;

    while (l->rank[i] != rank)
        i++;
    return l->place[i];
}

pons_status case_layout_fill(const case_layout *l, const cache *held, case_layout_put *put,
                             void *context, pons_error *err)
{
    for (int i = 0; i < l->count; i++) {
        const case_place *place = &l->place[i];
        const int32_t begin[PIECE_COUNT] = { place->values, place->table, place->target };
        const packed_case *p = cache_packed(held, l->rank[i]);
        case_piece piece[PIECE_COUNT];

        list_pieces(p, piece);
        for (int k = 0; k < PIECE_COUNT; k++)
            if (piece[k].size > 0 && put(context, (size_t)begin[k] * PONS_PATCH_UNIT, piece[k].from,
                                         piece[k].size, err) != PONS_OK)
                return err->status;
        if (packed_case_check(p, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}
