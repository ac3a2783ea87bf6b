/*
 * window_blend.c - cutting windows out of an image and joining their logits. The network is behind
 * window_predictor.
 *
 * Nothing is padded in memory: each axis has a table that says where a voxel of the padded volume
 * comes from. Plane x of the image has its sums in row x % depth; where a device holds the sums,
 * there in its row x % held, and here, once they are fetched, in row x % depth of fewer.
 */
#include "window/window_blend.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pons/device.h>

#include "base/finite.h"
#include "base/integer.h"
#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"

enum { PIECE = 1 << 18, TILE = 1024, /* numbers that a thread takes at a time; in its cache       */
       WIDE = 16 };           /* classes that make a loop of their own                            */

struct stitch {
    window_settings settings;
    int channels, classes;
    window_axis axis[3];
    int64_t *source[3];    /* padded position -> image position, -1: zero                         */
    int64_t windows, volume; /* windows of the image; voxels of a window                          */
    int64_t plane, depth;  /* voxels of a plane of the image; planes that have a row              */
    int64_t held;          /* planes that have a row on the device; 0: the sums are here          */
    int64_t fetched;       /* planes that came from there                                         */
    int64_t window, done;  /* the next to be blended, and how many of its planes are              */
    float *importance;
    float *weight;         /* [depth][plane], summed                                              */
    float *sum;            /* [depth][plane][classes]                                             */
    const float *image;
    atomic_bool not_finite; /* of what has been taken                                             */
};

/* ---- geometry -------------------------------------------------------------------------------- */

static int64_t wrap(int64_t x, int64_t n)
{
    x %= n;
    return x < 0 ? x + n : x;
}

static int64_t source_of(window_padding padding, int64_t x, int64_t n)
{
    if (x >= 0 && x < n)
        return x;
    switch (padding) {
    case WINDOW_PAD_REPLICATE:
        return x < 0 ? 0 : n - 1;
    case WINDOW_PAD_CIRCULAR:
        return wrap(x, n);
    case WINDOW_PAD_REFLECT: {
        int64_t period = n > 1 ? 2 * (n - 1) : 1, y = wrap(x, period);
        return y < n ? y : period - y;
    }
    case WINDOW_PAD_CONSTANT:
        break;
    }
    return -1;
}

/* Which windows of each axis make window 'number' of the image. */
static void window_index(const stitch *s, int64_t number, int index[3])
{
    for (int a = 2; a >= 0; a--) {
        index[a] = (int)(number % s->axis[a].count);
        number /= s->axis[a].count;
    }
}

static void window_start(const stitch *s, int64_t number, int64_t start[3])
{
    int index[3];

    window_index(s, number, index);
    for (int a = 0; a < 3; a++)
        start[a] = window_axis_start(&s->axis[a], s->settings.extent[a], index[a]);
}

/* Places of a window along k that lie in the image: first .. end - 1. */
static void inside_row(const stitch *s, int64_t start, int64_t *first, int64_t *end)
{
    int64_t low = s->axis[2].low - start, high = low + s->axis[2].size;

    *first = low > 0 ? low : 0;
    *end = high < s->settings.extent[2] ? high : s->settings.extent[2];
}

/* Where row (i, j) of a window lies in its flipped copy. */
static int64_t flipped_row(const window_settings *s, unsigned flip, int64_t i, int64_t j)
{
    if (flip & 1)
        i = s->extent[0] - 1 - i;
    if (flip & 2)
        j = s->extent[1] - 1 - j;
    return i * s->extent[1] + j;
}

/* ---- predict --------------------------------------------------------------------------------- */

/* Places first .. end - 1 along k of a row of the image, voxel by voxel. */
static void cut_voxels(const stitch *s, const float *line, int64_t start, unsigned flip,
                       int64_t first, int64_t end, float *row)
{
    int64_t last = s->settings.extent[2] - 1, channels = s->channels;

    for (int64_t k = first; k < end; k++) {
        float *voxel = row + (flip & 4 ? last - k : k) * channels;
        int64_t z = s->source[2][start + k];
        for (int64_t c = 0; c < channels; c++)
            voxel[c] = z < 0 ? 0 : line[z * channels + c];
    }
}

