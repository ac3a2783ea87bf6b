/*
 * wide_lines.c - the gradient of a convolution by its weight, between tensors of many channels, on
 * vectors of pairs (wide.h).
 *
 *   dw[o][tap][i] = sum over positions p of y[p][o] x[stride p + dilation tap - pad][i]
 *
 * Two neighbours along W are a pair. The output's gradient is packed as rows of one channel each,
 * the input as panels of the elements that a kernel position along W meets. Positions that lie
 * whole pairs apart have a strip of panels in common: with a stride of 1 every other one. A kernel
 * position along D and H is a choice of lines: those that meet no line of the input are left out,
 * so zeros are multiplied at the ends of lines alone.
 *
 * Lines are packed in boxes. Where all sums are few numbers a box fits a core's cache; a task takes
 * some boxes and sums up on its own, and the tasks' sums are added in a tree. Where they are many
 * all threads pack a box together, and a task is some of the sums, which it adds to the weight.
 * Boxes follow one another along D, and the input's planes that two of them meet stay packed: plane
 * d lies at d modulo as many as a box meets. The cut depends on the shapes alone, never on the
 * threads (R4).
 */
#include "cpu.h"
#include "wide.h"

#include <stdlib.h>
#include <string.h>

enum {
    BOX_BYTES = 3 << 18,    /* both packed tensors: what a core's cache holds beside the sums */
    ROWS_BYTES = 3 << 18,   /* the packed gradient, which all of a task's sums read */
    SUMS_APART = 1 << 19,   /* bytes */
    BOXES_APART = 4,        /* that many boxes are tasks of their own; */
    TASKS = 16,             /* so many at most */
    PIECE = 144,             /* pairs whose panels stay in the first cache while all rows pass */
    AHEAD = 1 << 11,        /* bytes that are asked for before they are packed */
    LONG = 12,              /* pairs of a line, beside which one more at its end is little */
    PAIR = 2 * sizeof(uint16_t),
    ROW_FLOATS = WIDE_ACROSS * WIDE_TILE
};

/* Cases, planes and lines. */
enum { CASES, PLANES, LINES, AXES };

