/*
 * gemm_weight_rows.c - weight gradients of convolutions on vectors that multiply pairs of bf16
 * (bf16_gemm.h).
 *
 *   dw[o][tap][i] = sum over positions p of y[p][o] x[stride p + dilation tap - pad][i]
 *
 * Two neighbours along W are a pair. The output's gradient is packed as rows of one channel each,
 * the input as panels of the elements that a kernel position along W reads. Kernel positions that
 * differ by whole pairs share a strip of panels: with a stride of 1 every second one. A kernel
 * position along D and H selects lines. Lines outside the input are left out, so zeros are
 * multiplied only at the ends of lines. A form packs the lines and writes the weight
 * (gemm_weight_rows.h).
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
    BOX_BYTES = 3 << 18,    /* most bytes of both packed tensors: L2 cache, beside the sums */
    ROWS_BYTES = 3 << 18,   /* most bytes of the packed gradient with one group */
    GROUPS_LEAST = 3 << 19, /* minimum of that limit with many groups */
    GROUPS_BYTES = 9 << 19, /* maximum of that limit with many groups */
    SUMS_APART = 1 << 19,   /* most bytes of sums for which boxes are tasks */
    BOXES_APART = 4,        /* least count of boxes that are tasks */
    TASKS = 16,             /* most tasks with their own sums */
    SHARE = 2,              /* tiles of output channels of a task that adds many groups */
    PIECE = 144,            /* pairs whose panels stay in the L1 cache for all rows */
    LONG = 12               /* least pairs of a line for which one more pair costs little */
};

/* ---- boxes ----------------------------------------------------------------------------------- */

static int extent(const gemm_weight_span *s, int axis) { return s->end[axis] - s->begin[axis]; }

/* The order of the axes: cases, then lines, then planes. */
static gemm_weight_span box_of_y(const gemm_weight_rows *w, int number)
{
    static const int axes[] = { PLANES, LINES, CASES };
    gemm_weight_span s;

    for (int i = 0; i < AXES; i++) {
        int axis = axes[i];
        s.begin[axis] = number % w->boxes[axis] * w->box[axis];
        s.end[axis] = min_int(s.begin[axis] + w->box[axis], w->y[axis]);
        number /= w->boxes[axis];
    }
    return s;
}

int64_t gemm_weight_line_count(const gemm_weight_span *s)
{
    return (int64_t)extent(s, CASES) * extent(s, PLANES) * extent(s, LINES);
}

void gemm_weight_line_of(const gemm_weight_span *s, int64_t number, int at[AXES])
{
    int64_t plane = number / extent(s, LINES);

    at[LINES] = s->begin[LINES] + (int)(number % extent(s, LINES));
    at[PLANES] = s->begin[PLANES] + (int)(plane % extent(s, PLANES));
    at[CASES] = s->begin[CASES] + (int)(plane / extent(s, PLANES));
}

/* The plane or line of x that a kernel position reads; it may lie outside of x. */
static int meets(const gemm_weight_rows *w, int axis, int y, int k)
{
    const pons_convolution *c = &w->c;

    return y * c->stride[axis - 1] + k * c->dilation[axis - 1] - c->pad_low[axis - 1];
}

/* The planes and lines of x that a box of y reads. */
static gemm_weight_span box_of_x(const gemm_weight_rows *w, const gemm_weight_span *y)
{
    gemm_weight_span s = { { y->begin[CASES] }, { y->end[CASES] } };

    for (int i = PLANES; i < AXES; i++) {
        s.begin[i] = max_int(meets(w, i, y->begin[i], 0), 0);
        s.end[i] = meets(w, i, y->end[i] - 1, w->kernel[i - 1] - 1) + 1;
        s.end[i] = min_int(s.end[i] + (i == LINES ? w->ahead : 0), w->x[i]);
        s.end[i] = max_int(s.begin[i], s.end[i]);
    }
    return s;
}

/* The part that box 'number' - 1, which lies in the same area, has not packed. */
static gemm_weight_span fresh_of(const gemm_weight_rows *w, int number, gemm_weight_span x)
{
    gemm_weight_span before;

    if (number % w->boxes[PLANES] > 0) {
        before = box_of_y(w, number - 1);
        before = box_of_x(w, &before);
        x.begin[PLANES] = max_int(x.begin[PLANES], before.end[PLANES]);
    }
    return x;
}

static int64_t line_of_y(const gemm_weight_span *s, int n, int d, int h)
{
    return ((int64_t)(n - s->begin[CASES]) * extent(s, PLANES) + d - s->begin[PLANES])
           * extent(s, LINES) + h - s->begin[LINES];
}