/* What lies in the image as a whole, unless it is turned round, and the padding beside it. */
static void cut_row(const stitch *s, const float *line, int64_t start, unsigned flip, float *row)
{
    int64_t extent = s->settings.extent[2], channels = s->channels, first = 0, end = 0;

    if (!(flip & 4)) {
        inside_row(s, start, &first, &end);
        memcpy(row + first * channels, line + (start + first - s->axis[2].low) * channels,
               (size_t)((end - first) * channels) * sizeof *row);
    }
    cut_voxels(s, line, start, flip, 0, first, row);
    cut_voxels(s, line, start, flip, end, extent, row);
}

static void cut_window(const stitch *s, int64_t number, unsigned flip, float *to)
{
    const int *extent = s->settings.extent;
    int64_t row_size = (int64_t)extent[2] * s->channels;
    int64_t start[3];

    window_start(s, number, start);
    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            float *row = to + flipped_row(&s->settings, flip, i, j) * row_size;
            int64_t x = s->source[0][start[0] + i], y = s->source[1][start[1] + j];
            if (x < 0 || y < 0)
                memset(row, 0, (size_t)row_size * sizeof *row);
            else
                cut_row(s, s->image + (x * s->axis[1].size + y) * s->axis[2].size * s->channels,
                        start[2], flip, row);
        }
    }
}

/* sum of one window += its flipped logits, flipped back, times 'share'. */
static void add_flipped(const stitch *s, unsigned flip, double share, const float *logits,
                        float *sum)
{
    const int *extent = s->settings.extent;
    int classes = s->classes;

    for (int64_t i = 0; i < extent[0]; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            const float *row = logits + flipped_row(&s->settings, flip, i, j) * extent[2] * classes;
            for (int64_t k = 0; k < extent[2]; k++) {
                const float *voxel = row + (flip & 4 ? extent[2] - 1 - k : k) * classes;
                for (int c = 0; c < classes; c++)
                    *sum++ += (float)(voxel[c] * share);
            }
        }
    }
}

int64_t stitch_batches(const stitch *s)
{
    return ceil_div_i64(s->windows, s->settings.batch);
}

int64_t stitch_size(const stitch *s)
{
    return s->settings.batch * s->volume * s->classes;
}

int64_t stitch_room(const stitch *s)
{
    return (s->settings.mirror & 7) != 0 && s->held == 0 ? stitch_size(s) : 0;
}

static int windows_in(const stitch *s, int64_t batch)
{
    int64_t left = s->windows - batch * s->settings.batch;

    return left < s->settings.batch ? (int)left : s->settings.batch;
}

/*
 * Places of a window's voxels along axis a on the device, in steps of 'step' voxels, and whether no
 * window before has touched them: of those that touch a voxel the first is the first on each axis.
 */
static void place_along(const stitch *s, int a, int index, int64_t step, int32_t *place,
                        int32_t *age)
{
    const window_axis *axis = &s->axis[a];
    int extent = s->settings.extent[a];
    int64_t first = window_axis_start(axis, extent, index) - axis->low;
    int64_t touched = index > 0
                    ? window_axis_start(axis, extent, index - 1) - axis->low + extent : 0;

    for (int64_t k = 0; k < extent; k++) {
        int64_t x = first + k, row = a == 0 ? x % s->held : x;
        bool inside = x >= 0 && x < axis->size;

        place[k] = inside ? (int32_t)(row * step) : -1;
        age[k] = x >= touched;
    }
}

/* Places along all axes of a window. */
static int64_t columns_of(const stitch *s)
{
    const int *extent = s->settings.extent;

    return (int64_t)extent[0] + extent[1] + extent[2];
}

static void place_window(const stitch *s, int64_t number, int32_t *row)
{
    const int *extent = s->settings.extent;
    const int64_t step[3] = { s->plane, s->axis[2].size, 1 };
    int32_t *place = row + PONS_PATCH_PLACE, *age = place + columns_of(s);
    int index[3];

    memset(row, 0, PONS_PATCH_PLACE * sizeof *row);
    window_index(s, number, index);
    for (int a = 0; a < 3; place += extent[a], age += extent[a], a++)
        place_along(s, a, index[a], step[a], place, age);
}

