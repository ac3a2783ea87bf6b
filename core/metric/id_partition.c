/*
 * id_partition.c - partition label ids by classes.
 *
 * Each class in turn splits every area that contains some of its ids, and moves these to a new
 * area.
 */
#include "metric/id_partition.h"

static int count_ids(const data_class *classes, int count)
{
    int ids = 0;

    for (int c = 0; c < count; c++)
        ids += classes[c].id_count;
    return ids;
}

void id_partition_make(arena *memory, const data_class *classes, int count, id_partition *out)
{
    int most = count_ids(classes, count), blocks = 0;
    int32_t *of = arena_alloc(memory, (LABEL_ID_MAX + 1) * sizeof *of);
    int *splitter = arena_alloc(memory, ((size_t)most + 1) * sizeof *splitter);
    int *part = arena_alloc(memory, ((size_t)most + 1) * sizeof *part);

    *out = (id_partition){ .of = of, .disjoint = true };
    for (int c = 0; c < count; c++) {
        for (int i = 0; i < classes[c].id_count; i++) {
            int32_t *area = &of[classes[c].id[i]];

            out->disjoint = out->disjoint && *area == 0;
            if (splitter[*area] != c + 1)
                part[*area] = ++blocks;
            splitter[*area] = c + 1;
            *area = part[*area];
        }
    }
    out->count = blocks + 1;
}

pons_status id_partition_check_ids(const char *path, const volume *v, pons_error *err)
{
    int64_t voxels = v->type == PONS_U8 ? 0 : pons_volume_count(v), i = 0;
    const int32_t *id = v->voxels;

    while (i < voxels && id[i] >= 0 && id[i] <= LABEL_ID_MAX)
        i++;
    if (i == voxels)
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "'%s' holds id %d, expected 0 to %d", path, (int)id[i],
                     LABEL_ID_MAX);
}

void id_partition_apply(const id_partition *a, volume *v)
{
    int64_t voxels = pons_volume_count(v);
    int32_t *id = v->voxels;

    for (int64_t i = 0; i < voxels; i++)
        id[i] = a->of[id[i]];
}