/* Lines that neighbours of y meet are neighbours. */
static int64_t line_of_x(const gemm_weight_rows *w, const gemm_weight_span *s, int n, int d, int h)
{
    int stride = w->c.stride[1], lines = extent(s, LINES);
    int number = h - s->begin[LINES], phase = number % stride;

    return ((int64_t)(n - s->begin[CASES]) * w->planes + d % w->planes) * lines +
           phase * (lines / stride) + min_int(phase, lines % stride) + number / stride;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Blocks of GEMM_TILE pairs. */
static int64_t block_count(const gemm_weight_rows *w, const gemm_weight_span *y)
{
    return ceil_div_i64(gemm_weight_line_count(y) * w->pairs, GEMM_TILE);
}

static void pack_y(const gemm_weight_rows *w, const char *y, const gemm_weight_span *s,
                   int64_t block, char *area)
{
    w->form->pack_y(w, y, s, block, area + block * GEMM_STEP);
}

/* Line 'number' of 'fresh', a part of box 'x'. */
static void pack_x(const gemm_weight_rows *w, const char *x, const gemm_weight_span *box,
                   const gemm_weight_span *fresh, int64_t number, char *area)
{
    int at[AXES];
    int64_t line;

    gemm_weight_line_of(fresh, number, at);
    line = line_of_x(w, box, at[CASES], at[PLANES], at[LINES]);
    w->form->pack_x(w, x, at, area + w->y_size + line * w->x_pairs * GEMM_STEP);
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct work {
    const gemm_weight_rows *w;
    const pons_call *call;
    char *scratch;
    gemm_weight_span y, x, fresh; /* of the box that threads share */
    int box;
} work;

static gemm_weight_place place_of(const gemm_weight_rows *w, int job)
{
    int block = job % w->blocks;
    gemm_weight_place p = { .first = w->columns * block / w->blocks,
                            .end = w->columns * (block + 1) / w->blocks, .end_out = w->out_tiles };

    job /= w->blocks;
    p.h = job % w->kernel[1];
    p.d = job / w->kernel[1] % w->kernel[0];
    p.group = job / w->kernel[1] / w->kernel[0];
    return p;
}

/* Neighbouring lines whose partners are neighbours are one run. */
static void add_line(const gemm_weight_rows *w, gemm_run *run, int *count, int64_t y, int64_t x)
{
    gemm_run next = { y * w->pairs * GEMM_PAIR, x * w->x_pairs * GEMM_STEP, w->pairs };
    gemm_run *last = run + *count - 1;

    if (*count > 0 && last->a + last->pairs * GEMM_PAIR == next.a &&
        last->b + last->pairs * GEMM_STEP == next.b && last->pairs + next.pairs <= PIECE)
        last->pairs += next.pairs;
    else
        run[(*count)++] = next;
}

/* List the runs of lines of x that meet lines of y. */
static int list_lines(const gemm_weight_rows *w, const gemm_weight_span *y,
                      const gemm_weight_span *x, const gemm_weight_place *at, gemm_run *run)
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

/* Bytes from the partner of a line to that of the term. */
static int64_t ahead_of(const gemm_weight_rows *w, const gemm_weight_term *t)
{
    return ((int64_t)t->line * w->x_pairs + t->pair) * GEMM_STEP;
}

/* All terms of a group, from 'count' runs of one set by one. */
static int list_terms(const gemm_weight_rows *w, int group, const gemm_run *line, int count,
                      gemm_run *run)
{
    int64_t y_set = w->out_tiles * GEMM_TILE * w->pitch, x_set = w->in_tiles * w->strips * w->strip;
    gemm_weight_term term[WEIGHT_TERMS] = { { .y = group, .x = group } };
    int terms = w->form->terms != NULL ? w->form->terms(w, group, term) : 1;

    for (int i = 0; i < terms; i++)
        for (int k = 0; k < count; k++)
            *run++ = (gemm_run){ line[k].a + term[i].y * y_set,
                                 line[k].b + term[i].x * x_set + ahead_of(w, &term[i]),
                                 line[k].pairs };
    return terms * count;
}

/* The most runs with PIECE pairs together, at least one. */
static int piece_of(const gemm_run *run, int count)
{
    int64_t pairs = run[0].pairs;
    int n = 1;

    while (n < count && pairs + run[n].pairs <= PIECE)
        pairs += run[n++].pairs;
    return n;
}

/* Offsets of the panels of a column, in each set. */
static const char *column_of(const gemm_weight_rows *w, const char *area, int column)
{
    int tile = column / w->kernel[2], k = column % w->kernel[2];

    return area + w->y_size + ((int64_t)tile * w->strips + k % w->strips) * w->strip +
           (int64_t)(k / w->strips) * w->shift * GEMM_STEP;
}

/* All sums of a job over a box, to 'sums' or, if 'add', onto what is there. */
static void multiply(const gemm_weight_rows *w, const gemm_weight_place *at, const char *area,
                     const gemm_run *run, int count, float *sums, bool add)
{
    gemm_row_product p = { .rows = GEMM_TILE, .columns = at->end - at->first, .pitch = w->pitch,
                           .run = run, .add = add };

    for (int n = 0; n < p.columns; n++)
        p.b[n] = column_of(w, area, at->first + n);
    do { /* also without runs: the sums are zero */
        p.count = count > 0 ? piece_of(p.run, count) : 0;
        for (int o = at->first_out; o < at->end_out; o++) {
            p.a = area + (int64_t)o * GEMM_TILE * w->pitch;
            p.c = sums + (int64_t)(o - at->first_out) * GEMM_TILE * WEIGHT_ROW;
            w->unit->lines(&p);
        }
        p.add = true;
        p.run += p.count;
        count -= p.count;
    } while (count > 0);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* Add a job's sums of all tasks in a tree, whose order depends on the count of tasks alone. */
static void add_tasks(float *sums, int64_t rows, int columns, int64_t apart, int tasks)
{
    for (int step = 1; step < tasks; step *= 2)
        for (int t = 0; t + step < tasks; t += 2 * step) {
            float *to = sums + t * apart, *from = sums + (t + step) * apart;
            for (int64_t r = 0; r < rows; r++, to += WEIGHT_ROW, from += WEIGHT_ROW)
                for (int i = 0; i < columns * GEMM_TILE; i++)
                    to[i] += from[i];
        }
}

static int64_t floats(int64_t bytes) { return bytes / (int64_t)sizeof(float); }

/* Layout of the scratch memory: areas of packed lines, lists of runs, sums. */
static int areas(const gemm_weight_rows *w) { return w->tasks > 0 ? w->threads : 1; }

static char *area_of(const work *k, int thread)
{
    return k->scratch + (k->w->tasks > 0 ? thread : 0) * (k->w->y_size + k->w->x_size);
}

static gemm_run *runs_of(const work *k, int thread)
{
    const gemm_weight_rows *w = k->w;

    return (gemm_run *)(k->scratch + areas(w) * (w->y_size + w->x_size)
                        + thread * w->runs_size);
}

/* Bytes of a job's sums of a share of the output channels. */
static int64_t share_bytes(const gemm_weight_rows *w)
{
    return ceil_div_i64(w->out_tiles, w->shares) * GEMM_TILE * WEIGHT_ROW * (int64_t)sizeof(float);
}

/* The bytes of the sums that a task writes: those of one job, or of all groups. */
static int64_t write_bytes(const gemm_weight_rows *w)
{
    return w->form->together ? w->groups * share_bytes(w) : w->part_size;
}

/* Sums wait for other tasks or another box, or are a thread's until they are written. */
static int64_t sums_bytes(const gemm_weight_rows *w)
{
    return w->tasks > 0 || w->box_count > 1 ? max_int(w->tasks, 1) * w->jobs * w->part_size
                                            : w->threads * write_bytes(w);
}

/* The sums of a task's first job. */
static float *sums_of(const work *k, int64_t task)
{
    const gemm_weight_rows *w = k->w;
    char *sums = k->scratch + areas(w) * (w->y_size + w->x_size) + w->threads * w->runs_size;

    return (float *)(sums + task * w->jobs * w->part_size);
}

/* Lists of the lines that meet at one position, and of a group's terms. */
static gemm_run *terms_of(const work *k, gemm_run *run)
{
    return run + k->w->runs_size / (int64_t)sizeof *run / (WEIGHT_TERMS + 1);
}

/* All sums of a box, each onto those of the boxes before it. */
static void multiply_box(const work *k, const gemm_weight_span *y, const gemm_weight_span *x,
                         const char *area, gemm_run *line, float *sums, bool add)
{
    const gemm_weight_rows *w = k->w;
    gemm_run *run = terms_of(k, line);
    int lines = 0;

    for (int i = 0; i < w->places; i++) {
        gemm_weight_place at = place_of(w, i);
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
    const gemm_weight_rows *w = k->w;
    char *area = area_of(k, thread);
    int first = (int)(w->box_count * task / w->tasks);
    int end = (int)(w->box_count * (task + 1) / w->tasks);

    for (int box = first; box < end; box++) {
        gemm_weight_span y = box_of_y(w, box), x = box_of_x(w, &y);
        gemm_weight_span fresh = box > first ? fresh_of(w, box, x) : x;

        for (int64_t b = 0; b < block_count(w, &y); b++)
            pack_y(w, k->call->input[1], &y, b, area);
        for (int64_t i = 0; i < gemm_weight_line_count(&fresh); i++)
            pack_x(w, k->call->input[0], &x, &fresh, i, area);
        multiply_box(k, &y, &x, area, runs_of(k, thread), sums_of(k, task), box > first);
    }
}

/* Jobs whose sums make one part of the weight; they are 'places' apart. */
static int writes(const gemm_weight_rows *w)
{
    return w->form->together ? w->places : w->jobs;
}

static void write_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const gemm_weight_rows *w = k->w;
    gemm_weight_place at = place_of(w, (int)i);
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
static void multiply_groups(const work *k, const gemm_weight_place *at, int thread, int groups,
                            float *sums, int64_t apart)
{
    const gemm_weight_rows *w = k->w;
    gemm_run *line = runs_of(k, thread), *run = terms_of(k, line);
    int lines = list_lines(w, &k->y, &k->x, at, line);

    for (int g = 0; g < groups; g++)
        multiply(w, at, k->scratch, run, list_terms(w, at->group + g, line, lines, run),
                 sums + g * apart, k->box > 0);
}

/* Compute a job's sums of a box that is not the last. */
static void job_task(void *context, int64_t job, int thread)
{
    const work *k = context;
    gemm_weight_place at = place_of(k->w, (int)job);

    multiply_groups(k, &at, thread, 1, sums_of(k, 0) + job * floats(k->w->part_size), 0);
}

/* Compute and write a share of the output channels, of the last box. */
static void last_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const gemm_weight_rows *w = k->w;
    int share = (int)(i % w->shares), job = (int)(i / w->shares);
    gemm_weight_place at = place_of(w, job);
    bool stay = w->box_count > 1;
    int64_t apart = floats(stay ? w->places * w->part_size : share_bytes(w));
    float *sums = sums_of(k, 0);

    at.first_out = w->out_tiles * share / w->shares;
    at.end_out = w->out_tiles * (share + 1) / w->shares;
    sums += stay ? job * floats(w->part_size) + (int64_t)at.first_out * GEMM_TILE * WEIGHT_ROW
                 : thread * floats(write_bytes(w));
    multiply_groups(k, &at, thread, w->form->together ? w->groups : 1, sums, apart);
    w->form->write(w, &at, sums, apart, k->call->output[0]);
}

static pons_status lines_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const gemm_weight_rows *w = kernel->state;
    work k = { .w = w, .call = call, .scratch = call->scratch };

    (void)err;
    if (w->tasks > 0) {
        cpu_parallel_for(w->threads, w->tasks, boxes_task, &k);
        cpu_parallel_for(w->threads, writes(w), write_task, &k);
        return PONS_OK;
    }
    for (; k.box < w->box_count; k.box++) {
        k.y = box_of_y(w, k.box);
        k.x = box_of_x(w, &k.y);
        k.fresh = fresh_of(w, k.box, k.x);
        cpu_parallel_for(w->threads, block_count(w, &k.y) + gemm_weight_line_count(&k.fresh),
                         pack_task, &k);
        if (k.box < w->box_count - 1)
            cpu_parallel_for(w->threads, w->jobs, job_task, &k);
        else
            cpu_parallel_for(w->threads, (int64_t)writes(w) * w->shares, last_task, &k);
    }
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void lines_free(pons_kernel *kernel)
{
    gemm_weight_rows *w = kernel->state;

    free(w->zero);
    free(w);
}

/* The largest box, from which every other one differs at the tensors' ends alone. */
static int64_t rows_bytes(const gemm_weight_rows *w)
{
    int64_t lines = (int64_t)w->box[CASES] * w->box[PLANES] * w->box[LINES];

    /* An odd number of lines of the cache: rows do not meet in one set. */
    return (ceil_div_i64(lines * w->pairs, GEMM_TILE) | 1) * GEMM_STEP;
}

/* The largest number of planes or lines of x that a box reads. */
static int reach(const gemm_weight_rows *w, int axis)
{
    return min_int((w->box[axis] - 1) * w->c.stride[axis - 1] +
                   (w->kernel[axis - 1] - 1) * w->c.dilation[axis - 1] + 1 +
                   (axis == LINES ? w->ahead : 0), w->x[axis]);
}

/* An odd number of lines of the cache, too. */
static int64_t strip_bytes(const gemm_weight_rows *w)
{
    int64_t lines = (int64_t)w->box[CASES] * reach(w, PLANES) * reach(w, LINES);

    return (lines * w->x_pairs | 1) * GEMM_STEP;
}

static int64_t y_bytes(const gemm_weight_rows *w)
{
    return rows_bytes(w) * w->y_sets * w->out_tiles * GEMM_TILE;
}

static int64_t x_bytes(const gemm_weight_rows *w)
{
    return strip_bytes(w) * w->x_sets * w->in_tiles * w->strips;
}

/*
 * The limit of the packed gradient. With many groups it is as large as the sums, which every box
 * reads and writes. Threads synchronise twice a box, so boxes are not small.
 */
static int64_t rows_fit(const gemm_weight_rows *w)
{
    int64_t sums = w->jobs * w->part_size;

    if (w->groups == 1)
        return ROWS_BYTES;
    return sums < GROUPS_LEAST ? GROUPS_LEAST : sums < GROUPS_BYTES ? sums : GROUPS_BYTES;
}

static bool box_fits(const gemm_weight_rows *w, bool apart)
{
    return apart ? y_bytes(w) + x_bytes(w) <= BOX_BYTES : y_bytes(w) <= rows_fit(w);
}

/*
 * Boxes are divided along cases first, then along planes: planes of x that boxes share are packed
 * once. Lines come before planes where boxes share none, with a kernel of 1 along H.
 */
static int axis_to_cut(const gemm_weight_rows *w)
{
    if (w->box[CASES] > 1)
        return CASES;
    return w->box[PLANES] > 1 && (w->kernel[1] > 1 || w->box[LINES] == 1) ? PLANES : LINES;
}

static void plan_boxes(gemm_weight_rows *w, bool apart)
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
 * Kernel positions k and k + strips differ by whole pairs and share panels. Their lines need more
 * pairs at the end, so lines must be long.
 */
static void plan_strips(gemm_weight_rows *w)
{
    int step = w->together * w->c.stride[2], dilation = w->c.dilation[2], period = 1;

    while (period * dilation % step != 0)
        period++;
    w->strips = w->kernel[2];
    w->shift = 0;
    if (w->pairs >= LONG && period < w->kernel[2]) {
        w->strips = period;
        w->shift = period * dilation / step;
    }
    w->x_pairs = w->pairs + (w->kernel[2] - 1) / w->strips * w->shift + w->ahead;
}

/* Bytes of all jobs' sums, without what rows leave empty behind their columns. */
static int64_t sums_in_use(const gemm_weight_rows *w)
{
    return w->jobs / w->blocks * w->columns * (w->part_size / GEMM_ACROSS);
}

static void plan(gemm_weight_rows *w)
{
    bool apart;

    w->in_tiles = (int)ceil_div_i64(w->ins, GEMM_TILE);
    w->out_tiles = (int)ceil_div_i64(w->outs, GEMM_TILE);
    w->pairs = (int)ceil_div_i64(w->y_width, w->together);
    plan_strips(w);
    w->columns = w->in_tiles * w->kernel[2];
    w->blocks = (int)ceil_div_i64(w->columns, GEMM_ACROSS);
    w->places = w->kernel[0] * w->kernel[1] * w->blocks;
    w->jobs = w->groups * w->places;
    w->part_size = (int64_t)sizeof(float) * w->out_tiles * GEMM_TILE * WEIGHT_ROW;
    apart = sums_in_use(w) <= SUMS_APART;
    plan_boxes(w, apart);
    w->tasks = apart && w->box_count >= BOXES_APART ? min_int(TASKS, w->box_count) : 0;
    w->pitch = rows_bytes(w);
    w->planes = reach(w, PLANES);
    w->strip = strip_bytes(w);
    w->y_size = y_bytes(w);
    w->x_size = x_bytes(w);
    w->runs_size = round_up_i64((int64_t)w->box[CASES] * w->box[PLANES] * w->box[LINES] *
                                (int64_t)sizeof(gemm_run), 64) * (WEIGHT_TERMS + 1);
    w->shares = w->form->together && w->tasks == 0 ? (int)ceil_div_i64(w->out_tiles, SHARE) : 1;
}

pons_status gemm_weight_rows_prepare(gemm_weight_rows *w, pons_kernel *kernel, pons_error *err)
{
    plan(w);
    w->zero = calloc((size_t)(w->groups * max_int(w->ins, w->outs)), sizeof(float));
    if (w->zero == NULL) {
        free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    *kernel = (pons_kernel){ .run = lines_run, .free = lines_free, .state = w };
    kernel->scratch_size = (size_t)(areas(w) * (w->y_size + w->x_size) + w->threads * w->runs_size +
                                    sums_bytes(w));
    return PONS_OK;
}
