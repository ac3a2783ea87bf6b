/*
 * gemm_weight_rows.c - the gradient of a convolution by its weight, between tensors of many
 * channels, on vectors of pairs (bf16_gemm.h).
 *
 *   dw[o][tap][i] = sum over positions p of y[p][o] x[stride p + dilation tap - pad][i]
 *
 * Two neighbours along W are a pair. The output's gradient is packed as rows of one channel each,
 * the input as panels of the elements that a kernel position along W meets. Positions that lie
 * whole pairs apart have a strip of panels in common: with a stride of 1 every other one. A kernel
 * position along D and H is a choice of lines: those that meet no line of the input are left out,
 * so zeros are multiplied at the ends of lines alone. How lines are packed and sums become the
 * weight is left to a form (gemm_weight_rows.h).
 *
 * Lines are packed in boxes. Where all sums are few numbers a box fits a core's cache; a task takes
 * some boxes and sums up on its own, and the tasks' sums are added in a tree. Where they are many
 * all threads pack a box together, and a task adds to some of the sums, which wait for the next
 * box. Where the weight is made of all groups' sums a task of the last box has all those of a few
 * output channels, and writes the weight while they are in the cache. Boxes follow one another
 * along D, and the input's planes that two of them meet stay packed: plane d lies at d modulo as
 * many as a box meets. The cut depends on the shapes alone, never on the threads (R4).
 */
#include "cpu/conv/bf16_gemm/gemm_weight_rows.h"

#include "cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    BOX_BYTES = 3 << 18,    /* both packed tensors: what a core's cache holds beside the sums */
    ROWS_BYTES = 3 << 18,   /* the packed gradient, which all of a task's sums read */
    GROUPS_LEAST = 3 << 19, /* of many groups, of which a task's sums read one; */
    GROUPS_BYTES = 9 << 19, /* at most */
    SUMS_APART = 1 << 19,   /* bytes */
    BOXES_APART = 4,        /* that many boxes are tasks of their own; */
    TASKS = 16,             /* so many at most */
    SHARE = 2,              /* tiles of output channels of a task that sums up many groups */
    PIECE = 144,            /* pairs whose panels stay in the first cache while all rows pass */
    LONG = 12,              /* pairs of a line, beside which one more at its end is little */
    PAIR = 2 * sizeof(uint16_t)
};

/* ---- boxes ----------------------------------------------------------------------------------- */

static int extent(const weight_span *s, int axis) { return s->end[axis] - s->begin[axis]; }

/* Behind one another: cases, then lines, then planes. */
static weight_span box_of_y(const weight_lines *w, int number)
{
    static const int axes[] = { PLANES, LINES, CASES };
    weight_span s;

    for (int i = 0; i < AXES; i++) {
        int axis = axes[i];
        s.begin[axis] = number % w->boxes[axis] * w->box[axis];
        s.end[axis] = min_int(s.begin[axis] + w->box[axis], w->y[axis]);
        number /= w->boxes[axis];
    }
    return s;
}

int64_t weight_line_count(const weight_span *s)
{
    return (int64_t)extent(s, CASES) * extent(s, PLANES) * extent(s, LINES);
}

void weight_line_of(const weight_span *s, int64_t number, int at[AXES])
{
    int64_t plane = number / extent(s, LINES);

    at[LINES] = s->begin[LINES] + (int)(number % extent(s, LINES));
    at[PLANES] = s->begin[PLANES] + (int)(plane % extent(s, PLANES));
    at[CASES] = s->begin[CASES] + (int)(plane / extent(s, PLANES));
}

/* Which plane or line of x a kernel position meets, perhaps outside of it. */
static int meets(const weight_lines *w, int axis, int y, int k)
{
    const pons_convolution *c = &w->c;

    return y * c->stride[axis - 1] + k * c->dilation[axis - 1] - c->pad_low[axis - 1];
}

/* What the lines of a box meet. */
static weight_span box_of_x(const weight_lines *w, const weight_span *y)
{
    weight_span s = { { y->begin[CASES] }, { y->end[CASES] } };

    for (int i = PLANES; i < AXES; i++) {
        s.begin[i] = max_int(meets(w, i, y->begin[i], 0), 0);
        s.end[i] = min_int(meets(w, i, y->end[i] - 1, w->kernel[i - 1] - 1) + 1, w->x[i]);
        s.end[i] = max_int(s.begin[i], s.end[i]);
    }
    return s;
}

