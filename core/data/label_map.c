/*
 * label_map.c - a table from id to target, applied to a whole label.
 */
#include <data/label_map.h>

#include <data/class_list.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* The first id that is not listed, and its voxels. */
static int64_t count_unlisted(const label_map *m, const int32_t *ids, int64_t count, int32_t *id)
{
    int64_t voxels = 0;

    for (int64_t v = 0; v < count; v++) {
        if (voxels == 0 && label_map_class(m, ids[v]) < 0)
            *id = ids[v];
        voxels += label_map_class(m, ids[v]) < 0 && ids[v] == *id;
    }
    return voxels;
}

pons_status label_map_apply(const label_map *m, volume *label, const char *case_id,
                            const char *file, pons_error *err)
{
    int64_t count = label->extent[0] * label->extent[1] * label->extent[2];
    const int32_t *ids = label->voxels;
    int32_t unlisted = 0;
    int64_t voxels = count_unlisted(m, ids, count, &unlisted);
    uint8_t *target;

    if (voxels > 0)
        return pons_fail(err, PONS_DATA,
                         "case '%s': '%s' has id %" PRId32 " in %" PRId64 " voxel%s, which "
                         "'labels' does not list", case_id, file, unlisted, voxels,
                         voxels == 1 ? "" : "s");
    target = malloc((size_t)count * (size_t)m->channels);
    if (target == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int64_t v = 0; v < count; v++)
        memcpy(target + v * m->channels, m->value + (size_t)ids[v] * (size_t)m->channels,
               (size_t)m->channels);
    free(label->voxels);
    label->voxels = target;
    label->type = PONS_U8;
    label->channels = m->channels;
    return PONS_OK;
}
