/*
 * few_channels_amx.c - plan and run the convolutions of few_channels_amx.h.
 *
 * A task is a box of positions along D and H. It copies its inputs into rows with zeros around
 * them, so all rows of a phase have the same steps. Elements off the band are multiplied by zero,
 * so an input that is not finite makes its neighbours in the cell NaN.
 */
#include "cpu/cpu.h"
#include "cpu/conv/few_channels_amx/few_channels_amx.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { TILE = GEMM_TILE * GEMM_TILE };

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct few_channels_amx_call {
    const few_channels_amx *n;
    const pons_call *call;
} few_channels_amx_call;

typedef struct work {
    const few_channels_amx *n;
    const uint16_t *from;
    uint16_t *to;
    const char *weight;
    char *buffer;
    float *tiles;
    uint16_t *line;
    int image, first[2], count[2]; /* positions of this task along D and H */
} work;

static void copy_rows(const work *w)
{
    const few_channels_amx *n = w->n;
    const few_channels_amx_axis *a = n->axis;
    int64_t size = (int64_t)a[2].from * n->from_channels;
    int skip = a[2].low < 0 ? -a[2].low * n->from_channels : 0;
    int drop = a[2].low > 0 ? a[2].low * n->from_channels : 0;
    int planes = (w->count[0] - 1) * a[0].step + a[0].high - a[0].low + 1;
    int rows = (w->count[1] - 1) * a[1].step + a[1].high - a[1].low + 1;

    for (int i = 0; i < planes * rows; i++) {
        int d = w->first[0] * a[0].step + a[0].low + i / rows;
        int h = w->first[1] * a[1].step + a[1].low + i % rows;
        char *to = w->buffer + i / rows * n->plane + i % rows * n->row;
        bool inside = d >= 0 && d < a[0].from && h >= 0 && h < a[1].from && drop < size;
        int64_t used = inside ? skip + size - drop : 0, head = inside ? skip : 0;

        memset(to, 0, (size_t)head * sizeof *w->from);
        if (inside)
            memcpy(to + head * (int64_t)sizeof *w->from,
                   w->from + (((int64_t)w->image * a[0].from + d) * a[1].from + h) * size + drop,
                   (size_t)(size - drop) * sizeof *w->from);
        memset(to + used * (int64_t)sizeof *w->from, 0,
               (size_t)n->row - (size_t)used * sizeof *w->from);
    }
}

/* Compute tiles [row][tall][across] of 'rows' rows, whose inputs begin 'next' bytes apart. */
static void multiply_rows(const work *w, const char *from, int rows, int64_t next, int phase)
{
    const few_channels_amx *n = w->n;
    int begin = n->first[phase], tall = n->tall * rows;
    gemm_product p = { .pitch = n->pitch, .steps = n->first[phase + 1] - begin,
                       .a_at = n->from_at + begin, .b_at = n->weight_at + begin,
                       .c_pitch = GEMM_TILE * sizeof(float) };

    for (int across = 0; across < n->across; across += p.columns) {
        p.columns = min_int(n->across - across, GEMM_COLUMNS);
        for (int i = 0; i < tall; i += p.rows) {
            p.rows = min_int(tall - i, p.columns == 1 ? GEMM_ROWS : 2);
            for (int r = 0; r < p.rows; r++) {
                p.a[r] = from + (i + r) / n->tall * next +
                         (int64_t)((i + r) % n->tall) * GEMM_TILE * n->pitch;
                for (int c = 0; c < p.columns; c++)
                    p.c[r][c] = w->tiles + ((int64_t)(i + r) * n->across + across + c) * TILE;
            }
            for (int c = 0; c < p.columns; c++)
                p.b[c] = w->weight + (int64_t)(across + c) * GEMM_PANEL;
            engine_amx.multiply(&p);
        }
    }
}