uint64_t stitch_flip_bytes(const window_settings *settings, int classes)
{
    const int *e = settings->extent;
    uint64_t size = (uint64_t)e[0] * (uint64_t)e[1] * (uint64_t)e[2] * (uint64_t)classes
                  * sizeof(float);

    return (settings->mirror & 7) == 0 ? 0 : round_up_u64(size, PONS_PATCH_UNIT);
}

/* Where window 'b' of a batch has the sums of its flips, and its voxels when 'flip' is undone. */
static void place_flipped(const stitch *s, int b, unsigned flip, int32_t *row)
{
    const int *extent = s->settings.extent;
    const int64_t step[3] = { (int64_t)extent[1] * extent[2], extent[2], 1 };
    int32_t *place = row + PONS_PATCH_PLACE;

    memset(row, 0, PONS_PATCH_PLACE * sizeof *row);
    row[PONS_PATCH_VALUES] = (int32_t)(stitch_flip_bytes(&s->settings, s->classes)
                                       / PONS_PATCH_UNIT * (uint64_t)b);
    for (int a = 0; a < 3; place += extent[a], a++)
        for (int k = 0; k < extent[a]; k++)
            place[k] = (int32_t)((flip >> a & 1 ? extent[a] - 1 - k : k) * step[a]);
}

/* Each flip is added to the sums of its window, of which the first finds none; the last has all. */
static void place_flips(const stitch *s, unsigned flip, const window_predictor *p)
{
    int64_t along = columns_of(s), columns = PONS_PATCH_PLACE + along;
    int32_t *row = p->flip, *whole = p->whole;
    bool last = flip == (s->settings.mirror & 7);

    for (int b = 0; b < s->settings.batch; b++, row += columns + along, whole += columns) {
        memset(row, -1, (size_t)(columns + along) * sizeof *row);
        memset(whole, -1, (size_t)columns * sizeof *whole);
        if (s->held == 0)
            continue;
        place_flipped(s, b, flip, row);
        for (int64_t k = 0; k < along; k++)
            row[columns + k] = flip == 0;
        if (last)
            place_flipped(s, b, 0, whole);
    }
}

/* Of a batch; what fills a short one, and all windows whose logits come here, are nowhere. */
static void place_windows(const stitch *s, int64_t batch, bool there, int32_t *place)
{
    int64_t columns = PONS_PATCH_PLACE + 2 * columns_of(s);
    int count = s->held > 0 && there ? windows_in(s, batch) : 0;

    for (int b = 0; b < s->settings.batch; b++, place += columns) {
        if (b < count)
            place_window(s, batch * s->settings.batch + b, place);
        else
            memset(place, -1, (size_t)columns * sizeof *place);
    }
}

/* A short batch is filled with its last window. */
pons_status stitch_predict(const stitch *s, int64_t batch, const window_predictor *p, float *sum,
                           const float **logits, pons_error *err)
{
    const window_settings *w = &s->settings;
    int count = windows_in(s, batch);
    int64_t size = s->volume * s->classes;
    double share = 1.0 / (double)(1 << __builtin_popcount(w->mirror & 7));

    if (stitch_room(s) > 0)
        memset(sum, 0, (size_t)stitch_room(s) * sizeof *sum);
    for (unsigned flip = 0; flip < 8; flip++) {
        if ((flip & ~w->mirror) != 0)
            continue;
        if (p->place != NULL)
            place_windows(s, batch, flip == (w->mirror & 7), p->place);
        if (p->flip != NULL)
            place_flips(s, flip, p);
        for (int b = 0; b < w->batch; b++)
            cut_window(s, batch * w->batch + (b < count ? b : count - 1), flip,
                       p->input + b * s->volume * s->channels);
        if (p->run(p->context, s->held > 0 ? NULL : logits, err) != PONS_OK)
            return err->status;
        for (int b = 0; b < count && stitch_room(s) > 0; b++)
            add_flipped(s, flip, share, *logits + b * size, sum + b * size);
    }
    if (stitch_room(s) > 0)
        *logits = sum;
    return PONS_OK;
}

