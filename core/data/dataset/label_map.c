/*
 * label_map.c - a table from label id to target, applied to all voxels of a label.
 *
 * The target is written in place where label and target both take one byte per voxel.
 */
#include "data/dataset/label_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"

/* Set the class and the target of every id that a class lists. */
static void set_targets(label_map *m, const dataset *d)
{
    for (int id = 0; id < m->count; id++)
        m->class_index[id] = -1;
    for (int c = 0; c < d->class_count; c++)
        for (int i = 0; i < d->classes[c].id_count; i++) {
            int id = d->classes[c].id[i];
            m->class_index[id] = (int16_t)c;
            if (d->region_count == 0)
                m->target_value[id] = (uint8_t)c;
        }
    for (int i = 0; d->ignored != NULL && i < d->ignored->id_count; i++)
        m->class_index[d->ignored->id[i]] = LABEL_MAP_IGNORED;
    for (int r = 0; r < d->region_count; r++)
        for (int i = 0; i < d->regions[r].id_count; i++) {
            int id = d->regions[r].id[i];
            if (label_map_class_index(m, id) >= 0)
                m->target_value[(size_t)id * (size_t)m->channels + (size_t)r] = 1;
        }
}

/* Enlarge the table to hold the ids of a class. */
static void include_ids(label_map *m, const data_class *c)
{
    for (int i = 0; i < c->id_count; i++) {
        if (c->id[i] >= m->count)
            m->count = c->id[i] + 1;
    }
}

