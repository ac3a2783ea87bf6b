/*
 * connected_components.c - find connected components by runs of voxels.
 *
 * A run is a maximal sequence of voxels of a row. Runs of neighbouring rows that touch are merged
 * (union-find). A component is a tree of runs whose root is its first run in memory.
 */
#include "metric/connected_components.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

typedef struct run {
    int32_t begin, end;     /* voxels begin .. end - 1 of a row                                   */
    int64_t parent;         /* an earlier run of the component, or itself                         */
    int64_t size;           /* of a root: voxels of the component                                 */
    bool touched;           /* of a root: the component has a voxel of the other mask             */
} run;

typedef struct run_list {
    run *item;
    int64_t count, room;
    int64_t *first;         /* [row + 1] first run of each row, and the number of runs            */
} run_list;

/* Find the root; path halving keeps later searches short. */
static int64_t find_root(run *item, int64_t i)
{
    while (item[i].parent != i) {
        item[i].parent = item[item[i].parent].parent;
        i = item[i].parent;
    }
    return i;
}

static void merge_runs(run *item, int64_t i, int64_t k)
{
    int64_t a = find_root(item, i), b = find_root(item, k);

    if (a == b)
        return;
    item[max_i64(a, b)].parent = min_i64(a, b);
    item[min_i64(a, b)].size += item[max_i64(a, b)].size;
}

/* Merge touching runs of two rows. Runs are sorted, so the one that ends first is done. */
static void merge_rows(run_list *l, int64_t row, int64_t other)
{
    int64_t i = l->first[row], k = l->first[other];

    while (i < l->first[row + 1] && k < l->first[other + 1]) {
        if (l->item[i].begin <= l->item[k].end && l->item[k].begin <= l->item[i].end)
            merge_runs(l->item, i, k);
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
    l->item[l->count] = (run){ begin, end, l->count, end - begin, false };
    l->count++;
    return true;
}

/* The voxels of an array that belong to components: bits of 'mask' equal 'value'. */
typedef struct component_voxels {
    const uint8_t *first;
    int stride;
    uint8_t mask, value;
} component_voxels;

static bool add_row_runs(run_list *l, const component_voxels *v, int64_t at, int64_t extent)
{
    const uint8_t *row = v->first + at * v->stride;

    for (int64_t k = 0; k < extent; k++) {
        int64_t begin = k;

        while (k < extent && (row[k * v->stride] & v->mask) == v->value)
            k++;
        if (k > begin && !add_run(l, (int32_t)begin, (int32_t)k))
            return false;
    }
    return true;
}

/* Merge with the earlier rows that touch: one of the same plane, three of the plane before. */
static void merge_earlier_rows(run_list *l, const int64_t extent[3], int64_t row)
{
    int64_t i = row / extent[1], j = row % extent[1];

    if (j > 0)
        merge_rows(l, row, row - 1);
    for (int64_t n = j - 1; i > 0 && n <= j + 1; n++)
        if (n >= 0 && n < extent[1])
            merge_rows(l, row, (i - 1) * extent[1] + n);
}

static int64_t find_largest_component(const run_list *l)
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
    int64_t kept = find_largest_component(l);

    for (int64_t row = 0; row < extent[0] * extent[1]; row++, labels += extent[2] * stride)
        for (int64_t i = l->first[row]; i < l->first[row + 1]; i++) {
            if (find_root(l->item, i) == kept)
                continue;
            for (int64_t k = l->item[i].begin; k < l->item[i].end; k++)
                labels[k * stride] = other;
        }
}

/* Find all components. The caller frees the list, also after an error. */
static pons_status find_components(const component_voxels *v, const int64_t extent[3],
                                   run_list *l, pons_error *err)
{
    int64_t rows = extent[0] * extent[1];
    bool good;

    *l = (run_list){ .first = calloc((size_t)rows + 1, sizeof *l->first) };
    good = l->first != NULL;
    for (int64_t row = 0; row < rows && good; row++) {
        good = add_row_runs(l, v, row * extent[2], extent[2]);
        l->first[row + 1] = l->count;
        if (good)
            merge_earlier_rows(l, extent, row);
    }
    return good ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory for connected components");
}

static void run_list_free(run_list *l)
{
    free(l->first);
    free(l->item);
}

pons_status connected_components_keep_largest(uint8_t *labels, int stride, const int64_t extent[3],
                                              uint8_t value, uint8_t other, pons_error *err)
{
    run_list l;

    if (find_components(&(component_voxels){ labels, stride, 0xff, value }, extent, &l, err)
        == PONS_OK)
        clear_others(&l, labels, stride, extent, other);
    run_list_free(&l);
    return err->status;
}

static bool run_has(const uint8_t *row, const run *r, uint8_t with)
{
    for (int64_t k = r->begin; k < r->end; k++)
        if (row[k] & with)
            return true;
    return false;
}

pons_status connected_components_count(const uint8_t *bits, const int64_t extent[3], uint8_t of,
                                       uint8_t with, int64_t count[2], pons_error *err)
{
    run_list l;

    count[0] = count[1] = 0;
    if (find_components(&(component_voxels){ bits, 1, of, of }, extent, &l, err) == PONS_OK) {
        for (int64_t row = 0; row < extent[0] * extent[1]; row++)
            for (int64_t i = l.first[row]; i < l.first[row + 1]; i++)
                if (run_has(bits + row * extent[2], &l.item[i], with))
                    l.item[find_root(l.item, i)].touched = true;
        for (int64_t i = 0; i < l.count; i++)
            if (l.item[i].parent == i)
                count[l.item[i].touched]++;
    }
    run_list_free(&l);
    return err->status;
}

/* Write the ids of a row's runs. A root comes before the other runs of its component. */
static void label_row(run_list *l, int64_t row, int32_t *id, int32_t *number, int32_t *count)
{
    for (int64_t i = l->first[row]; i < l->first[row + 1]; i++) {
        int64_t root = find_root(l->item, i);

        if (root == i)
            number[i] = ++*count;
        for (int64_t k = l->item[i].begin; k < l->item[i].end; k++)
            id[k] = number[root];
    }
}

pons_status connected_components_label(const uint8_t *bits, const int64_t extent[3], uint8_t of,
                                       int32_t *id, int32_t *count, pons_error *err)
{
    int64_t rows = extent[0] * extent[1];
    int32_t *number = NULL;
    run_list l;

    *count = 0;
    if (find_components(&(component_voxels){ bits, 1, of, of }, extent, &l, err) == PONS_OK) {
        number = malloc((size_t)(l.count + 1) * sizeof *number);
        if (number == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory for connected components");
        memset(id, 0, (size_t)(rows * extent[2]) * sizeof *id);
        for (int64_t row = 0; row < rows && number != NULL; row++)
            label_row(&l, row, id + row * extent[2], number, count);
        free(number);
    }
    run_list_free(&l);
    return err->status;
}