/* ---- blend ----------------------------------------------------------------------------------- */

/*
 * 'count' voxels of a row: out += importance x logits, and the weights beside it. Where there are
 * few classes each weight is written as often as there are, so that a row is one loop.
 */
static void blend_row(int64_t count, int classes, const float *importance, const float *logits,
                      float *restrict weight, float *restrict out)
{
    int64_t tile = classes < WIDE ? TILE / classes : 1;
    float share[TILE];

    for (int64_t k = 0; k < count; k++)
        weight[k] += importance[k];
    for (int64_t k = 0; k < count && classes >= WIDE; k++, out += classes, logits += classes)
        for (int c = 0; c < classes; c++)
            out[c] += importance[k] * logits[c];
    for (int64_t first = 0; first < count && classes < WIDE; first += tile) {
        int64_t here = count - first < tile ? count - first : tile;

        for (int64_t k = 0; k < here; k++)
            for (int c = 0; c < classes; c++)
                share[k * classes + c] = importance[first + k];
        for (int64_t n = 0; n < here * classes; n++)
            out[n] += share[n] * logits[n];
        out += here * classes;
        logits += here * classes;
    }
}

/* Planes of one window; they touch different voxels. */
typedef struct blending {
    stitch *s;
    int64_t start[3];
    int64_t first;            /* plane of the window that is the loop's 0                         */
    const float *logits;
} blending;

static void blend_planes(void *context, int64_t first, int64_t end)
{
    const blending *b = context;
    const stitch *s = b->s;
    const int *extent = s->settings.extent;
    int64_t low, high;

    inside_row(s, b->start[2], &low, &high);
    for (int64_t i = b->first + first; i < b->first + end; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            int64_t x = b->start[0] + i - s->axis[0].low, y = b->start[1] + j - s->axis[1].low;
            if (x < 0 || x >= s->axis[0].size || y < 0 || y >= s->axis[1].size)
                continue;
            int64_t from = (i * extent[1] + j) * extent[2] + low;
            int64_t to = x % s->depth * s->plane + y * s->axis[2].size
                         + b->start[2] + low - s->axis[2].low;
            blend_row(high - low, s->classes, s->importance + from, b->logits + from * s->classes,
                      s->weight + to, s->sum + to * s->classes);
        }
    }
}

/* What there is room for of the next window; false: not all of it. */
static bool blend_window(stitch *s, int64_t taken, const float *logits)
{
    int64_t extent = s->settings.extent[0], size = s->axis[0].size, end;
    int64_t numbers = (int64_t)s->settings.extent[1] * s->settings.extent[2] * s->classes;
    blending b = { .s = s, .first = s->done, .logits = logits };

    window_start(s, s->window, b.start);
    end = taken + s->depth < size ? taken + s->depth - (b.start[0] - s->axis[0].low) : extent;
    end = end < extent ? end : extent;
    if (end > s->done) {
        parallel_run(end - s->done, PIECE / numbers > 1 ? PIECE / numbers : 1, blend_planes, &b);
        s->done = end;
    }
    return s->done == extent;
}

bool stitch_blend(stitch *s, int64_t batch, const float *logits, int64_t taken)
{
    int64_t first = batch * s->settings.batch, end = first + windows_in(s, batch);

    while (s->window < end) {
        if (!blend_window(s, taken, logits + (s->window - first) * s->volume * s->classes))
            return false;
        s->window++;
        s->done = 0;
    }
    return true;
}

/* Planes that no window from 'window' on touches. */
static int64_t planes_before(const stitch *s, int64_t window)
{
    int64_t start[3];

    if (window >= s->windows)
        return s->axis[0].size;
    window_start(s, window, start);
    return start[0] > s->axis[0].low ? start[0] - s->axis[0].low : 0;
}

int64_t stitch_ready(const stitch *s)
{
    return s->held > 0 ? s->fetched : planes_before(s, s->window);
}