pons_status label_map_init(label_map *m, const dataset *d, pons_error *err)
{
    *m = (label_map){ .count = 1, .channels = dataset_target_channels(d) };
    for (int c = 0; c < d->class_count; c++)
        include_ids(m, &d->classes[c]);
    if (d->ignored != NULL)
        include_ids(m, d->ignored);
    m->class_index = calloc((size_t)m->count, sizeof *m->class_index);
    m->target_value = calloc((size_t)m->count, (size_t)m->channels);
    if (m->class_index == NULL || m->target_value == NULL) {
        label_map_clear(m);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    set_targets(m, d);
    return PONS_OK;
}

void label_map_clear(label_map *m)
{
    free(m->class_index);
    free(m->target_value);
    *m = (label_map){ 0 };
}

static int64_t id_at(const volume *label, int64_t voxel)
{
    return label->type == PONS_U8 ? ((const uint8_t *)label->voxels)[voxel]
                                  : ((const int32_t *)label->voxels)[voxel];
}

/* Fail for the first unlisted label id, with its number of voxels. */
static pons_status refuse_unlisted(const label_map *m, const volume *label, const char *case_id,
                                   const char *file, pons_error *err)
{
    int64_t count = pons_volume_count(label), first = 0, voxels = 0;

    while (label_map_class_index(m, id_at(label, first)) >= 0)
        first++;
    for (int64_t v = first; v < count; v++)
        voxels += id_at(label, v) == id_at(label, first);
    return pons_fail(err, PONS_DATA, "case '%s': '%s' has id %" PRId64 " in %" PRId64 " voxel%s, "
                     "which 'labels' does not list", case_id, file, id_at(label, first), voxels,
                     voxels == 1 ? "" : "s");
}

/* ---- mask of counted voxels ------------------------------------------------------------------ */

typedef struct masking {
    const label_map *map;
    const volume *label;
    uint8_t *valid;
} masking;

static void mask_piece(void *context, int64_t first, int64_t end)
{
    const masking *m = context;

    for (int64_t v = first; v < end; v++)
        m->valid[v] = label_map_class_index(m->map, id_at(m->label, v)) != LABEL_MAP_IGNORED;
}

pons_status label_map_valid(const label_map *m, const volume *label, volume *valid,
                            pons_error *err)
{
    if (pons_volume_init(valid, PONS_U8, 1, label->extent, err) != PONS_OK)
        return err->status;
    memcpy(valid->affine, label->affine, sizeof valid->affine);
    parallel_run(pons_volume_count(label), parallel_piece(1), mask_piece,
                 &(masking){ m, label, valid->voxels });
    return PONS_OK;
}

/* ---- U8 labels to one channel ---------------------------------------------------------------- */

/* The target value of each of the 256 ids of a U8 label. */
typedef struct byte_map {
    uint8_t target_value[256];
    bool listed[256];
} byte_map;

static void byte_map_init(byte_map *b, const label_map *m)
{
    for (int id = 0; id < 256; id++) {
        b->listed[id] = label_map_class_index(m, id) >= 0;
        b->target_value[id] = b->listed[id] && m->channels == 1 ? m->target_value[id] : 0;
    }
}

static bool bytes_listed(const byte_map *b, const uint8_t *x, int64_t count)
{
    bool listed = true;

    for (int64_t v = 0; v < count; v++)
        listed &= b->listed[x[v]];
    return listed;
}

static void map_bytes(const byte_map *b, uint8_t *x, int64_t count)
{
    for (int64_t v = 0; v < count; v++)
        x[v] = b->target_value[x[v]];
}

/*
 * Labels have long runs of one id: a group of voxels equal to the previous group is not looked up.
 */
enum { GROUP = 8 };

static bool all_bytes_listed(const byte_map *b, const uint8_t *x, int64_t count)
{
    int64_t v = 0;

    for (; v + GROUP <= count; v += GROUP) {
        if (v > 0 && memcmp(x + v, x + v - GROUP, GROUP) == 0)
            continue;
        if (!bytes_listed(b, x + v, GROUP))
            return false;
    }
    return bytes_listed(b, x + v, count - v);
}

static void map_all_bytes(const byte_map *b, uint8_t *x, int64_t count)
{
    uint64_t before = 0, mapped = 0, now;
    int64_t v = 0;

    for (; v + GROUP <= count; v += GROUP) {
        memcpy(&now, x + v, GROUP);
        if (v == 0 || now != before) {
            before = mapped = now;
            map_bytes(b, (uint8_t *)&mapped, GROUP);
        }
        memcpy(x + v, &mapped, GROUP);
    }
    map_bytes(b, x + v, count - v);
}

/* ---- other label ids and targets ------------------------------------------------------------- */

/* The context of the parallel loops over a label. */
typedef struct label_mapping {
    const label_map *map;
    const byte_map *bytes;
    const volume *label;
    uint8_t *target;
    _Atomic bool unlisted;
} label_mapping;

static void check_ids_listed(void *context, int64_t first, int64_t end)
{
    label_mapping *m = context;
    bool listed = true;

    for (int64_t v = first; v < end; v++)
        listed &= label_map_class_index(m->map, id_at(m->label, v)) >= 0;
    if (!listed)
        m->unlisted = true;
}

static void map_ids(void *context, int64_t first, int64_t end)
{
    const label_mapping *m = context;
    size_t channels = (size_t)m->map->channels;

    for (int64_t v = first; v < end; v++)
        memcpy(m->target + (size_t)v * channels,
               m->map->target_value + (size_t)id_at(m->label, v) * channels, channels);
}

static pons_status map_voxels(label_mapping *m, volume *label, pons_error *err)
{
    size_t size = (size_t)pons_volume_count(label) * (size_t)m->map->channels;

    m->target = huge_pages_alloc(size);
    if (m->target == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    parallel_run(pons_volume_count(label), parallel_piece(1), map_ids, m);
    free(label->voxels);
    label->voxels = m->target;
    label->type = PONS_U8;
    label->channels = m->map->channels;
    return PONS_OK;
}

static void bytes_of_piece_listed(void *context, int64_t first, int64_t end)
{
    label_mapping *m = context;

    if (!all_bytes_listed(m->bytes, (const uint8_t *)m->label->voxels + first, end - first))
        m->unlisted = true;
}

static void map_bytes_of_piece(void *context, int64_t first, int64_t end)
{
    const label_mapping *m = context;

    map_all_bytes(m->bytes, (uint8_t *)m->label->voxels + first, end - first);
}

pons_status label_map_apply(const label_map *m, volume *label, const char *case_id,
                            const char *file, pons_error *err)
{
    bool bytes = label->type == PONS_U8;
    int64_t count = pons_volume_count(label), piece = parallel_piece(1);
    byte_map table;
    label_mapping all = { .map = m, .bytes = &table, .label = label };

    byte_map_init(&table, m);
    parallel_run(count, piece, bytes ? bytes_of_piece_listed : check_ids_listed, &all);
    if (all.unlisted)
        return refuse_unlisted(m, label, case_id, file, err);
    if (!bytes || m->channels > 1)
        return map_voxels(&all, label, err);
    parallel_run(count, piece, map_bytes_of_piece, &all);
    return PONS_OK;
}