typedef struct weight_lines {
    const wide_unit *unit;
    int threads;
    int y[AXES], x[AXES], y_width, x_width;
    pons_convolution c;
    int kernel[3], taps;
    int groups, ins, outs;          /* channels in a group */
    int in_tiles, out_tiles;        /* of a group */
    int pairs, x_pairs;             /* of a line of y; of x with those beyond it */
    int strips;                     /* of a tile: for kernel positions along W 0, 1, ...; */
    int shift;                      /* those 'strips' further on begin so many pairs later */
    int box[AXES], boxes[AXES];     /* lines of y in each, and how many there are */
    int box_count, planes;          /* planes: of x that a box meets at most */
    int columns, blocks;            /* of a group: tiles by kernel positions along W; products */
    int jobs;                       /* groups x kernel positions along D and H x blocks */
    int tasks;                      /* with sums of their own; 0: threads share boxes */
    int64_t pitch, strip;           /* bytes of a packed row, of a strip */
    int64_t y_size, x_size, runs_size, part_size; /* bytes; the last one: sums of a job */
    char *zero;
} weight_lines;

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }
static int64_t over(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* ---- boxes ----------------------------------------------------------------------------------- */

/* From 'begin' to before 'end', of one of the tensors. */
typedef struct span {
    int begin[AXES], end[AXES];
} span;

static int extent(const span *s, int axis) { return s->end[axis] - s->begin[axis]; }

/* Behind one another: cases, then lines, then planes. */
static span box_of_y(const weight_lines *w, int number)
{
    static const int axes[] = { PLANES, LINES, CASES };
    span s;

    for (int i = 0; i < AXES; i++) {
        int axis = axes[i];
        s.begin[axis] = number % w->boxes[axis] * w->box[axis];
        s.end[axis] = smaller(s.begin[axis] + w->box[axis], w->y[axis]);
        number /= w->boxes[axis];
    }
    return s;
}

static int64_t line_count(const span *s)
{
    return (int64_t)extent(s, CASES) * extent(s, PLANES) * extent(s, LINES);
}

/* Which plane or line of x a kernel position meets, perhaps outside of it. */
static int meets(const weight_lines *w, int axis, int y, int k)
{
    const pons_convolution *c = &w->c;

    return y * c->stride[axis - 1] + k * c->dilation[axis - 1] - c->pad_low[axis - 1];
}

/* What the lines of a box meet. */
static span box_of_x(const weight_lines *w, const span *y)
{
    span s = { { y->begin[CASES] }, { y->end[CASES] } };

    for (int i = PLANES; i < AXES; i++) {
        s.begin[i] = larger(meets(w, i, y->begin[i], 0), 0);
        s.end[i] = smaller(meets(w, i, y->end[i] - 1, w->kernel[i - 1] - 1) + 1, w->x[i]);
        s.end[i] = larger(s.begin[i], s.end[i]);
    }
    return s;
}

/* What is left of it to pack behind box 'number' - 1, which lies in the same area. */
static span fresh_of(const weight_lines *w, int number, span x)
{
    span before;

    if (number % w->boxes[PLANES] > 0) {
        before = box_of_y(w, number - 1);
        before = box_of_x(w, &before);
        x.begin[PLANES] = larger(x.begin[PLANES], before.end[PLANES]);
    }
    return x;
}

static int64_t line_of_y(const span *s, int n, int d, int h)
{
    return ((int64_t)(n - s->begin[CASES]) * extent(s, PLANES) + d - s->begin[PLANES])
           * extent(s, LINES) + h - s->begin[LINES];
}

/* Lines that neighbours of y meet are neighbours. */
static int64_t line_of_x(const weight_lines *w, const span *s, int n, int d, int h)
{
    int stride = w->c.stride[1], lines = extent(s, LINES);
    int number = h - s->begin[LINES], phase = number % stride;

    return ((int64_t)(n - s->begin[CASES]) * w->planes + d % w->planes) * lines +
           phase * (lines / stride) + smaller(phase, lines % stride) + number / stride;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Bytes from one voxel, line, plane and case to the next. */
typedef struct strides {
    int64_t voxel, line, plane, image;
} strides;

static strides strides_of(int channels, int width, const int extent[AXES])
{
    strides s = { .voxel = (int64_t)sizeof(uint16_t) * channels };

    s.line = width * s.voxel;
    s.plane = extent[LINES] * s.line;
    s.image = extent[PLANES] * s.plane;
    return s;
}

/* Line 'number' of a span: where its first voxel lies. */
static int64_t line_offset(const span *s, const strides *size, int64_t number)
{
    int64_t h = number % extent(s, LINES), plane = number / extent(s, LINES);
    int64_t d = plane % extent(s, PLANES), n = plane / extent(s, PLANES);

    return (s->begin[CASES] + n) * size->image + (s->begin[PLANES] + d) * size->plane +
           (s->begin[LINES] + h) * size->line;
}

/* The addresses of WIDE_NUMBERS voxels from 'at' on, line behind line, and of zeros between. */
static void find_voxels(const weight_lines *w, const char *y, const span *s, const strides *size,
                        int64_t at, const char **to)
{
    int width = 2 * w->pairs;
    int64_t lines = line_count(s), line = at / width;
    int j = (int)(at % width);

    for (int i = 0; i < WIDE_NUMBERS; line++, j = 0) {
        const char *from = line < lines ? y + line_offset(s, size, line) : NULL;
        int end = smaller(width, j + WIDE_NUMBERS - i);
        int last = line < lines ? smaller(end, w->y_width) : 0;
        for (; j < last; j++)
            to[i++] = from + j * size->voxel;
        for (; j < end; j++)
            to[i++] = w->zero;
    }
}

/* Blocks of WIDE_NUMBERS voxels. */
static int64_t block_count(const weight_lines *w, const span *y)
{
    return over(line_count(y) * 2 * w->pairs, WIDE_NUMBERS);
}

/* Into the first cache. */
static void ask_for(const char *from, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        __builtin_prefetch(from + i);
}

static void pack_y(const weight_lines *w, const void *y, const span *s, int64_t block, char *area)
{
    const char *voxel[WIDE_NUMBERS];
    strides size = strides_of(w->groups * w->outs, w->y_width, w->y);
    char *to = area + block * WIDE_STEP;

    find_voxels(w, y, s, &size, block * WIDE_NUMBERS, voxel);
    ask_for(voxel[0] + AHEAD, WIDE_NUMBERS * size.voxel);
    for (int g = 0; g < w->groups; g++)
        for (int o = 0; o < w->out_tiles; o++, to += WIDE_TILE * w->pitch)
            wide_pack_rows(to, w->pitch, voxel, g * w->outs + o * WIDE_TILE,
                           smaller(WIDE_TILE, w->outs - o * WIDE_TILE));
}

/* Which elements of a line of x strip k has; those outside of it are zeros. */
static wide_line line_of_strip(const weight_lines *w, int k)
{
    int stride = w->c.stride[2], at = k * w->c.dilation[2] - w->c.pad_low[2];
    int numbers = w->y_width + 2 * (w->x_pairs - w->pairs);
    int64_t voxel = (int64_t)sizeof(uint16_t) * w->groups * w->ins;

    return (wide_line){
        .start = at * voxel, .step = stride * voxel, .pairs = w->x_pairs,
        .first = at < 0 ? (stride - 1 - at) / stride : 0,
        .end = at >= w->x_width ? 0 : smaller((w->x_width - 1 - at) / stride + 1, numbers),
    };
}

/* Line 'number' of 'fresh', a part of box 'x'. */
static void pack_x(const weight_lines *w, const char *x, const span *box, const span *fresh,
                   int64_t number, char *area)
{
    strides size = strides_of(w->groups * w->ins, w->x_width, w->x);
    int64_t from = line_offset(fresh, &size, number), plane = number / extent(fresh, LINES);
    int h = (int)(number % extent(fresh, LINES)), d = (int)(plane % extent(fresh, PLANES));
    int n = (int)(plane / extent(fresh, PLANES));
    char *to = area + w->y_size + WIDE_STEP * w->x_pairs *
               line_of_x(w, box, fresh->begin[CASES] + n, fresh->begin[PLANES] + d,
                         fresh->begin[LINES] + h);

    ask_for(x + from + AHEAD, size.line);
    for (int g = 0; g < w->groups; g++)
        for (int i = 0; i < w->in_tiles; i++)
            for (int k = 0; k < w->strips; k++, to += w->strip) {
                int64_t channel = g * w->ins + i * WIDE_TILE;
                wide_line line = line_of_strip(w, k);
                wide_pack_line(to, x + from + channel * (int64_t)sizeof(uint16_t), &line,
                               smaller(WIDE_TILE, w->ins - i * WIDE_TILE));
            }
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct work {
    const weight_lines *w;
    const pons_call *call;
    char *scratch;
    span y, x, fresh;       /* of the box that threads share */
    int box;
} work;

/* Where a job stands. */
typedef struct place {
    int group, d, h, block; /* d, h: of the kernel */
} place;

static place place_of(const weight_lines *w, int job)
{
    place p = { .block = job % w->blocks };

    job /= w->blocks;
    p.h = job % w->kernel[1];
    p.d = job / w->kernel[1] % w->kernel[0];
    p.group = job / w->kernel[1] / w->kernel[0];
    return p;
}

/* Neighbouring lines whose partners are neighbours are one run. */
static void add_line(const weight_lines *w, wide_stretch *run, int *count, int64_t y, int64_t x)
{
    wide_stretch next = { y * w->pairs * PAIR, x * w->x_pairs * WIDE_STEP, w->pairs };
    wide_stretch *last = run + *count - 1;

    if (*count > 0 && last->a + last->pairs * PAIR == next.a &&
        last->b + last->pairs * WIDE_STEP == next.b && last->pairs + next.pairs <= PIECE)
        last->pairs += next.pairs;
    else
        run[(*count)++] = next;
}

static int list_runs(const weight_lines *w, const span *y, const span *x, int kd, int kh,
                     wide_stretch *run)
{
    int count = 0;

    for (int n = y->begin[CASES]; n < y->end[CASES]; n++)
        for (int d = y->begin[PLANES]; d < y->end[PLANES]; d++) {
            int xd = meets(w, PLANES, d, kd);
            if (xd < 0 || xd >= w->x[PLANES])
                continue;
            for (int h = y->begin[LINES]; h < y->end[LINES]; h++) {
                int xh = meets(w, LINES, h, kh);
                if (xh >= 0 && xh < w->x[LINES])
                    add_line(w, run, &count, line_of_y(y, n, d, h), line_of_x(w, x, n, xd, xh));
            }
        }
    return count;
}

/* As many runs as have PIECE pairs together, but one. */
static int piece_of(const wide_stretch *run, int count)
{
    int64_t pairs = run[0].pairs;
    int n = 1;

    while (n < count && pairs + run[n].pairs <= PIECE)
        pairs += run[n++].pairs;
    return n;
}

/* Where the panels of a group's column begin. */
static const char *column_of(const weight_lines *w, const char *area, int group, int column)
{
    int tile = group * w->in_tiles + column / w->kernel[2], k = column % w->kernel[2];

    return area + w->y_size + ((int64_t)tile * w->strips + k % w->strips) * w->strip +
           (int64_t)(k / w->strips) * w->shift * WIDE_STEP;
}

/* All sums of a job over a box, to 'sums' or, if 'add', onto what is there. */
static void multiply(const weight_lines *w, const place *at, const char *area, const wide_stretch *run,
                     int count, float *sums, bool add)
{
    int first = at->block * WIDE_ACROSS;
    wide_line_product p = { .rows = WIDE_TILE,
                            .columns = smaller(WIDE_ACROSS, w->columns - first),
                            .pitch = w->pitch, .run = run, .add = add };

    for (int n = 0; n < p.columns; n++)
        p.b[n] = column_of(w, area, at->group, first + n);
    do { /* also where no line meets another: sums of nothing */
        p.count = count > 0 ? piece_of(p.run, count) : 0;
        for (int o = 0; o < w->out_tiles; o++) {
            p.a = area + (int64_t)(at->group * w->out_tiles + o) * WIDE_TILE * w->pitch;
            p.c = sums + (int64_t)o * WIDE_TILE * ROW_FLOATS;
            w->unit->lines(&p);
        }
        p.add = true;
        p.run += p.count;
        count -= p.count;
    } while (count > 0);
}

/* ---- the gradient from the sums -------------------------------------------------------------- */

static void write_sums(const weight_lines *w, const place *at, const float *sums, float *weight)
{
    int first = at->block * WIDE_ACROSS, columns = smaller(WIDE_ACROSS, w->columns - first);
    int rows = w->kernel[0] * w->kernel[1];

    for (int o = 0; o < w->outs; o++, sums += ROW_FLOATS)
        for (int n = 0; n < columns; n++) {
            int tap = (at->d * w->kernel[1] + at->h) * w->kernel[2] + (first + n) % w->kernel[2];
            int in = (first + n) / w->kernel[2] * WIDE_TILE;
            int64_t row = ((int64_t)at->group * w->outs + o) * rows * w->kernel[2] + tap;
            float *to = weight + row * w->ins + in;
            int count = smaller(WIDE_TILE, w->ins - in);

            memcpy(to, sums + n * WIDE_TILE, (size_t)count * sizeof *to);
        }
}

/* Neighbours, then pairs of pairs: the order is fixed by the number of tasks. */
static void add_tasks(float *sums, int64_t count, int64_t apart, int tasks)
{
    for (int step = 1; step < tasks; step *= 2)
        for (int t = 0; t + step < tasks; t += 2 * step) {
            float *to = sums + t * apart, *from = sums + (t + step) * apart;
            for (int64_t i = 0; i < count; i++)
                to[i] += from[i];
        }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int64_t floats(int64_t bytes) { return bytes / (int64_t)sizeof(float); }

/* What follows lies in scratch: areas of packed lines, lists of runs, sums. */
static int areas(const weight_lines *w) { return w->tasks > 0 ? w->threads : 1; }

static char *area_of(const work *k, int thread)
{
    return k->scratch + (k->w->tasks > 0 ? thread : 0) * (k->w->y_size + k->w->x_size);
}

static wide_stretch *runs_of(const work *k, int thread)
{
    const weight_lines *w = k->w;

    return (wide_stretch *)(k->scratch + areas(w) * (w->y_size + w->x_size) + thread * w->runs_size);
}

/* Sums of a job: for each task, or one set, or where one box is all, one job of each thread. */
static int64_t part_count(const weight_lines *w)
{
    return w->tasks > 0 ? (int64_t)w->tasks * w->jobs : w->box_count > 1 ? w->jobs : w->threads;
}

/* Of a task's first job. */
static float *sums_of(const work *k, int64_t task)
{
    const weight_lines *w = k->w;
    char *sums = k->scratch + areas(w) * (w->y_size + w->x_size) + w->threads * w->runs_size;

    return (float *)(sums + task * w->jobs * w->part_size);
}

static void boxes_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const weight_lines *w = k->w;
    char *area = area_of(k, thread);
    wide_stretch *run = runs_of(k, thread);
    int first = (int)(w->box_count * task / w->tasks);
    int end = (int)(w->box_count * (task + 1) / w->tasks);

    for (int box = first; box < end; box++) {
        span y = box_of_y(w, box), x = box_of_x(w, &y);
        span fresh = box > first ? fresh_of(w, box, x) : x;
        int count = 0;

        for (int64_t b = 0; b < block_count(w, &y); b++)
            pack_y(w, k->call->input[1], &y, b, area);
        for (int64_t i = 0; i < line_count(&fresh); i++)
            pack_x(w, k->call->input[0], &x, &fresh, i, area);
        for (int job = 0; job < w->jobs; job++) {
            place at = place_of(w, job);
            if (at.block == 0)
                count = list_runs(w, &y, &x, at.d, at.h, run);
            multiply(w, &at, area, run, count, sums_of(k, task) + job * floats(w->part_size),
                     box > first);
        }
    }
}

static void write_task(void *context, int64_t job, int thread)
{
    const work *k = context;
    const weight_lines *w = k->w;
    float *sums = sums_of(k, 0) + job * floats(w->part_size);
    place at = place_of(w, (int)job);

    (void)thread;
    add_tasks(sums, floats(w->part_size), w->jobs * floats(w->part_size), w->tasks);
    write_sums(w, &at, sums, k->call->output[0]);
}

static void pack_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    int64_t of_y = block_count(k->w, &k->y);

    (void)thread;
    if (i < of_y)
        pack_y(k->w, k->call->input[1], &k->y, i, k->scratch);
    else
        pack_x(k->w, k->call->input[0], &k->x, &k->fresh, i - of_y, k->scratch);
}

static void job_task(void *context, int64_t job, int thread)
{
    const work *k = context;
    const weight_lines *w = k->w;
    wide_stretch *run = runs_of(k, thread);
    place at = place_of(w, (int)job);
    int count = list_runs(w, &k->y, &k->x, at.d, at.h, run);
    float *sums = sums_of(k, 0) + (w->box_count > 1 ? job : thread) * floats(w->part_size);

    multiply(w, &at, k->scratch, run, count, sums, k->box > 0);
    if (k->box == w->box_count - 1)
        write_sums(w, &at, sums, k->call->output[0]);
}

static pons_status lines_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const weight_lines *w = kernel->state;
    work k = { .w = w, .call = call, .scratch = call->scratch };

    (void)err;
    if (w->tasks > 0) {
        cpu_parallel(w->threads, w->tasks, boxes_task, &k);
        cpu_parallel(w->threads, w->jobs, write_task, &k);
        return PONS_OK;
    }
    for (; k.box < w->box_count; k.box++) {
        k.y = box_of_y(w, k.box);
        k.x = box_of_x(w, &k.y);
        k.fresh = fresh_of(w, k.box, k.x);
        cpu_parallel(w->threads, block_count(w, &k.y) + line_count(&k.fresh), pack_task, &k);
        cpu_parallel(w->threads, w->jobs, job_task, &k);
    }
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void lines_free(pons_kernel *kernel)
{
    weight_lines *w = kernel->state;

    free(w->zero);
    free(w);
}

/* The largest box, from which every other one differs at the tensors' ends alone. */
static int64_t rows_bytes(const weight_lines *w)
{
    int64_t lines = (int64_t)w->box[CASES] * w->box[PLANES] * w->box[LINES];

    /* An odd number of lines of the cache: rows do not meet in one set. */
    return (over(lines * 2 * w->pairs, WIDE_NUMBERS) | 1) * WIDE_STEP;
}

/* Of x, planes or lines, that a box meets at most. */
static int reach(const weight_lines *w, int axis)
{
    return smaller((w->box[axis] - 1) * w->c.stride[axis - 1] +
                   (w->kernel[axis - 1] - 1) * w->c.dilation[axis - 1] + 1, w->x[axis]);
}

static int64_t strip_bytes(const weight_lines *w)
{
    return (int64_t)w->box[CASES] * reach(w, PLANES) * reach(w, LINES) * w->x_pairs * WIDE_STEP;
}

static int64_t y_bytes(const weight_lines *w)
{
    return rows_bytes(w) * w->groups * w->out_tiles * WIDE_TILE;
}

static int64_t x_bytes(const weight_lines *w)
{
    return strip_bytes(w) * w->groups * w->in_tiles * w->strips;
}

static bool box_fits(const weight_lines *w, bool apart)
{
    return apart ? y_bytes(w) + x_bytes(w) <= BOX_BYTES : y_bytes(w) <= ROWS_BYTES;
}

/* Cases first; then planes, since those of x that boxes share are packed once, then lines. */
static void plan_boxes(weight_lines *w, bool apart)
{
    memcpy(w->box, w->y, sizeof w->box);
    while (!box_fits(w, apart)) {
        int axis = w->box[CASES] > 1 ? CASES : w->box[PLANES] > 1 ? PLANES : LINES;
        if (w->box[axis] == 1)
            break;
        w->box[axis] = (int)over(w->box[axis], 2);
    }
    w->box_count = 1;
    for (int i = 0; i < AXES; i++) {
        w->boxes[i] = (int)over(w->y[i], w->box[i]);
        w->box[i] = (int)over(w->y[i], w->boxes[i]);
        w->box_count *= w->boxes[i];
    }
}

/*
 * Kernel positions k and k + strips, whole pairs apart, share panels. The last ones of a line lie
 * beyond those of y, so only where lines are long.
 */
static void plan_strips(weight_lines *w)
{
    int step = 2 * w->c.stride[2], dilation = w->c.dilation[2], period = 1;

    while (period * dilation % step != 0)
        period++;
    w->strips = w->kernel[2];
    w->shift = 0;
    if (w->pairs >= LONG && period < w->kernel[2]) {
        w->strips = period;
        w->shift = period * dilation / step;
    }
    w->x_pairs = w->pairs + (w->kernel[2] - 1) / w->strips * w->shift;
}

static void plan(weight_lines *w)
{
    bool apart;

    w->in_tiles = (int)over(w->ins, WIDE_TILE);
    w->out_tiles = (int)over(w->outs, WIDE_TILE);
    w->pairs = (int)over(w->y_width, 2);
    plan_strips(w);
    w->columns = w->in_tiles * w->kernel[2];
    w->blocks = (int)over(w->columns, WIDE_ACROSS);
    w->jobs = w->groups * w->kernel[0] * w->kernel[1] * w->blocks;
    w->part_size = (int64_t)sizeof(float) * w->out_tiles * WIDE_TILE * ROW_FLOATS;
    apart = w->jobs * w->part_size <= SUMS_APART;
    plan_boxes(w, apart);
    w->tasks = apart && w->box_count >= BOXES_APART ? smaller(TASKS, w->box_count) : 0;
    w->pitch = rows_bytes(w);
    w->planes = reach(w, PLANES);
    w->strip = strip_bytes(w);
    w->y_size = y_bytes(w);
    w->x_size = x_bytes(w);
    w->runs_size = over((int64_t)w->box[CASES] * w->box[PLANES] * w->box[LINES] *
                        (int64_t)sizeof(wide_stretch), 64) * 64;
}

static void read_shapes(weight_lines *w, const pons_request *request)
{
    const int64_t *x = request->input[0].shape.extent, *y = request->input[1].shape.extent;
    const int64_t *dw = request->output[0].shape.extent;

    w->c = *(const pons_convolution *)request->attributes;
    w->groups = w->c.groups;
    w->ins = (int)dw[4];
    w->outs = (int)dw[0] / w->groups;
    for (int i = 0; i < 3; i++) {
        w->x[i] = (int)x[i];
        w->y[i] = (int)y[i];
        w->kernel[i] = (int)dw[1 + i];
    }
    w->x_width = (int)x[3];
    w->y_width = (int)y[3];
}

pons_status wide_prepare_lines(const wide_unit *unit, int threads, const pons_request *request,
                               pons_kernel *kernel, bool *supported, pons_error *err)
{
    weight_lines *w = calloc(1, sizeof *w);

    *supported = false;
    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    w->unit = unit;
    w->threads = threads;
    read_shapes(w, request);
    plan(w);
    w->zero = calloc((size_t)(w->groups * larger(w->ins, w->outs)), sizeof(uint16_t));
    if (w->zero == NULL) {
        free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    *kernel = (pons_kernel){ .run = lines_run, .free = lines_free, .state = w,
                             .implementation = "own" };
    kernel->scratch_size = (size_t)(areas(w) * (w->y_size + w->x_size) + threads * w->runs_size +
                                    part_count(w) * w->part_size);
    *supported = true;
    return PONS_OK;
}
