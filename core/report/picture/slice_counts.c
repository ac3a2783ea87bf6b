/*
 * slice_counts.c - see slice_counts.h.
 */
#include "report/picture/slice_counts.h"

#include <stdlib.h>
#include <string.h>

#include "report/picture/class_marks.h"

pons_status slice_counts_init(slice_counts *s, const int64_t extent[3], pons_error *err)
{
    int64_t *all = calloc((size_t)(extent[0] + extent[1] + extent[2]), sizeof *all);

    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    memcpy(s->extent, extent, sizeof s->extent);
    s->axis[0] = all;
    s->axis[1] = all + extent[0];
    s->axis[2] = all + extent[0] + extent[1];
    return PONS_OK;
}

void slice_counts_clear(slice_counts *s)
{
    free(s->axis[0]);
    *s = (slice_counts){ .axis = { NULL } };
}

bool slice_counts_add_marked(slice_counts *s, const volume *label)
{
    int64_t n = 0, marked = 0;

    for (int64_t d = 0; d < s->extent[0]; d++)
        for (int64_t h = 0; h < s->extent[1]; h++)
            for (int64_t w = 0; w < s->extent[2]; w++, n++)
                if (mark_class_of(label, n) != 0) {
                    s->axis[0][d]++;
                    s->axis[1][h]++;
                    s->axis[2][w]++;
                    marked++;
                }
    return marked > 0;
}

int64_t slice_counts_largest(const slice_counts *s, int axis)
{
    const int64_t *count = s->axis[axis];
    int64_t middle = s->extent[axis] / 2, largest = middle;

    for (int64_t n = 0; n < s->extent[axis]; n++)
        if (count[n] > count[largest]
            || (count[n] == count[largest] && llabs(n - middle) < llabs(largest - middle)))
            largest = n;
    return largest;
}

bool slice_axis_is_drawn(const int64_t extent[3], int axis)
{
    for (int a = 0; a < 3; a++)
        if (extent[a] == 1)
            return a == axis;
    return true;
}
