/*
 * window_blend.c - extract windows from an image and blend their logits. A window_predictor hides
 * the network.
 *
 * Nothing is padded in memory: a table per axis maps a padded position to a voxel. Sums of planes
 * lie in a ring buffer: plane x has row x % depth. If a device accumulates, plane x has row x %
 * held there, and row x % depth here after it is fetched. Weights are summed when means are taken.
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

/* elements of a parallel task; elements of a tile in the L1 cache */
enum { PIECE = 1 << 18, TILE = 1024,
       WIDE_CLASSES = 16 };   /* classes from which the loop over classes is the inner one        */

struct blender {
    window_settings settings;
    int channels, classes;
    window_axis axis[3];
    int64_t *source[3];    /* padded position to image position; -1: zero                         */
    int64_t windows, volume; /* windows of the image; voxels of a window                          */
    int64_t plane, depth;  /* voxels of a plane of the image; planes in the ring buffer           */
    int64_t device_depth;  /* planes in the device's ring buffer; 0: the host accumulates         */
    int64_t fetched;       /* planes copied from the device                                       */
    int64_t window, done;  /* the next window to blend; planes of it that are blended             */
    float *importance;
    float *sum;            /* [depth][plane][classes]                                             */
    const float *image;
    atomic_bool not_finite; /* a value that was taken is not finite                               */
};

/* ---- geometry -------------------------------------------------------------------------------- */

static int64_t wrap_index(int64_t x, int64_t n)
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
        return wrap_index(x, n);
    case WINDOW_PAD_REFLECT: {
        int64_t period = n > 1 ? 2 * (n - 1) : 1, y = wrap_index(x, period);
        return y < n ? y : period - y;
    }
    case WINDOW_PAD_CONSTANT:
        break;
    }
    return -1;
}

/* The index along each axis of window 'number'. */
static void window_index(const blender *s, int64_t number, int index[3])
{
    for (int a = 2; a >= 0; a--) {
        index[a] = (int)(number % s->axis[a].count);
        number /= s->axis[a].count;
    }
}

static void window_start(const blender *s, int64_t number, int64_t start[3])
{
    int index[3];

    window_index(s, number, index);
    for (int a = 0; a < 3; a++)
        start[a] = window_axis_start(&s->axis[a], s->settings.extent[a], index[a]);
}

/* Indices of a window along k that lie in the image: first .. end - 1. */
static void inside_row(const blender *s, int64_t start, int64_t *first, int64_t *end)
{
    int64_t low = s->axis[2].low - start, high = low + s->axis[2].size;

    *first = max_i64(low, 0);
    *end = min_i64(high, s->settings.extent[2]);
}

/* The row of a flipped window that row (i, j) of the window becomes. */
static int64_t flipped_row(const window_settings *s, unsigned flip, int64_t i, int64_t j)
{
    if (flip & 1)
        i = s->extent[0] - 1 - i;
    if (flip & 2)
        j = s->extent[1] - 1 - j;
    return i * s->extent[1] + j;
}

/* ---- predict --------------------------------------------------------------------------------- */

/* Copy indices first .. end - 1 along k of a row, voxel by voxel. */
static void extract_voxels(const blender *s, const float *line, int64_t start, unsigned flip,
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

/* Copy a row: the part inside the image at once unless it is flipped, and the padding. */
static void extract_row(const blender *s, const float *line, int64_t start, unsigned flip,
                        float *row)
{
    int64_t extent = s->settings.extent[2], channels = s->channels, first = 0, end = 0;

    if (!(flip & 4)) {
        inside_row(s, start, &first, &end);
        memcpy(row + first * channels, line + (start + first - s->axis[2].low) * channels,
               (size_t)((end - first) * channels) * sizeof *row);
    }
    extract_voxels(s, line, start, flip, 0, first, row);
    extract_voxels(s, line, start, flip, end, extent, row);
}

static void extract_window(const blender *s, int64_t number, unsigned flip, float *to)
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
                extract_row(s, s->image + (x * s->axis[1].size + y) * s->axis[2].size * s->channels,
                            start[2], flip, row);
        }
    }
}