/* What is left of it to pack behind box 'number' - 1, which lies in the same area. */
static weight_span fresh_of(const weight_lines *w, int number, weight_span x)
{
    weight_span before;

    if (number % w->boxes[PLANES] > 0) {
        before = box_of_y(w, number - 1);
        before = box_of_x(w, &before);
        x.begin[PLANES] = max_int(x.begin[PLANES], before.end[PLANES]);
    }
    return x;
}

static int64_t line_of_y(const weight_span *s, int n, int d, int h)
{
    return ((int64_t)(n - s->begin[CASES]) * extent(s, PLANES) + d - s->begin[PLANES])
           * extent(s, LINES) + h - s->begin[LINES];
}

/* Lines that neighbours of y meet are neighbours. */
static int64_t line_of_x(const weight_lines *w, const weight_span *s, int n, int d, int h)
{
    int stride = w->c.stride[1], lines = extent(s, LINES);
    int number = h - s->begin[LINES], phase = number % stride;

    return ((int64_t)(n - s->begin[CASES]) * w->planes + d % w->planes) * lines +
           phase * (lines / stride) + min_int(phase, lines % stride) + number / stride;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Blocks of WIDE_NUMBERS numbers. */
static int64_t block_count(const weight_lines *w, const weight_span *y)
{
    return ceil_div_i64(weight_line_count(y) * 2 * w->pairs, WIDE_NUMBERS);
}

static void pack_y(const weight_lines *w, const char *y, const weight_span *s, int64_t block,
                   char *area)
{
    w->form->pack_y(w, y, s, block, area + block * WIDE_STEP);
}

/* Line 'number' of 'fresh', a part of box 'x'. */
static void pack_x(const weight_lines *w, const char *x, const weight_span *box,
                   const weight_span *fresh, int64_t number, char *area)
{
    int at[AXES];
    int64_t line;

    weight_line_of(fresh, number, at);
    line = line_of_x(w, box, at[CASES], at[PLANES], at[LINES]);
    w->form->pack_x(w, x, at, area + w->y_size + line * w->x_pairs * WIDE_STEP);
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct work {
    const weight_lines *w;
    const pons_call *call;
    char *scratch;
    weight_span y, x, fresh; /* of the box that threads share */
    int box;
} work;

static weight_place place_of(const weight_lines *w, int job)
{
    int block = job % w->blocks;
    weight_place p = { .first = w->columns * block / w->blocks,
                       .end = w->columns * (block + 1) / w->blocks, .end_out = w->out_tiles };

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

/* Of one set by one. */
static int list_lines(const weight_lines *w, const weight_span *y, const weight_span *x,
                      const weight_place *at, wide_stretch *run)
{
    int count = 0;

    for (int n = y->begin[CASES]; n < y->end[CASES]; n++)
        for (int d = y->begin[PLANES]; d < y->end[PLANES]; d++) {
            int xd = meets(w, PLANES, d, at->d);
            if (xd < 0 || xd >= w->x[PLANES])
                continue;
            for (int h = y->begin[LINES]; h < y->end[LINES]; h++) {
                int xh = meets(w, LINES, h, at->h);
                if (xh >= 0 && xh < w->x[LINES])
                    add_line(w, run, &count, line_of_y(y, n, d, h), line_of_x(w, x, n, xd, xh));
            }
        }
    return count;
}

/* All terms of a group, from 'count' runs of one set by one. */
static int list_terms(const weight_lines *w, int group, const wide_stretch *line, int count,
                      wide_stretch *run)
{
    int64_t y_set = w->out_tiles * WIDE_TILE * w->pitch, x_set = w->in_tiles * w->strips * w->strip;
    weight_term term[WEIGHT_TERMS] = { { group, group } };
    int terms = w->form->terms != NULL ? w->form->terms(w, group, term) : 1;

    for (int i = 0; i < terms; i++)
        for (int k = 0; k < count; k++)
            *run++ = (wide_stretch){ line[k].a + term[i].y * y_set, line[k].b + term[i].x * x_set,
                                     line[k].pairs };
    return terms * count;
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

/* Where the panels of a column begin, in each set. */
static const char *column_of(const weight_lines *w, const char *area, int column)
{
    int tile = column / w->kernel[2], k = column % w->kernel[2];

    return area + w->y_size + ((int64_t)tile * w->strips + k % w->strips) * w->strip +
           (int64_t)(k / w->strips) * w->shift * WIDE_STEP;
}

/* All sums of a job over a box, to 'sums' or, if 'add', onto what is there. */
static void multiply(const weight_lines *w, const weight_place *at, const char *area,
                     const wide_stretch *run, int count, float *sums, bool add)
{
    wide_line_product p = { .rows = WIDE_TILE, .columns = at->end - at->first, .pitch = w->pitch,
                            .run = run, .add = add };

    for (int n = 0; n < p.columns; n++)
        p.b[n] = column_of(w, area, at->first + n);
    do { /* also where no line meets another: sums of nothing */
        p.count = count > 0 ? piece_of(p.run, count) : 0;
        for (int o = at->first_out; o < at->end_out; o++) {
            p.a = area + (int64_t)o * WIDE_TILE * w->pitch;
            p.c = sums + (int64_t)(o - at->first_out) * WIDE_TILE * WEIGHT_ROW;
            w->unit->lines(&p);
        }
        p.add = true;
        p.run += p.count;
        count -= p.count;
    } while (count > 0);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/*
 * A job's sums, of its columns. Neighbours, then pairs of pairs: the order is fixed by the number
 * of tasks.
 */
static void add_tasks(float *sums, int64_t rows, int columns, int64_t apart, int tasks)
{
    for (int step = 1; step < tasks; step *= 2)
        for (int t = 0; t + step < tasks; t += 2 * step) {
            float *to = sums + t * apart, *from = sums + (t + step) * apart;
            for (int64_t r = 0; r < rows; r++, to += WEIGHT_ROW, from += WEIGHT_ROW)
                for (int i = 0; i < columns * WIDE_TILE; i++)
                    to[i] += from[i];
        }
}

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

    return (wide_stretch *)(k->scratch + areas(w) * (w->y_size + w->x_size)
                            + thread * w->runs_size);
}

/* Bytes of a job's sums of a share of the output channels. */
static int64_t share_bytes(const weight_lines *w)
{
    return ceil_div_i64(w->out_tiles, w->shares) * WIDE_TILE * WEIGHT_ROW * (int64_t)sizeof(float);
}

/* Of a task that writes: one job's, or those of all groups. */
static int64_t write_bytes(const weight_lines *w)
{
    return w->form->together ? w->groups * share_bytes(w) : w->part_size;
}

/* Sums wait for other tasks or another box, or are a thread's until they are written. */
static int64_t sums_bytes(const weight_lines *w)
{
    return w->tasks > 0 || w->box_count > 1 ? max_int(w->tasks, 1) * w->jobs * w->part_size
                                            : w->threads * write_bytes(w);
}

/* Of a task's first job. */
static float *sums_of(const work *k, int64_t task)
{
    const weight_lines *w = k->w;
    char *sums = k->scratch + areas(w) * (w->y_size + w->x_size) + w->threads * w->runs_size;

    return (float *)(sums + task * w->jobs * w->part_size);
}

/* What is listed of the lines that meet at a place, and of a group's terms. */
static wide_stretch *terms_of(const work *k, wide_stretch *run)
{
    return run + k->w->runs_size / (int64_t)sizeof *run / (WEIGHT_TERMS + 1);
}

/* All sums of a box, each onto those of the boxes before it. */
static void multiply_box(const work *k, const weight_span *y, const weight_span *x,
                         const char *area, wide_stretch *line, float *sums, bool add)
{
    const weight_lines *w = k->w;
    wide_stretch *run = terms_of(k, line);
    int lines = 0;

    for (int i = 0; i < w->places; i++) {
        weight_place at = place_of(w, i);
        if (at.first == 0)
            lines = list_lines(w, y, x, &at, line);
        for (int g = 0; g < w->groups; g++)
            multiply(w, &at, area, run, list_terms(w, g, line, lines, run),
                     sums + ((int64_t)g * w->places + i) * floats(w->part_size), add);
    }
}

static void boxes_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const weight_lines *w = k->w;
    char *area = area_of(k, thread);
    int first = (int)(w->box_count * task / w->tasks);
    int end = (int)(w->box_count * (task + 1) / w->tasks);

    for (int box = first; box < end; box++) {
        weight_span y = box_of_y(w, box), x = box_of_x(w, &y);
        weight_span fresh = box > first ? fresh_of(w, box, x) : x;

        for (int64_t b = 0; b < block_count(w, &y); b++)
            pack_y(w, k->call->input[1], &y, b, area);
        for (int64_t i = 0; i < weight_line_count(&fresh); i++)
            pack_x(w, k->call->input[0], &x, &fresh, i, area);
        multiply_box(k, &y, &x, area, runs_of(k, thread), sums_of(k, task), box > first);
    }
}

/* Jobs whose sums make one part of the weight; they are 'places' apart. */
static int writes(const weight_lines *w)
{
    return w->form->together ? w->places : w->jobs;
}

static void write_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const weight_lines *w = k->w;
    weight_place at = place_of(w, (int)i);
    int64_t part = floats(w->part_size);

    (void)thread;
    for (int64_t job = i; job < w->jobs; job += writes(w))
        add_tasks(sums_of(k, 0) + job * part, part / WEIGHT_ROW, at.end - at.first, w->jobs * part,
                  w->tasks);
    w->form->write(w, &at, sums_of(k, 0) + i * part, w->places * part, k->call->output[0]);
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

/* The sums of 'groups' groups from that of 'at' on, 'apart' floats from one's to the next's. */
static void multiply_groups(const work *k, const weight_place *at, int thread, int groups,
                            float *sums, int64_t apart)
{
    const weight_lines *w = k->w;
    wide_stretch *line = runs_of(k, thread), *run = terms_of(k, line);
    int lines = list_lines(w, &k->y, &k->x, at, line);

    for (int g = 0; g < groups; g++)
        multiply(w, at, k->scratch, run, list_terms(w, at->group + g, line, lines, run),
                 sums + g * apart, k->box > 0);
}

/* A job's sums, which wait for the next box. */
static void job_task(void *context, int64_t job, int thread)
{
    const work *k = context;
    weight_place at = place_of(k->w, (int)job);

    multiply_groups(k, &at, thread, 1, sums_of(k, 0) + job * floats(k->w->part_size), 0);
}

/* Of the last box a share of the output channels of what is written at once. */
static void last_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const weight_lines *w = k->w;
    int share = (int)(i % w->shares), job = (int)(i / w->shares);
    weight_place at = place_of(w, job);
    bool stay = w->box_count > 1;
    int64_t apart = floats(stay ? w->places * w->part_size : share_bytes(w));
    float *sums = sums_of(k, 0);

    at.first_out = w->out_tiles * share / w->shares;
    at.end_out = w->out_tiles * (share + 1) / w->shares;
    sums += stay ? job * floats(w->part_size) + (int64_t)at.first_out * WIDE_TILE * WEIGHT_ROW
                 : thread * floats(write_bytes(w));
    multiply_groups(k, &at, thread, w->form->together ? w->groups : 1, sums, apart);
    w->form->write(w, &at, sums, apart, k->call->output[0]);
}

static pons_status lines_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const weight_lines *w = kernel->state;
    work k = { .w = w, .call = call, .scratch = call->scratch };

    (void)err;
    if (w->tasks > 0) {
        cpu_parallel(w->threads, w->tasks, boxes_task, &k);
        cpu_parallel(w->threads, writes(w), write_task, &k);
        return PONS_OK;
    }
    for (; k.box < w->box_count; k.box++) {
        k.y = box_of_y(w, k.box);
        k.x = box_of_x(w, &k.y);
        k.fresh = fresh_of(w, k.box, k.x);
        cpu_parallel(w->threads, block_count(w, &k.y) + weight_line_count(&k.fresh), pack_task, &k);
        if (k.box < w->box_count - 1)
            cpu_parallel(w->threads, w->jobs, job_task, &k);
        else
            cpu_parallel(w->threads, (int64_t)writes(w) * w->shares, last_task, &k);
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
    return (ceil_div_i64(lines * 2 * w->pairs, WIDE_NUMBERS) | 1) * WIDE_STEP;
}

/* Of x, planes or lines, that a box meets at most. */
static int reach(const weight_lines *w, int axis)
{
    return min_int((w->box[axis] - 1) * w->c.stride[axis - 1] +
                   (w->kernel[axis - 1] - 1) * w->c.dilation[axis - 1] + 1, w->x[axis]);
}

/* An odd number of lines of the cache, too. */
static int64_t strip_bytes(const weight_lines *w)
{
    int64_t lines = (int64_t)w->box[CASES] * reach(w, PLANES) * reach(w, LINES);

    return (lines * w->x_pairs | 1) * WIDE_STEP;
}

static int64_t y_bytes(const weight_lines *w)
{
    return rows_bytes(w) * w->y_sets * w->out_tiles * WIDE_TILE;
}

static int64_t x_bytes(const weight_lines *w)
{
    return strip_bytes(w) * w->x_sets * w->in_tiles * w->strips;
}

/*
 * Groups that wait for their turn may take as much as the sums, which every box reads and writes.
 * All threads wait for each other twice a box, so boxes are not small.
 */
static int64_t rows_fit(const weight_lines *w)
{
    int64_t sums = w->jobs * w->part_size;

    if (w->groups == 1)
        return ROWS_BYTES;
    return sums < GROUPS_LEAST ? GROUPS_LEAST : sums < GROUPS_BYTES ? sums : GROUPS_BYTES;
}

static bool box_fits(const weight_lines *w, bool apart)
{
    return apart ? y_bytes(w) + x_bytes(w) <= BOX_BYTES : y_bytes(w) <= rows_fit(w);
}

/*
 * Cases first; then planes, since those of x that boxes share are packed once, then lines, or
 * before them where boxes share none.
 */
static int axis_to_cut(const weight_lines *w)
{
    if (w->box[CASES] > 1)
        return CASES;
    return w->box[PLANES] > 1 && (w->kernel[1] > 1 || w->box[LINES] == 1) ? PLANES : LINES;
}

static void plan_boxes(weight_lines *w, bool apart)
{
    memcpy(w->box, w->y, sizeof w->box);
    while (!box_fits(w, apart)) {
        int axis = axis_to_cut(w);
        if (w->box[axis] == 1)
            break;
        w->box[axis] = (int)ceil_div_i64(w->box[axis], 2);
    }
    w->box_count = 1;
    for (int i = 0; i < AXES; i++) {
        w->boxes[i] = (int)ceil_div_i64(w->y[i], w->box[i]);
        w->box[i] = (int)ceil_div_i64(w->y[i], w->boxes[i]);
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

/* Bytes of all jobs' sums, without what rows leave empty behind their columns. */
static int64_t sums_in_use(const weight_lines *w)
{
    return w->jobs / w->blocks * w->columns * (w->part_size / WIDE_ACROSS);
}

static void plan(weight_lines *w)
{
    bool apart;

    w->in_tiles = (int)ceil_div_i64(w->ins, WIDE_TILE);
    w->out_tiles = (int)ceil_div_i64(w->outs, WIDE_TILE);
    w->pairs = (int)ceil_div_i64(w->y_width, 2);
    plan_strips(w);
    w->columns = w->in_tiles * w->kernel[2];
    w->blocks = (int)ceil_div_i64(w->columns, WIDE_ACROSS);
    w->places = w->kernel[0] * w->kernel[1] * w->blocks;
    w->jobs = w->groups * w->places;
    w->part_size = (int64_t)sizeof(float) * w->out_tiles * WIDE_TILE * WEIGHT_ROW;
    apart = sums_in_use(w) <= SUMS_APART;
    plan_boxes(w, apart);
    w->tasks = apart && w->box_count >= BOXES_APART ? min_int(TASKS, w->box_count) : 0;
    w->pitch = rows_bytes(w);
    w->planes = reach(w, PLANES);
    w->strip = strip_bytes(w);
    w->y_size = y_bytes(w);
    w->x_size = x_bytes(w);
    w->runs_size = round_up_i64((int64_t)w->box[CASES] * w->box[PLANES] * w->box[LINES] *
                                (int64_t)sizeof(wide_stretch), 64) * (WEIGHT_TERMS + 1);
    w->shares = w->form->together && w->tasks == 0 ? (int)ceil_div_i64(w->out_tiles, SHARE) : 1;
}

pons_status wide_lines_prepare(weight_lines *w, pons_kernel *kernel, bool *supported,
                               pons_error *err)
{
    plan(w);
    w->zero = calloc((size_t)(w->groups * max_int(w->ins, w->outs)), sizeof(uint16_t));
    if (w->zero == NULL) {
        free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    *kernel = (pons_kernel){ .run = lines_run, .free = lines_free, .state = w,
                             .implementation = w->form->name };
    kernel->scratch_size = (size_t)(areas(w) * (w->y_size + w->x_size) + w->threads * w->runs_size +
                                    sums_bytes(w));
    *supported = true;
    return PONS_OK;
}
