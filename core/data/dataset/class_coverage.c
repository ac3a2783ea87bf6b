/*
 * class_coverage.c - look for the classes in targets until all were seen.
 */
#include "data/dataset/class_coverage.h"

#include <string.h>

void class_seen_init(class_seen *s, const dataset *d)
{
    *s = (class_seen){
        .data = d, .missing = d->region_count > 0 ? d->region_count : d->class_count
    };
    pthread_mutex_init(&s->lock, NULL);
}

void class_seen_clear(class_seen *s)
{
    pthread_mutex_destroy(&s->lock);
}

/*
 * Most targets are one class over long stretches: eight bytes that equal the eight before need no
 * look.
 */
static void look_for_classes(const uint8_t *target, int64_t voxels, bool *found)
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

static void look_for_regions(const uint8_t *target, int64_t voxels, int count, bool *found)
{
    int left = count;

    for (int64_t v = 0; v < voxels && left > 0; v++) {
        for (int r = 0; r < count; r++) {
            if (target[v * count + r] != 0 && !found[r]) {
                found[r] = true;
                left--;
            }
        }
    }
}

static int class_count(const class_seen *s)
{
    return s->data->region_count > 0 ? s->data->region_count : s->data->class_count;
}

void class_seen_join(class_seen *s, const bool seen[CLASS_COUNT_MAX])
{
    pthread_mutex_lock(&s->lock);
    for (int c = 0; c < class_count(s); c++) {
        s->missing -= seen[c] && !s->seen[c];
        s->seen[c] = s->seen[c] || seen[c];
    }
    pthread_mutex_unlock(&s->lock);
}

void class_seen_add(class_seen *s, const uint8_t *target, int64_t voxels)
{
    const int regions = s->data->region_count;
    bool found[CLASS_COUNT_MAX] = { false };

    pthread_mutex_lock(&s->lock);
    bool needed = s->missing > 0 && target != NULL;
    pthread_mutex_unlock(&s->lock);
    if (!needed)
        return;
    if (regions > 0)
        look_for_regions(target, voxels, regions, found);
    else
        look_for_classes(target, voxels, found);
    class_seen_join(s, found);
}

void class_seen_warn(const class_seen *s, logger *l)
{
    arena *memory = s->missing > 0 && l != NULL ? arena_new() : NULL;

    if (memory == NULL)
        return;
    for (int c = 0; c < class_count(s); c++) {
        if (!s->seen[c])
            log_warning(l, "%s", class_list_missing(memory, s->data, c));
    }
    arena_free(memory);
}