/* Add a window's flipped logits, flipped back and multiplied by 'share', to 'sum'. */
static void add_flipped(const blender *s, unsigned flip, double share, const float *logits,
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

int64_t window_blend_batches(const blender *s)
{
    return ceil_div_i64(s->windows, s->settings.batch);
}

int64_t window_blend_batch_size(const blender *s)
{
    return s->settings.batch * s->volume * s->classes;
}

int64_t window_blend_flip_size(const blender *s)
{
    return (s->settings.mirror & 7) != 0 && s->device_depth == 0 ? window_blend_batch_size(s) : 0;
}

static int windows_in(const blender *s, int64_t batch)
{
    int64_t left = s->windows - batch * s->settings.batch;

    return left < s->settings.batch ? (int)left : s->settings.batch;
}

/*
 * Set the offsets of a window's voxels along axis a on the device, in steps of 'step' voxels, and
 * whether the window is the first to touch them. The first window on a voxel is the first on each
 * axis.
 */
static void set_axis_offsets(const blender *s, int a, int index, int64_t step, int32_t *place,
                             int32_t *age)
{
    const window_axis *axis = &s->axis[a];
    int extent = s->settings.extent[a];
    int64_t first = window_axis_start(axis, extent, index) - axis->low;
    int64_t touched = index > 0
                    ? window_axis_start(axis, extent, index - 1) - axis->low + extent : 0;

    for (int64_t k = 0; k < extent; k++) {
        int64_t x = first + k, row = a == 0 ? x % s->device_depth : x;
        bool inside = x >= 0 && x < axis->size;

        place[k] = inside ? (int32_t)(row * step) : -1;
        age[k] = x >= touched;
    }
}

/* Indices of a window, summed over its axes. */
static int64_t axis_index_count(const blender *s)
{
    const int *extent = s->settings.extent;

    return (int64_t)extent[0] + extent[1] + extent[2];
}

static void set_window_row(const blender *s, int64_t number, int32_t *row)
{
    const int *extent = s->settings.extent;
    const int64_t step[3] = { s->plane, s->axis[2].size, 1 };
    int32_t *place = row + PONS_PATCH_COORDINATES, *age = place + axis_index_count(s);
    int index[3];

    memset(row, 0, PONS_PATCH_COORDINATES * sizeof *row);
    window_index(s, number, index);
    for (int a = 0; a < 3; place += extent[a], age += extent[a], a++)
        set_axis_offsets(s, a, index[a], step[a], place, age);
}

uint64_t window_blend_flip_bytes(const window_settings *settings, int classes)
{
    const int *e = settings->extent;
    uint64_t size = (uint64_t)e[0] * (uint64_t)e[1] * (uint64_t)e[2] * (uint64_t)classes
                  * sizeof(float);

    return (settings->mirror & 7) == 0 ? 0 : round_up_u64(size, PONS_PATCH_UNIT);
}

/* Set the offset of the flip sums of window 'b', and the offsets of its voxels that undo 'flip'. */
static void set_flip_row(const blender *s, int b, unsigned flip, int32_t *row)
{
    const int *extent = s->settings.extent;
    const int64_t step[3] = { (int64_t)extent[1] * extent[2], extent[2], 1 };
    int32_t *place = row + PONS_PATCH_COORDINATES;

    memset(row, 0, PONS_PATCH_COORDINATES * sizeof *row);
    row[PONS_PATCH_VALUES] = (int32_t)(window_blend_flip_bytes(&s->settings, s->classes)
                                       / PONS_PATCH_UNIT * (uint64_t)b);
    for (int a = 0; a < 3; place += extent[a], a++)
        for (int k = 0; k < extent[a]; k++)
            place[k] = (int32_t)((flip >> a & 1 ? extent[a] - 1 - k : k) * step[a]);
}

/*
 * Add each flip to the sums of its window: the first flip overwrites them, the last completes
 * them.
 */
static void set_flip_rows(const blender *s, unsigned flip, const window_predictor *p)
{
    int64_t along = axis_index_count(s), columns = PONS_PATCH_COORDINATES + along;
    int32_t *row = p->flip, *whole = p->whole;
    bool last = flip == (s->settings.mirror & 7);

    for (int b = 0; b < s->settings.batch; b++, row += columns + along, whole += columns) {
        memset(row, -1, (size_t)(columns + along) * sizeof *row);
        memset(whole, -1, (size_t)columns * sizeof *whole);
        if (s->device_depth == 0)
            continue;
        set_flip_row(s, b, flip, row);
        for (int64_t k = 0; k < along; k++)
            row[columns + k] = flip == 0;
        if (last)
            set_flip_row(s, b, 0, whole);
    }
}

/*
 * Set the rows of a batch. Fillers of a short batch, and windows accumulated on the host, get -1.
 */
static void set_window_rows(const blender *s, int64_t batch, bool there, int32_t *place)
{
    int64_t columns = PONS_PATCH_COORDINATES + 2 * axis_index_count(s);
    int count = s->device_depth > 0 && there ? windows_in(s, batch) : 0;

    for (int b = 0; b < s->settings.batch; b++, place += columns) {
        if (b < count)
            set_window_row(s, batch * s->settings.batch + b, place);
        else
            memset(place, -1, (size_t)columns * sizeof *place);
    }
}

/* Predict a batch; a short one is filled with copies of its last window. */
pons_status window_blend_predict(const blender *s, int64_t batch, const window_predictor *p,
                                 float *sum, const float **logits, pons_error *err)
{
    const window_settings *w = &s->settings;
    int count = windows_in(s, batch);
    int64_t size = s->volume * s->classes;
    double share = w->one_flip ? 1 : 1.0 / (double)(1 << __builtin_popcount(w->mirror & 7));

    if (window_blend_flip_size(s) > 0)
        memset(sum, 0, (size_t)window_blend_flip_size(s) * sizeof *sum);
    for (unsigned flip = 0; flip < 8; flip++) {
        if (w->one_flip ? flip != (w->mirror & 7) : (flip & ~w->mirror) != 0)
            continue;
        if (p->place != NULL)
            set_window_rows(s, batch, flip == (w->mirror & 7), p->place);
        if (p->flip != NULL)
            set_flip_rows(s, flip, p);
        for (int b = 0; b < w->batch; b++)
            extract_window(s, batch * w->batch + (b < count ? b : count - 1), flip,
                           p->input + b * s->volume * s->channels);
        if (p->run(p->context, s->device_depth > 0 ? NULL : logits, err) != PONS_OK)
            return err->status;
        for (int b = 0; b < count && window_blend_flip_size(s) > 0; b++)
            add_flipped(s, flip, share, *logits + b * size, sum + b * size);
    }
    if (window_blend_flip_size(s) > 0)
        *logits = sum;
    return PONS_OK;
}

/* ---- blend ----------------------------------------------------------------------------------- */

/*
 * Blend 'count' voxels of a row: out += importance x logits. For few classes each weight is
 * repeated for each class, so that the row is a single loop.
 */
static void blend_row(int64_t count, int classes, const float *importance, const float *logits,
                      float *restrict out)
{
    int64_t tile = classes < WIDE_CLASSES ? TILE / classes : 1;
    float share[TILE];

    for (int64_t k = 0; k < count && classes >= WIDE_CLASSES; k++, out += classes,
         logits += classes)
        for (int c = 0; c < classes; c++)
            out[c] += importance[k] * logits[c];
    for (int64_t first = 0; first < count && classes < WIDE_CLASSES; first += tile) {
        int64_t here = min_i64(count - first, tile);

        for (int64_t k = 0; k < here; k++)
            for (int c = 0; c < classes; c++)
                share[k * classes + c] = importance[first + k];
        for (int64_t n = 0; n < here * classes; n++)
            out[n] += share[n] * logits[n];
        out += here * classes;
        logits += here * classes;
    }
}

/* Planes of a window, which are blended in parallel since they touch different voxels. */
typedef struct window_blending {
    blender *s;
    int64_t start[3];
    int64_t first;            /* plane of the window at the loop's 0                              */
    const float *logits;
} window_blending;

static void blend_planes(void *context, int64_t first, int64_t end)
{
    const window_blending *b = context;
    const blender *s = b->s;
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
                      s->sum + to * s->classes);
        }
    }
}