/* Compute the rows of a plane and phase, 'together' at a time for short rows. */
static void run_rows(const work *w, int plane, const char *from, int phase_d, int phase_h)
{
    const few_channels_amx *n = w->n;
    const few_channels_amx_axis *d = &n->axis[0], *h = &n->axis[1];
    int64_t size = (int64_t)n->axis[2].to * n->to_channels;

    for (int q = 0, rows; q < w->count[1]; q += rows) {
        rows = min_int(n->together, w->count[1] - q);
        multiply_rows(w, from + q * h->step * n->row, rows, h->step * n->row,
                      phase_d * h->phases + phase_h);
        for (int r = 0; r < rows; r++) {
            int row = (w->first[1] + q + r) * h->phases + phase_h;
            if (row >= h->to)
                continue;
            uint16_t *to = w->to + (((int64_t)w->image * d->to + plane) * h->to + row) * size;
            n->layout->tiles_to_bf16(n->direct ? to : w->line,
                                     w->tiles + (int64_t)r * n->tall * n->across * TILE,
                                     ceil_div_int(n->axis[2].count, n->positions), n->outs);
            if (!n->direct)
                memcpy(to, w->line, (size_t)size * sizeof *w->to);
        }
    }
}

/* Set the memory of a thread. */
static void take_memory(work *w, char *memory, int thread)
{
    const few_channels_amx *n = w->n;

    w->tiles = (float *)(memory + n->weights + thread * n->area);
    w->line = (uint16_t *)(w->tiles + (int64_t)n->together * n->tall * n->across * TILE);
    w->buffer = (char *)(w->line + n->line);
}

static void run_task(void *context, int64_t i, int thread)
{
    const few_channels_amx_call *k = context;
    const few_channels_amx *n = k->n;
    const few_channels_amx_axis *d = &n->axis[0], *h = &n->axis[1];
    work own = { .n = n, .from = k->call->input[0], .to = k->call->output[0],
                 .weight = k->call->scratch }, *w = &own;
    int task = (int)i;

    w->image = task / n->bands / n->blocks;
    w->first[0] = task / n->bands % n->blocks * n->block;
    w->first[1] = task % n->bands * n->band;
    w->count[0] = min_int(n->block, d->count - w->first[0]);
    w->count[1] = min_int(n->band, h->count - w->first[1]);
    take_memory(w, k->call->scratch, thread);
    copy_rows(w);
    engine_amx.begin();
    for (int i = 0; i < w->count[0] * d->phases; i++)
        for (int phase = 0; phase < h->phases && w->first[0] * d->phases + i < d->to; phase++)
            run_rows(w, w->first[0] * d->phases + i,
                     w->buffer + i / d->phases * d->step * n->plane, i % d->phases, phase);
    engine_amx.end();
}

static void pack_step(void *context, int64_t step, int thread)
{
    const few_channels_amx_call *k = context;

    (void)thread;
    few_channels_amx_pack(k->n, k->call->input[1], (int)step, k->call->scratch);
}