static void take(int64_t count, int classes, float *restrict weight, float *restrict sum,
                 float *restrict out)
{
    for (int64_t i = 0; i < count; i++, sum += classes, out += classes) {
        for (int c = 0; c < classes; c++)
            out[c] = sum[c] / weight[i];
        memset(sum, 0, (size_t)classes * sizeof *sum);
    }
    memset(weight, 0, (size_t)count * sizeof *weight);
}

void stitch_take(stitch *s, int64_t first, int64_t count, float *out)
{
    int64_t ring = s->depth * s->plane;

    while (count > 0) {
        int64_t at = first % ring, here = count < ring - at ? count : ring - at;

        take(here, s->classes, s->weight + at, s->sum + at * s->classes, out);
        if (!floats_are_finite(out, here * s->classes))
            atomic_store(&s->not_finite, true);
        first += here;
        count -= here;
        out += here * s->classes;
    }
}

bool stitch_is_finite(const stitch *s)
{
    return !atomic_load(&s->not_finite);
}

/* ---- sums that a device holds ---------------------------------------------------------------- */

/*
 * Planes that are touched while one batch is added: those of a window, and an interval more for
 * each time that the windows of a batch go on along i.
 */
static int64_t held_depth(const window_settings *settings, const window_axis axis[3])
{
    int64_t row = (int64_t)axis[1].count * axis[2].count;
    int64_t steps = ceil_div_i64(settings->batch - 1, row);
    int64_t depth = settings->extent[0] + steps * axis[0].interval;

    return depth < axis[0].size ? depth : axis[0].size;
}

uint64_t stitch_held_bytes(const window_settings *settings, const int64_t size[3], int classes)
{
    window_axis axis[3];
    int64_t voxels;

    for (int a = 0; a < 3; a++)
        axis[a] = window_axis_make(size[a], settings->extent[a], settings->overlap[a]);
    voxels = held_depth(settings, axis) * size[1] * size[2];
    return voxels > INT32_MAX ? 0 : (uint64_t)(voxels * classes) * sizeof(float);
}

void stitch_hold(stitch *s)
{
    int64_t bytes = s->plane * (s->classes + 1) * (int64_t)sizeof *s->sum;
    int64_t spare = s->settings.spare / bytes;

    s->held = held_depth(&s->settings, s->axis);
    spare = spare < s->axis[0].interval ? spare : s->axis[0].interval;
    spare = spare > 1 ? spare : 1;
    s->depth = spare < s->depth ? spare : s->depth;
}

const float *stitch_importance(const stitch *s)
{
    return s->importance;
}

/* The weights of plane x: of all windows that touch it, in their order. */
static void weigh_plane(stitch *s, int64_t x)
{
    const int *extent = s->settings.extent;
    int64_t windows = (int64_t)s->axis[1].count * s->axis[2].count;

    for (int64_t n = 0; n < s->windows; n++) {
        int64_t start[3], low, high;

        window_start(s, n, start);
        int64_t i = x + s->axis[0].low - start[0];
        if (i < 0 || i >= extent[0]) {
            n += windows - 1; /* the others that begin there */
            continue;
        }
        inside_row(s, start[2], &low, &high);
        for (int64_t j = 0; j < extent[1]; j++) {
            int64_t y = start[1] + j - s->axis[1].low;
            if (y < 0 || y >= s->axis[1].size)
                continue;
            const float *importance = s->importance + (i * extent[1] + j) * extent[2];
            float *weight = s->weight + x % s->depth * s->plane + y * s->axis[2].size
                            + start[2] - s->axis[2].low;
            for (int64_t k = low; k < high; k++)
                weight[k] += importance[k];
        }
    }
}

typedef struct weighing {
    stitch *s;
    int64_t first;            /* plane that is the loop's 0                                       */
} weighing;

static void weigh_planes(void *context, int64_t first, int64_t end)
{
    const weighing *w = context;

    for (int64_t x = w->first + first; x < w->first + end; x++)
        weigh_plane(w->s, x);
}

/* Planes that lie behind each other in the device's rows and in ours. */
static int64_t planes_together(const stitch *s, int64_t end)
{
    int64_t there = s->held - s->fetched % s->held, here = s->depth - s->fetched % s->depth;
    int64_t count = there < here ? there : here;

    return count < end - s->fetched ? count : end - s->fetched;
}