/* Blend the planes of the next window that have room; false: some are left. */
static bool blend_window(blender *s, int64_t taken, const float *logits)
{
    int64_t extent = s->settings.extent[0], size = s->axis[0].size, end;
    int64_t numbers = (int64_t)s->settings.extent[1] * s->settings.extent[2] * s->classes;
    window_blending b = { .s = s, .first = s->done, .logits = logits };

    window_start(s, s->window, b.start);
    end = taken + s->depth < size ? taken + s->depth - (b.start[0] - s->axis[0].low) : extent;
    end = min_i64(end, extent);
    if (end > s->done) {
        parallel_run(end - s->done, max_i64(PIECE / numbers, 1), blend_planes, &b);
        s->done = end;
    }
    return s->done == extent;
}

bool window_blend_add(blender *s, int64_t batch, const float *logits, int64_t taken)
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

/* The number of planes that no window from 'window' on touches. */
static int64_t planes_before(const blender *s, int64_t window)
{
    int64_t start[3];

    if (window >= s->windows)
        return s->axis[0].size;
    window_start(s, window, start);
    return start[0] > s->axis[0].low ? start[0] - s->axis[0].low : 0;
}

int64_t window_blend_ready(const blender *s)
{
    return s->device_depth > 0 ? s->fetched : planes_before(s, s->window);
}

