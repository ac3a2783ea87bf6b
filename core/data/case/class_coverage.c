/*
 * class_coverage.c - search targets for classes until every class has been found.
 */
#include "data/case/class_coverage.h"

#include <string.h>

void class_coverage_init(class_coverage *s, const dataset *d)
{
    int count = d->region_count > 0 ? d->region_count : d->class_count;

    *s = (class_coverage){ .data = d, .count = d->target == TARGET_OF_VOXELS ? count : 0 };
    s->missing = s->count;
    pthread_mutex_init(&s->lock, NULL);
}

void class_coverage_clear(class_coverage *s)
{
    pthread_mutex_destroy(&s->lock);
}

/* Targets have long runs of one class: eight bytes equal to the previous eight are skipped. */
static void find_classes_in(const uint8_t *target, int64_t voxels, bool *found)
{
    uint64_t before = 0, now;
    int64_t v = 0;

    for (; v + 8 <= voxels; v += 8) {
        memcpy(&now, target + v, 8);
        if (v > 0 && now == before)
            continue;
        before = now;
        for (int i = 0; i < 8; i++)
            found[target[v + i]] = true;
    }
    for (; v < voxels; v++)
        found[target[v]] = true;
}

static void find_regions_in(const uint8_t *target, int64_t voxels, int count, bool *found)
{
    int left = count;

    for (int64_t v = 0; v < voxels && left > 0; v++) {
        for (int r = 0; r < count; r++) {
            if (target[v * count + r] == 1 && !found[r]) {
                found[r] = true;
                left--;
            }
        }
    }
}

void class_coverage_join(class_coverage *s, const bool seen[CLASS_COUNT_MAX])
{
    pthread_mutex_lock(&s->lock);
    for (int c = 0; c < s->count; c++) {
        s->missing -= seen[c] && !s->seen[c];
        s->seen[c] = s->seen[c] || seen[c];
    }
    pthread_mutex_unlock(&s->lock);
}

void class_coverage_add(class_coverage *s, const uint8_t *target, int64_t voxels)
{
    const int regions = s->data->region_count;
    bool found[CLASS_COUNT_MAX] = { false };

    pthread_mutex_lock(&s->lock);
    bool needed = s->missing > 0 && target != NULL;
    pthread_mutex_unlock(&s->lock);
    if (!needed)
        return;
    if (regions > 0)
        find_regions_in(target, voxels, regions, found);
    else
        find_classes_in(target, voxels, found);
    class_coverage_join(s, found);
}

void class_coverage_warn(const class_coverage *s, logger *l)
{
    arena *memory = s->missing > 0 && l != NULL ? arena_new() : NULL;

    if (memory == NULL)
        return;
    for (int c = 0; c < s->count; c++) {
        if (!s->seen[c])
            log_warning(l, "%s", class_list_missing_text(memory, s->data, c));
    }
    arena_free(memory);
}
