/*
 * label_map.c - a table from id to target, applied to a whole label.
 */
#include "data/dataset/label_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"
#include "data/dataset/class_list.h"

static void map_id(label_map *m, const dataset *d, int id)
{
    int c = class_list_find(d->classes, d->class_count, id);

    m->class_of[id] = (int16_t)c;
    if (c < 0)
        return;
    if (d->region_count == 0)
        m->value[id] = (uint8_t)c;
    for (int r = 0; r < d->region_count; r++)
        m->value[(size_t)id * m->channels + r] = class_list_find(&d->regions[r], 1, id) == 0;
}

pons_status label_map_init(label_map *m, const dataset *d, pons_error *err)
{
    *m = (label_map){ .count = 1, .channels = dataset_target_channels(d) };
    for (int c = 0; c < d->class_count; c++) {
        for (int i = 0; i < d->classes[c].id_count; i++) {
            if (d->classes[c].id[i] >= m->count)
                m->count = d->classes[c].id[i] + 1;
        }
    }
    m->class_of = calloc((size_t)m->count, sizeof *m->class_of);
    m->value = calloc((size_t)m->count, (size_t)m->channels);
    if (m->class_of == NULL || m->value == NULL) {
        label_map_clear(m);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    for (int id = 0; id < m->count; id++)
        map_id(m, d, id);
    return PONS_OK;
}

void label_map_clear(label_map *m)
{
    free(m->class_of);
    free(m->value);
    *m = (label_map){ 0 };
}

static int64_t id_at(const volume *label, int64_t voxel)
{
    return label->type == PONS_U8 ? ((const uint8_t *)label->voxels)[voxel]
                                  : ((const int32_t *)label->voxels)[voxel];
}

/* The first id that is not listed is refused, with its voxels. */
static pons_status refuse_unlisted(const label_map *m, const volume *label, const char *case_id,
                                   const char *file, pons_error *err)
{
    int64_t count = pons_volume_count(label), first = 0, voxels = 0;

    while (label_map_class(m, id_at(label, first)) >= 0)
        first++;
    for (int64_t v = first; v < count; v++)
        voxels += id_at(label, v) == id_at(label, first);
    return pons_fail(err, PONS_DATA, "case '%s': '%s' has id %" PRId64 " in %" PRId64 " voxel%s, "
                     "which 'labels' does not list", case_id, file, id_at(label, first), voxels,
                     voxels == 1 ? "" : "s");
}

/* ---- bytes to one channel -------------------------------------------------------------------- */

/* What becomes of each id that a byte holds. */
typedef struct byte_map {
    uint8_t value[256];
    bool listed[256];
} byte_map;

static void byte_map_init(byte_map *b, const label_map *m)
{
    for (int id = 0; id < 256; id++) {
        b->listed[id] = label_map_class(m, id) >= 0;
        b->value[id] = b->listed[id] && m->channels == 1 ? m->value[id] : 0;
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
        x[v] = b->value[x[v]];
}

/*
 * Most labels are one id over long stretches: a run of voxels that equals the one before it needs
 * no look at the table.
 */
enum { RUN = 8 };

static bool all_bytes_listed(const byte_map *b, const uint8_t *x, int64_t count)
{
    int64_t v = 0;

    for (; v + RUN <= count; v += RUN) {
        if (v > 0 && memcmp(x + v, x + v - RUN, RUN) == 0)
            continue;
        if (!bytes_listed(b, x + v, RUN))
            return false;
    }
    return bytes_listed(b, x + v, count - v);
}

static void map_all_bytes(const byte_map *b, uint8_t *x, int64_t count)
{
    uint64_t before = 0, mapped = 0, now;
    int64_t v = 0;

    for (; v + RUN <= count; v += RUN) {
        memcpy(&now, x + v, RUN);
        if (v == 0 || now != before) {
            before = mapped = now;
            map_bytes(b, (uint8_t *)&mapped, RUN);
        }
        memcpy(x + v, &mapped, RUN);
    }
    map_bytes(b, x + v, count - v);
}

/* ---- any ids to any target ------------------------------------------------------------------- */

/* A label and its target while pieces of it are looked at. */
typedef struct mapping {
    const label_map *map;
    const byte_map *bytes;
    const volume *label;
    uint8_t *target;
    _Atomic bool unlisted;
} mapping;

static void ids_listed(void *context, int64_t first, int64_t end)
{
    mapping *m = context;
    bool listed = true;

    for (int64_t v = first; v < end; v++)
        listed &= label_map_class(m->map, id_at(m->label, v)) >= 0;
    if (!listed)
        m->unlisted = true;
}

static void map_ids(void *context, int64_t first, int64_t end)
{
    const mapping *m = context;
    size_t channels = (size_t)m->map->channels;

    for (int64_t v = first; v < end; v++)
        memcpy(m->target + (size_t)v * channels,
               m->map->value + (size_t)id_at(m->label, v) * channels, channels);
}

static pons_status map_voxels(mapping *m, volume *label, pons_error *err)
{
    size_t size = (size_t)pons_volume_count(label) * (size_t)m->map->channels;

    m->target = pages_alloc(size);
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
    mapping *m = context;

    if (!all_bytes_listed(m->bytes, (const uint8_t *)m->label->voxels + first, end - first))
        m->unlisted = true;
}

static void map_bytes_of_piece(void *context, int64_t first, int64_t end)
{
    const mapping *m = context;

    map_all_bytes(m->bytes, (uint8_t *)m->label->voxels + first, end - first);
}

pons_status label_map_apply(const label_map *m, volume *label, const char *case_id,
                            const char *file, pons_error *err)
{
    bool bytes = label->type == PONS_U8;
    int64_t count = pons_volume_count(label), piece = parallel_piece(1);
    byte_map table;
    mapping all = { .map = m, .bytes = &table, .label = label };

    byte_map_init(&table, m);
    parallel_run(count, piece, bytes ? bytes_of_piece_listed : ids_listed, &all);
    if (all.unlisted)
        return refuse_unlisted(m, label, case_id, file, err);
    if (!bytes || m->channels > 1)
        return map_voxels(&all, label, err);
    parallel_run(count, piece, map_bytes_of_piece, &all);
    return PONS_OK;
}