/* The windows along axis a that touch a voxel: indices first .. end - 1. */
static void touching_windows(const blender *s, int a, int64_t voxel, int *first, int *end)
{
    const window_axis *axis = &s->axis[a];
    int extent = s->settings.extent[a];
    int64_t x = voxel + axis->low;

    *first = 0;
    while (*first < axis->count && window_axis_start(axis, extent, *first) + extent <= x)
        ++*first;
    *end = *first;
    while (*end < axis->count && window_axis_start(axis, extent, *end) <= x)
        ++*end;
}

/* Add the weights of the windows along k in line (i, j) of a window to voxels first .. of a row. */
static void add_line_weights(const blender *s, int64_t i, int64_t j, int64_t first, int64_t count,
                             float *weight)
{
    const window_axis *axis = &s->axis[2];
    int64_t extent = s->settings.extent[2];
    const float *line = s->importance + (i * s->settings.extent[1] + j) * extent;

    for (int k = 0; k < axis->count; k++) {
        int64_t start = window_axis_start(axis, (int)extent, k) - axis->low;
        int64_t low = max_i64(first, start), end = min_i64(first + count, start + extent);

        for (int64_t z = low; z < end; z++)
            weight[z - first] += line[z - start];
    }
}

/*
 * Sum up the weights of 'count' voxels of row (x, y) from 'first' on over the windows that touch
 * them, in the order of windows.
 */
static void sum_weights(const blender *s, int64_t x, int64_t y, int64_t first, int64_t count,
                        float *weight)
{
    const window_axis *axis = s->axis;
    int begin[2], end[2];

    memset(weight, 0, (size_t)count * sizeof *weight);
    touching_windows(s, 0, x, &begin[0], &end[0]);
    touching_windows(s, 1, y, &begin[1], &end[1]);
    for (int n = begin[0]; n < end[0]; n++) {
        int64_t i = x + axis[0].low - window_axis_start(&axis[0], s->settings.extent[0], n);
        for (int m = begin[1]; m < end[1]; m++)
            add_line_weights(s, i, y + axis[1].low
                                   - window_axis_start(&axis[1], s->settings.extent[1], m),
                             first, count, weight);
    }
}

static void take_row(int64_t count, int classes, const float *restrict weight,
                     float *restrict sum, float *restrict out)
{
    for (int64_t i = 0; i < count; i++, sum += classes, out += classes) {
        for (int c = 0; c < classes; c++)
            out[c] = sum[c] / weight[i];
        memset(sum, 0, (size_t)classes * sizeof *sum);
    }
}

void window_blend_take(blender *s, int64_t first, int64_t count, float *out)
{
    int64_t width = s->axis[2].size;

    while (count > 0) {
        int64_t row = first / width, column = first % width;
        int64_t x = row / s->axis[1].size, y = row % s->axis[1].size;
        int64_t here = min_i64(min_i64(count, width - column), TILE);
        float weight[TILE];

        sum_weights(s, x, y, column, here, weight);
        take_row(here, s->classes, weight,
                 s->sum + (x % s->depth * s->plane + y * width + column) * s->classes, out);
        if (!floats_are_finite(out, here * s->classes))
            atomic_store(&s->not_finite, true);
        first += here;
        count -= here;
        out += here * s->classes;
    }
}

bool window_blend_is_finite(const blender *s)
{
    return !atomic_load(&s->not_finite);
}

/* ---- accumulation on a device ---------------------------------------------------------------- */

/*
 * Planes of the device's ring buffer: those that one batch touches. That is the planes of a
 * window, and an interval more for each step along i within the batch.
 */
static int64_t device_ring_depth(const window_settings *settings, const window_axis axis[3])
{
    int64_t row = (int64_t)axis[1].count * axis[2].count;
    int64_t steps = ceil_div_i64(settings->batch - 1, row);
    int64_t depth = settings->extent[0] + steps * axis[0].interval;

    return min_i64(depth, axis[0].size);
}

uint64_t window_blend_device_bytes(const window_settings *settings, const int64_t size[3],
                                   int classes)
{
    window_axis axis[3];
    int64_t voxels;

    for (int a = 0; a < 3; a++)
        axis[a] = window_axis_make(settings, size[a], a);
    voxels = device_ring_depth(settings, axis) * size[1] * size[2];
    return voxels > INT32_MAX ? 0 : (uint64_t)(voxels * classes) * sizeof(float);
}

