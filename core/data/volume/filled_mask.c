/*
 * filled_mask.c - flood the zeros of an image from its border; the rest is the mask.
 *
 * The flood moves by runs of zeros along k. A run that is reached marks all its voxels, and puts
 * the first voxel of each run that touches it in the four neighbouring rows on a stack.
 */
#include "data/volume/filled_mask.h"

#include <stdlib.h>

enum { PIECE = 1 << 16 };     /* voxels */

/* The states of a voxel: in the mask, so far as known, or outside. */
enum { ZERO = 0, INSIDE, OUTSIDE };

typedef struct flood {
    const int64_t *extent;
    uint8_t *state;
    int64_t *stack, count, room;
    bool failed;              /* out of memory */
} flood;

/* ---- voxels that are not 0 ------------------------------------------------------------------- */

typedef struct nonzero_search {
    const pons_volume *v;
    uint8_t *state;
} nonzero_search;

static void find_nonzero(void *context, int64_t first, int64_t end)
{
    const nonzero_search *s = context;
    int channels = s->v->channels;
    const float *x = (const float *)s->v->voxels + first * channels;

    for (int64_t n = first; n < end; n++, x += channels) {
        bool found = false;

        for (int c = 0; c < channels; c++)
            found |= x[c] != 0;
        s->state[n] = found ? INSIDE : ZERO;
    }
}

/* ---- the flood ------------------------------------------------------------------------------- */

static void push_voxel(flood *f, int64_t voxel)
{
    if (f->count == f->room) {
        int64_t room = 2 * f->room + 1024;
        int64_t *more = realloc(f->stack, (size_t)room * sizeof *more);

        if (!more) {
            f->failed = true;
            return;
        }
        f->stack = more;
        f->room = room;
    }
    f->stack[f->count++] = voxel;
}

/* Push the first voxel of each run of zeros in [first, end). */
static void push_runs(flood *f, int64_t first, int64_t end)
{
    for (int64_t n = first; n < end; n++)
        if (f->state[n] == ZERO && (n == first || f->state[n - 1] != ZERO))
            push_voxel(f, n);
}

/* Mark the run of zeros around a voxel, and push the runs beside it. */
static void flood_run(flood *f, int64_t voxel)
{
    const int64_t *n = f->extent;
    int64_t row = voxel / n[2], j = row % n[1], i = row / n[1];
    int64_t first = voxel, end = voxel;

    if (f->state[voxel] != ZERO)
        return;
    while (first > row * n[2] && f->state[first - 1] == ZERO)
        first--;
    while (end < (row + 1) * n[2] && f->state[end] == ZERO)
        end++;
    for (int64_t at = first; at < end; at++)
        f->state[at] = OUTSIDE;
    if (j > 0)
        push_runs(f, first - n[2], end - n[2]);
    if (j + 1 < n[1])
        push_runs(f, first + n[2], end + n[2]);
    if (i > 0)
        push_runs(f, first - n[1] * n[2], end - n[1] * n[2]);
    if (i + 1 < n[0])
        push_runs(f, first + n[1] * n[2], end + n[1] * n[2]);
}

static void flood_from(flood *f, int64_t voxel)
{
    flood_run(f, voxel);
    while (f->count > 0)
        flood_run(f, f->stack[--f->count]);
}

/* Start at each voxel on the six sides of the volume. */
static void flood_border(flood *f)
{
    const int64_t *n = f->extent;

    for (int64_t row = 0; row < n[0] * n[1]; row++) {
        int64_t i = row / n[1], j = row % n[1], first = row * n[2];
        bool side = i == 0 || i + 1 == n[0] || j == 0 || j + 1 == n[1];

        for (int64_t k = 0; side && k < n[2]; k++)
            flood_from(f, first + k);
        flood_from(f, first);
        flood_from(f, first + n[2] - 1);
    }
}

static void take_mask(void *context, int64_t first, int64_t end)
{
    uint8_t *state = context;

    for (int64_t n = first; n < end; n++)
        state[n] = state[n] != OUTSIDE;
}

pons_status filled_mask_make(const pons_volume *v, uint8_t **out, pons_error *err)
{
    int64_t count = pons_volume_count(v);
    flood f = { .extent = v->extent, .state = malloc((size_t)count) };

    if (f.state) {
        nonzero_search s = { v, f.state };

        pons_parallel_for(count, PIECE, find_nonzero, &s);
        flood_border(&f);
        pons_parallel_for(count, PIECE, take_mask, f.state);
    }
    free(f.stack);
    if (!f.state || f.failed) {
        free(f.state);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    *out = f.state;
    return PONS_OK;
}
