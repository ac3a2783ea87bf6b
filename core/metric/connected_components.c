/*
 * connected_components.c - connected parts by runs: the voxels of a row that follow one another
 * are one run, runs of neighbouring rows that touch are joined, and a part is a tree of runs whose
 * root is the first of them in memory.
 */
#include "metric/connected_components.h"

#include <stdlib.h>

typedef struct run {
    int32_t begin, end;     /* voxels of its row, the second not included                         */
    int64_t parent;         /* an earlier run of its part, or itself                              */
    int64_t size;           /* of a root: voxels of the part                                      */
} run;

typedef struct run_list {
    run *item;
    int64_t count, room;
    int64_t *first;         /* by row: its first run; one more at the end                         */
} run_list;

/* Joins make trees flatter on the way: later searches are short. */
static int64_t find_root(run *item, int64_t i)
{
    while (item[i].parent != i) {
        item[i].parent = item[item[i].parent].parent;
        i = item[i].parent;
    }
    return i;
}

static void join(run *item, int64_t i, int64_t k)
{
    int64_t a = find_root(item, i), b = find_root(item, k);

    if (a == b)
        return;
    item[a > b ? a : b].parent = a < b ? a : b;
    item[a < b ? a : b].size += item[a > b ? a : b].size;
}

/* Both rows are in order: the run that ends first touches nothing further on. */
static void join_rows(run_list *l, int64_t row, int64_t other)
{
    int64_t i = l->first[row], k = l->first[other];

    while (i < l->first[row + 1] && k < l->first[other + 1]) {
        if (l->item[i].begin <= l->item[k].end && l->item[k].begin <= l->item[i].end)
            join(l->item, i, k);
        if (l->item[i].end < l->item[k].end)
            i++;
        else
            k++;
    }
}

static bool add_run(run_list *l, int32_t begin, int32_t end)
{
    if (l->count == l->room) {
        int64_t room = 2 * l->room + 1024;
        run *more = realloc(l->item, (size_t)room * sizeof *more);

        if (more == NULL)
            return false;
        l->item = more;
        l->room = room;
    }
    l->item[l->count] = (run){ begin, end, l->count, end - begin };
    l->count++;
    return true;
}

static bool add_row(run_list *l, const uint8_t *labels, int stride, int64_t extent, uint8_t value)
{
    for (int64_t k = 0; k < extent; k++) {
        int64_t begin = k;

        while (k < extent && labels[k * stride] == value)
            k++;
        if (k > begin && !add_run(l, (int32_t)begin, (int32_t)k))
            return false;
    }
    return true;
}

/* Rows before this one that its voxels touch: one of its plane, three of the plane before. */
static void join_before(run_list *l, const int64_t extent[3], int64_t row)
{
    int64_t i = row / extent[1], j = row % extent[1];

    if (j > 0)
        join_rows(l, row, row - 1);
    for (int64_t n = j - 1; i > 0 && n <= j + 1; n++)
        if (n >= 0 && n < extent[1])
            join_rows(l, row, (i - 1) * extent[1] + n);
}

static int64_t find_largest(const run_list *l)
{
    int64_t best = 0;

    for (int64_t i = 1; i < l->count; i++)
        if (l->item[i].parent == i && l->item[i].size > l->item[best].size)
            best = i;
    return best;
}

static void clear_others(run_list *l, uint8_t *labels, int stride, const int64_t extent[3],
                         uint8_t other)
{
    int64_t kept = find_largest(l);

    for (int64_t row = 0; row < extent[0] * extent[1]; row++, labels += extent[2] * stride)
        for (int64_t i = l->first[row]; i < l->first[row + 1]; i++) {
            if (find_root(l->item, i) == kept)
                continue;
            for (int64_t k = l->item[i].begin; k < l->item[i].end; k++)
                labels[k * stride] = other;
        }
}

pons_status keep_largest_component(uint8_t *labels, int stride, const int64_t extent[3],
                                   uint8_t value, uint8_t other, pons_error *err)
{
    int64_t rows = extent[0] * extent[1];
    run_list l = { .first = calloc((size_t)rows + 1, sizeof *l.first) };
    bool held = l.first != NULL;

    for (int64_t row = 0; row < rows && held; row++) {
        held = add_row(&l, labels + row * extent[2] * stride, stride, extent[2], value);
        l.first[row + 1] = l.count;
        if (held)
            join_before(&l, extent, row);
    }
    if (held)
        clear_others(&l, labels, stride, extent, other);
    else
        pons_fail(err, PONS_DEVICE, "out of memory for connected parts");
    free(l.first);
    free(l.item);
    return err->status;
}