static pons_status few_channels_amx_run(const pons_kernel *kernel, const pons_call *call,
                                        pons_error *err)
{
    const few_channels_amx *n = kernel->state;
    few_channels_amx_call k = { n, call };
    int steps = n->first[n->axis[0].phases * n->axis[1].phases];

    (void)err;
    cpu_parallel_for(n->threads, steps, pack_step, &k);
    cpu_parallel_for(n->threads, (int64_t)n->cases * n->blocks * n->bands, run_task, &k);
    return PONS_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void few_channels_amx_free(pons_kernel *kernel)
{
    few_channels_amx *n = kernel->state;

    free(n->first);
    free(n->kernel_at);
    free(n->from_at);
    free(n->weight_at);
    free(n);
}

/* Taps t = (phase + pad - k) / s, rounded outwards over phases and kernel positions. */
static void plan_axis(few_channels_amx *n, few_channels_amx_axis *a)
{
    int s = a->stride;

    a->step = n->gradient ? 1 : s;
    a->phases = n->gradient ? s : 1;
    a->count = ceil_div_int(a->to, a->phases);
    a->low = n->gradient ? -(ceil_div_int(a->kernel - 1 - a->pad + s, s) - 1) : -a->pad;
    a->high = n->gradient ? (s - 1 + a->pad) / s : a->kernel - 1 - a->pad;
}

/* Tiles when cells have 'positions' positions. */
static void plan_tiles(few_channels_amx *n, int positions)
{
    const few_channels_amx_axis *w = &n->axis[2];
    int inner = ((positions - 1) * w->step + w->high - w->low + 1) * n->from_channels;

    n->positions = positions;
    n->outs = positions * w->phases * n->to_channels;
    n->deep = ceil_div_int(inner, 2 * GEMM_TILE);
    n->across = ceil_div_int(n->outs, GEMM_TILE);
    n->tall = ceil_div_int(ceil_div_int(w->count, positions), GEMM_TILE);
    n->pitch = (int64_t)positions * w->step * n->from_channels * (int64_t)sizeof(uint16_t);
    n->together = ceil_div_int(n->across == 1 ? GEMM_ROWS : 2, n->tall);
    n->direct = n->outs % GEMM_TILE == 0 && w->to * n->to_channels % n->outs == 0;
}

/* Pairs (kd, kh) of a row of the result. */
static int64_t taps(const few_channels_amx *n)
{
    const few_channels_amx_axis *d = &n->axis[0], *h = &n->axis[1];

    return ceil_div_int(d->kernel * h->kernel, d->phases * h->phases);
}

/* Cycles of a row of the result, about: products and loads of tiles. */
static int64_t product_cycles(const few_channels_amx *n)
{
    int64_t rows = n->across == 1 ? GEMM_ROWS : 2, all = n->tall * n->together;
    int64_t loads = n->tall * ceil_div_int(n->across, GEMM_COLUMNS) +
                    n->across * (all + rows - 1) / rows / n->together;

    return taps(n) * n->deep * (16 * n->tall * n->across + 8 * loads);
}

/* And what becomes of the result. */
static int64_t cycles(const few_channels_amx *n)
{
    int64_t cells = ceil_div_int(n->axis[2].count, n->positions);

    return product_cycles(n) + (16 * n->tall + (n->direct ? 6 : 10) * cells) * n->across;
}

static void plan_cells(few_channels_amx *n)
{
    int best = 1;
    int64_t least = INT64_MAX;

    for (int p = 1; p <= GEMM_TILE; p++) {
        plan_tiles(n, p);
        if (cycles(n) < least) {
            best = p;
            least = cycles(n);
        }
    }
    plan_tiles(n, best);
}

enum { AREA = 768 << 10 }; /* bytes of buffered rows that fit the L2 cache */

static void plan_tasks(few_channels_amx *n)
{
    const few_channels_amx_axis *d = &n->axis[0], *h = &n->axis[1], *w = &n->axis[2];
    int64_t last = (int64_t)(n->tall * GEMM_TILE - 1) * n->pitch + n->deep * GEMM_STEP;
    int64_t held = ((int64_t)w->from + (w->low < 0 ? -w->low : 0)) * n->from_channels *
                   (int64_t)sizeof(uint16_t);

    n->row = round_up_i64(max_i64(last, held), 64);
    n->block = min_int(4, d->count);
    n->planes = (n->block - 1) * d->step + d->high - d->low + 1;
    for (n->band = h->count;; n->band = ceil_div_int(n->band, 2)) {
        n->rows = (n->band - 1) * h->step + h->high - h->low + 1;
        n->plane = n->row * n->rows;
        if (n->band <= 8 || n->planes * n->plane <= AREA)
            break;
    }
    n->blocks = ceil_div_int(d->count, n->block);
    n->bands = ceil_div_int(h->count, n->band);
    n->line = round_up_i64((int64_t)n->tall * GEMM_TILE * n->outs + GEMM_TILE, 64);
    n->area = (int64_t)n->together * n->tall * n->across * TILE * (int64_t)sizeof(float) +
              n->line * (int64_t)sizeof(uint16_t) + n->planes * n->plane;
    n->weights = (int64_t)d->kernel * h->kernel * n->deep * n->across * GEMM_PANEL;
}

static bool plan_steps(few_channels_amx *n)
{
    const few_channels_amx_axis *d = &n->axis[0], *h = &n->axis[1];
    int phases = d->phases * h->phases, count = 0;
    size_t most = (size_t)(d->kernel * h->kernel * n->deep);

    n->first = malloc((size_t)(phases + 1) * sizeof *n->first);
    n->kernel_at = malloc(most * sizeof *n->kernel_at);
    n->from_at = malloc(most * sizeof *n->from_at);
    n->weight_at = malloc(most * sizeof *n->weight_at);
    if (n->first == NULL || n->kernel_at == NULL || n->from_at == NULL || n->weight_at == NULL)
        return false;
    for (int phase = 0; phase < phases; phase++) {
        n->first[phase] = count;
        for (int td = d->low; td <= d->high; td++)
            for (int th = h->low; th <= h->high; th++) {
                if (few_channels_amx_kernel(n, 0, phase / h->phases, td) < 0 ||
                    few_channels_amx_kernel(n, 1, phase % h->phases, th) < 0)
                    continue;
                for (int deep = 0; deep < n->deep; deep++, count++) {
                    n->kernel_at[count] = few_channels_amx_kernel(n, 0, phase / h->phases, td) *
                                              h->kernel +
                                          few_channels_amx_kernel(n, 1, phase % h->phases, th);
                    n->from_at[count] = (td - d->low) * n->plane + (th - h->low) * n->row +
                                        deep * GEMM_STEP;
                    n->weight_at[count] = (int64_t)count * n->across * GEMM_PANEL;
                }
            }
    }
    n->first[phases] = count;
    return true;
}

/* Vectors do 32 multiplications a cycle. The panels of large kernels would fill the cache. */
static bool worth_it(const few_channels_amx *n)
{
    const few_channels_amx_axis *w = &n->axis[2];
    int64_t asked = (int64_t)w->to * n->to_channels * n->from_channels *
                    ceil_div_int(w->kernel, w->phases);

    return product_cycles(n) <= asked * taps(n) / 32 && n->weights <= AREA;
}

static bool supports(const conv_problem *p)
{
    bool suited = p->groups == 1 && !p->dilated && conv_has_types(p, PONS_BF16, PONS_BF16) &&
                  (p->x.channels <= FEW_CHANNELS_MAX || p->y.channels <= FEW_CHANNELS_MAX);

    for (int i = 0; i < 3; i++)
        suited = suited && p->pad[i] < p->kernel[i] && p->stride[i] <= 4;
    return suited;
}

/* All but the steps of products. */
static void plan(few_channels_amx *n, const conv_problem *p)
{
    const conv_image *from = conv_from(p), *to = conv_to(p);

    *n = (few_channels_amx){ .gradient = p->direction == CONV_INPUT_GRADIENT, .cases = p->cases,
                             .from_channels = from->channels, .to_channels = to->channels };
    for (int i = 0; i < 3; i++) {
        n->axis[i] = (few_channels_amx_axis){ .kernel = p->kernel[i], .stride = p->stride[i],
                                              .pad = p->pad[i], .from = from->extent[i],
                                              .to = to->extent[i] };
        plan_axis(n, &n->axis[i]);
    }
    plan_cells(n);
    plan_tasks(n);
}

static bool profitable(const conv_problem *p, const conv_machine *machine)
{
    few_channels_amx n;

    (void)machine;
    plan(&n, p);
    return worth_it(&n);
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    few_channels_amx *n = malloc(sizeof *n);

    kernel->state = n;
    kernel->free = few_channels_amx_free;
    if (n != NULL) {
        plan(n, p);
        n->layout = cpu->few_channels->layout;
        n->threads = cpu->threads;
    }
    if (n == NULL || !plan_steps(n)) {
        if (n != NULL)
            few_channels_amx_free(kernel);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    kernel->run = few_channels_amx_run;
    kernel->scratch_size = (size_t)(n->weights + n->threads * n->area);
    return PONS_OK;
}

const conv_operations few_channels_amx_operations = {
    .supports = supports, .profitable = profitable, .prepare = prepare,
};