void window_blend_use_device(blender *s)
{
    int64_t bytes = s->plane * s->classes * (int64_t)sizeof *s->sum;
    int64_t extra_planes = s->settings.extra_bytes / bytes;

    s->device_depth = device_ring_depth(&s->settings, s->axis);
    extra_planes = min_i64(extra_planes, s->axis[0].interval);
    extra_planes = max_i64(extra_planes, 1);
    s->depth = min_i64(extra_planes, s->depth);
}

const float *window_blend_importance(const blender *s)
{
    return s->importance;
}

/* The number of next planes that are contiguous in both ring buffers. */
static int64_t planes_together(const blender *s, int64_t end)
{
    int64_t there = s->device_depth - s->fetched % s->device_depth, here
        = s->depth - s->fetched % s->depth;
    int64_t count = min_i64(there, here);

    return min_i64(count, end - s->fetched);
}

pons_status window_blend_collect(blender *s, int64_t batch, int64_t taken,
                                 const window_blend_sums *sums, bool *done, pons_error *err)
{
    int64_t ready = planes_before(s, batch * s->settings.batch + windows_in(s, batch));
    int64_t end = min_i64(ready, taken + s->depth);
    int64_t plane = s->plane * s->classes;

    while (s->fetched < end) {
        int64_t count = planes_together(s, end);

        if (sums->read(sums->context, s->fetched % s->device_depth * plane, count * plane,
                       s->sum + s->fetched % s->depth * plane, err) != PONS_OK)
            return err->status;
        s->fetched += count;
    }
    *done = s->fetched == ready;
    return PONS_OK;
}

/* ---- open ------------------------------------------------------------------------------------ */

/*
 * Planes of the ring buffer: those of a window, and those by which the next window goes further,
 * so that blending continues while planes are taken. 'extra_bytes' limits the latter; without them
 * blending waits.
 */
static int64_t ring_depth(const window_settings *settings, const window_axis *axis, int64_t size)
{
    int64_t depth = settings->extent[0], extra_planes = settings->extra_bytes / size;

    depth += min_i64(extra_planes, axis->interval);
    return min_i64(depth, axis->size);
}

/* Bytes of a plane. */
static int64_t plane_size(const int64_t size[3], int classes)
{
    return size[1] * size[2] * classes * (int64_t)sizeof(float);
}

uint64_t window_blend_bytes(const window_settings *settings, const int64_t size[3], int classes)
{
    window_axis a = window_axis_make(settings, size[0], 0);
    int64_t plane = plane_size(size, classes);

    return (uint64_t)(ring_depth(settings, &a, plane) * plane);
}

static pons_status allocate_buffers(blender *s, pons_error *err)
{
    int64_t voxels = s->depth * s->plane;
    bool good = true;

    s->importance = malloc((size_t)s->volume * sizeof *s->importance);
    s->sum = huge_pages_alloc_zeroed((size_t)(voxels * s->classes) * sizeof *s->sum);
    for (int a = 0; a < 3; a++) {
        s->source[a] = malloc((size_t)s->axis[a].padded * sizeof *s->source[a]);
        good = good && s->source[a] != NULL;
    }
    if (!good || s->importance == NULL || s->sum == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: windows of %d classes need %lld bytes",
                         s->classes, (long long)(voxels * s->classes)
                                         * (long long)sizeof *s->sum);
    return PONS_OK;
}

pons_status window_blend_open(const window_settings *settings, const int64_t size[3],
                              const float *image,
                              int channels, int classes, blender **opened, pons_error *err)
{
    const int *extent = settings->extent;
    blender *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for windows");
    *s = (blender){ .settings = *settings, .channels = channels, .classes = classes, .windows = 1,
                    .volume = (int64_t)extent[0] * extent[1] * extent[2],
                    .plane = size[1] * size[2], .image = image };
    for (int a = 0; a < 3; a++) {
        s->axis[a] = window_axis_make(settings, size[a], a);
        s->windows *= s->axis[a].count;
    }
    s->depth = ring_depth(settings, &s->axis[0], plane_size(size, classes));
    if (allocate_buffers(s, err) != PONS_OK) {
        window_blend_close(s);
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

void window_blend_close(blender *s)
{
    if (s == NULL)
        return;
    free(s->importance);
    free(s->sum);
    for (int a = 0; a < 3; a++)
        free(s->source[a]);
    free(s);
}