pons_status stitch_collect(stitch *s, int64_t batch, int64_t taken, const stitch_sums *sums,
                           bool *done, pons_error *err)
{
    int64_t ready = planes_before(s, batch * s->settings.batch + windows_in(s, batch));
    int64_t end = ready < taken + s->depth ? ready : taken + s->depth;
    int64_t plane = s->plane * s->classes;

    while (s->fetched < end) {
        int64_t count = planes_together(s, end);
        weighing w = { s, s->fetched };

        if (sums->read(sums->context, s->fetched % s->held * plane, count * plane,
                       s->sum + s->fetched % s->depth * plane, err) != PONS_OK)
            return err->status;
        parallel_run(count, PIECE / s->plane > 1 ? PIECE / s->plane : 1, weigh_planes, &w);
        s->fetched += count;
    }
    *done = s->fetched == ready;
    return PONS_OK;
}

/* ---- open ------------------------------------------------------------------------------------ */

/*
 * The planes of a window, and those that the next one has not in common with it: so while they are
 * taken others are blended. Of these no more than fit 'spare'; without any, blending waits.
 */
static int64_t ring_depth(const window_settings *settings, const window_axis *axis, int64_t size)
{
    int64_t depth = settings->extent[0], spare = settings->spare / size;

    depth += spare < axis->interval ? spare : axis->interval;
    return depth < axis->size ? depth : axis->size;
}

/* Bytes of a plane. */
static int64_t plane_size(const int64_t size[3], int classes)
{
    return size[1] * size[2] * (classes + 1) * (int64_t)sizeof(float);
}

uint64_t stitch_bytes(const window_settings *settings, const int64_t size[3], int classes)
{
    window_axis a = window_axis_make(size[0], settings->extent[0], settings->overlap[0]);
    int64_t plane = plane_size(size, classes);

    return (uint64_t)(ring_depth(settings, &a, plane) * plane);
}

static pons_status find_room(stitch *s, pons_error *err)
{
    int64_t voxels = s->depth * s->plane;
    bool good = true;

    s->importance = malloc((size_t)s->volume * sizeof *s->importance);
    s->weight = pages_alloc_zeroed((size_t)voxels * sizeof *s->weight);
    s->sum = pages_alloc_zeroed((size_t)(voxels * s->classes) * sizeof *s->sum);
    for (int a = 0; a < 3; a++) {
        s->source[a] = malloc((size_t)s->axis[a].padded * sizeof *s->source[a]);
        good = good && s->source[a] != NULL;
    }
    if (!good || s->importance == NULL || s->weight == NULL || s->sum == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: windows of %d classes need %lld bytes",
                         s->classes, (long long)(voxels * (s->classes + 1))
                                         * (long long)sizeof *s->sum);
    return PONS_OK;
}

pons_status stitch_open(const window_settings *settings, const int64_t size[3], const float *image,
                        int channels, int classes, stitch **opened, pons_error *err)
{
    const int *extent = settings->extent;
    stitch *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for windows");
    *s = (stitch){ .settings = *settings, .channels = channels, .classes = classes, .windows = 1,
                   .volume = (int64_t)extent[0] * extent[1] * extent[2],
                   .plane = size[1] * size[2], .image = image };
    for (int a = 0; a < 3; a++) {
        s->axis[a] = window_axis_make(size[a], extent[a], settings->overlap[a]);
        s->windows *= s->axis[a].count;
    }
    s->depth = ring_depth(settings, &s->axis[0], plane_size(size, classes));
    if (find_room(s, err) != PONS_OK) {
        stitch_close(s);
        return err->status;
    }
    for (int a = 0; a < 3; a++) {
        for (int64_t x = 0; x < s->axis[a].padded; x++)
            s->source[a][x] = source_of(settings->padding, x - s->axis[a].low, s->axis[a].size);
    }
    window_importance(settings, s->importance);
    *opened = s;
    return PONS_OK;
}

void stitch_close(stitch *s)
{
    if (s == NULL)
        return;
    free(s->importance);
    free(s->weight);
    free(s->sum);
    for (int a = 0; a < 3; a++)
        free(s->source[a]);
    free(s);
}
