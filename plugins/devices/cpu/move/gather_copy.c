/*
 * gather_copy.c - copy rows by runs, element by element, or in blocks across two axes; see
 * gather_copy.h.
 *
 * Tasks are blocks of rows of a fixed size.
 */
#include "cpu/move/gather_copy.h"

#include "cpu/cpu.h"
#include "cpu/simd/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

#define TAKE_TASK ((int64_t)1 << 14)   /* elements of a task, about                               */
#define TAKE_BLOCK 32                  /* rows that are turned at a time                          */
#define TAKE_COLUMNS 128               /* columns of them: what is read stays in the L1 cache     */
#define TAKE_LIST 4096                 /* runs of a row, places of a row                          */

/* ---- plan ------------------------------------------------------------------------------------ */

static void drop_axis(take *t, int axis)
{
    memmove(t->axis + axis, t->axis + axis + 1,
            (size_t)(t->axes - axis - 1) * sizeof t->axis[0]);
    t->axes--;
}

/* Axes of one element vanish; neighbours whose steps fit become one. The last one is dense. */
static void join_axes(take *t)
{
    for (int a = t->axes - 1; a >= 0; a--) {
        take_axis *x = &t->axis[a];
        if (x->extent == 1 && x->table == NULL)
            drop_axis(t, a);
    }
    for (int a = t->axes - 2; a >= 0; a--) {
        take_axis *x = &t->axis[a], *inner = &t->axis[a + 1];
        if (x->table != NULL || inner->table != NULL || x->step != inner->extent * inner->step ||
            x->to_step != inner->extent * inner->to_step ||
            (inner->step != 1 && inner->extent * x->extent > TAKE_LIST))
            continue;
        inner->extent *= x->extent;
        drop_axis(t, a);
    }
    if (t->axes == 0 || t->axis[t->axes - 1].to_step != 1)
        t->axis[t->axes++] = (take_axis){ .extent = 1, .to_step = 1, .step = 1 };
}

/* Does 'from' go on where run 'r' ends? */
static bool follows(const take_run *r, int64_t from, int64_t to)
{
    if (to != r->to + r->count)
        return false;
    return from == TAKE_NOTHING ? r->from == TAKE_NOTHING
                                : r->from != TAKE_NOTHING && from == r->from + r->count;
}

/* Runs of a row of x's elements, 'length' neighbours for each; runs that follow are joined. */
static bool make_runs(take *t, const take_axis *x, int64_t length)
{
    t->run = calloc((size_t)x->extent, sizeof *t->run);
    if (t->run == NULL)
        return false;
    for (int64_t i = 0; i < x->extent; i++) {
        int64_t from = x->table != NULL ? x->table[i] : i * x->step, to = i * x->to_step;
        if (t->run_count > 0 && follows(&t->run[t->run_count - 1], from, to))
            t->run[t->run_count - 1].count += length;
        else
            t->run[t->run_count++] = (take_run){ to, from, length };
    }
    return true;
}

/* Runs of one element each are a list of places. */
static bool make_places(take *t)
{
    if (t->run_count != t->row || t->run[t->run_count - 1].to != t->row - 1)
        return true;
    t->at = calloc((size_t)t->row, sizeof *t->at);
    if (t->at == NULL)
        return false;
    for (int64_t i = 0; i < t->row; i++)
        t->at[i] = t->run[i].from;
    t->run_count = 0;
    return true;
}

/* All axes have steps, the last one not 1, another one 1. */
static int crossed_axis(const take *t)
{
    int crossed = -1;

    for (int a = 0; a < t->axes; a++) {
        if (t->axis[a].table != NULL)
            return -1;
        crossed = t->axis[a].step == 1 ? a : crossed;
    }
    return crossed < t->axes - 1 ? crossed : -1;
}

/* Split the innermost axes off as a row. */
static bool make_row(take *t)
{
    take_axis last = t->axis[--t->axes];
    bool straight = last.table == NULL && last.step == 1;

    t->row = last.extent;
    if (last.late) {
        t->at = last.table;
        return true;
    }
    if (straight && last.extent < TAKE_LIST && t->axes > 0 && !t->axis[t->axes - 1].late &&
        t->axis[t->axes - 1].extent <= TAKE_LIST) {
        int64_t length = last.extent;
        last = t->axis[--t->axes];
        t->row *= last.extent;
        if (!make_runs(t, &last, length))
            return false;
        free(last.table);
        return make_places(t);
    }
    if (straight) {
        last.extent = 1;
        return make_runs(t, &last, t->row);
    }
    if (!make_runs(t, &last, 1))
        return false;
    free(last.table);
    return make_places(t);
}

bool take_finish(take *t)
{
    int64_t rows = 1;

    join_axes(t);
    t->crossed = t->type[0] == t->type[1] ? crossed_axis(t) : -1;
    if (t->crossed >= 0) {
        const take_axis *a = &t->axis[t->crossed], *last = &t->axis[t->axes - 1];
        t->task_count = ceil_div_i64(a->extent, TAKE_BLOCK) *
                        ceil_div_i64(last->extent, TAKE_TASK / TAKE_BLOCK);
        for (int i = 0; i < t->axes - 1; i++)
            t->task_count *= i == t->crossed ? 1 : t->axis[i].extent;
        return true;
    }
    if (!make_row(t))
        return false;
    t->pieces = t->run_count == 1 ? ceil_div_i64(t->row, TAKE_TASK) : 1;
    for (int i = 0; i < t->axes; i++)
        rows *= t->axis[i].extent;
    rows *= t->pieces;
    t->rows_of_task = t->row < TAKE_TASK ? TAKE_TASK / t->row : 1;
    t->task_count = ceil_div_i64(rows, t->rows_of_task);
    return true;
}

void take_free(take *t)
{
    for (int i = 0; i < t->axes; i++)
        free(t->axis[i].table);
    free(t->run);
    free(t->at);
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct work {
    const take *t;
    const char *from;
    char *to;
    size_t size;
} work;

/* A copy that costs no call where it is short. */
static inline void copy_bytes(char *to, const char *from, size_t size)
{
    typedef char piece __attribute__((vector_size(32), aligned(1), may_alias));

    if (size > 256) {
        memcpy(to, from, size);
        return;
    }
    for (; size >= 32; size -= 32, to += 32, from += 32)
        *(piece *)to = *(const piece *)from;
    for (; size >= 4; size -= 4, to += 4, from += 4)
        memcpy(to, from, 4);
    for (; size > 0; size--)
        *to++ = *from++;
}

static void copy_run(const work *k, int64_t from, int64_t to, int64_t count)
{
    copy_bytes(k->to + (size_t)to * k->size, k->from + (size_t)from * k->size,
               (size_t)count * k->size);
}

#define PLACES(NAME, TYPE)                                                                        \
    static void places_##NAME(const char *from, char *to, const int64_t *at, int64_t count)       \
    {                                                                                             \
        const TYPE *f = (const TYPE *)from;                                                       \
        TYPE *t = (TYPE *)to;                                                                     \
        for (int64_t i = 0; i < count; i++)                                                       \
            t[i] = at[i] == TAKE_NOTHING ? 0 : f[at[i]];                                          \
    }

/*
 * Squares of a few numbers are turned in registers: after the shuffles element j of row i is
 * element i of row j. Each round joins halves that are 1, 2, ... rows apart.
 */
#define TURN(NAME, TYPE, SIDE, SQUARE)                                                            \
    typedef TYPE square_##NAME __attribute__((vector_size(SIDE * sizeof(TYPE))));                 \
    typedef TYPE loose_##NAME __attribute__((vector_size(SIDE * sizeof(TYPE)),                    \
                                             aligned(sizeof(TYPE)), may_alias));                  \
    static inline void square_turn_##NAME(const TYPE *from, TYPE *to, int64_t to_step,            \
                                          int64_t step)                                           \
    {                                                                                             \
        square_##NAME a[SIDE], b[SIDE];                                                           \
        _Pragma("GCC unroll 8") for (int i = 0; i < SIDE; i++)                                    \
            a[i] = (square_##NAME)*(const loose_##NAME *)(from + i * step);                       \
        SQUARE                                                                                    \
        _Pragma("GCC unroll 8") for (int i = 0; i < SIDE; i++)                                    \
            *(loose_##NAME *)(to + i * to_step) = (loose_##NAME)a[i];                             \
    }                                                                                             \
    static void turn_##NAME(const char *from, char *to, int64_t rows, int64_t to_step,            \
                            int64_t columns, int64_t step)                                        \
    {                                                                                             \
        const TYPE *f = (const TYPE *)from;                                                       \
        TYPE *t = (TYPE *)to;                                                                     \
        int64_t whole = columns / SIDE * SIDE, i = 0;                                             \
        for (; i + SIDE <= rows; i += SIDE)                                                       \
            for (int64_t c = 0; c < whole; c += SIDE)                                             \
                square_turn_##NAME(f + i + c * step, t + i * to_step + c, to_step, step);         \
        for (int64_t r = 0; r < rows; r++)                                                        \
            for (int64_t c = r < i ? whole : 0; c < columns; c++)                                 \
                t[r * to_step + c] = f[r + c * step];                                             \
    }

/* Rows i and i + SIDE / 2 become rows 2 i and 2 i + 1, element by element in turn. */
#define MERGE(TO, FROM, SIDE, LOW, HIGH)                                                          \
    _Pragma("GCC unroll 8") for (int i = 0; i < SIDE / 2; i++) {                                  \
        TO[2 * i] = LOW(FROM[i], FROM[i + SIDE / 2]);                                             \
        TO[2 * i + 1] = HIGH(FROM[i], FROM[i + SIDE / 2]);                                        \
    }
#define LOW_4(a, b) SHUFFLE(square_4, a, b, 0, 4, 1, 5)
#define HIGH_4(a, b) SHUFFLE(square_4, a, b, 2, 6, 3, 7)
#define LOW_2(a, b) SHUFFLE(square_2, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_2(a, b) SHUFFLE(square_2, a, b, 4, 12, 5, 13, 6, 14, 7, 15)

TURN(4, uint32_t, 4, MERGE(b, a, 4, LOW_4, HIGH_4) MERGE(a, b, 4, LOW_4, HIGH_4))
TURN(2, uint16_t, 8, MERGE(b, a, 8, LOW_2, HIGH_2) MERGE(a, b, 8, LOW_2, HIGH_2)
                     MERGE(b, a, 8, LOW_2, HIGH_2)
                     _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) a[i] = b[i];)

static void turn_1(const char *from, char *to, int64_t rows, int64_t to_step, int64_t columns,
                   int64_t step)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++)
            to[i * to_step + c] = from[i + c * step];
}

PLACES(1, uint8_t)
PLACES(2, uint16_t)
PLACES(4, uint32_t)

static void (*const places[])(const char *from, char *to, const int64_t *at, int64_t count) = {
    [1] = places_1, [2] = places_2, [4] = places_4 };
static void (*const turn[])(const char *from, char *to, int64_t rows, int64_t to_step,
                            int64_t columns, int64_t step) = {
    [1] = turn_1, [2] = turn_2, [4] = turn_4 };

static void move_row(const work *k, int64_t from, int64_t to)
{
    const take *t = k->t;

    if (from == TAKE_NOTHING && t->at != NULL) {
        memset(k->to + (size_t)to * k->size, 0, (size_t)t->row * k->size);
        return;
    }
    for (int i = 0; i < t->run_count; i++) {
        const take_run *r = &t->run[i];
        if (r->from == TAKE_NOTHING || from == TAKE_NOTHING)
            memset(k->to + (size_t)(to + r->to) * k->size, 0, (size_t)r->count * k->size);
        else
            copy_run(k, from + r->from, to + r->to, r->count);
    }
    if (t->at != NULL)
        places[k->size](k->from + from * (int64_t)k->size, k->to + (size_t)to * k->size, t->at,
                        t->row);
}

/* 'count' neighbours, or zeros, as another type. */
static void convert_run(const work *k, int64_t from, int64_t to, int64_t count)
{
    const take *t = k->t;
    float piece[256] = { 0 };

    for (int64_t j = 0; j < count; j += 256) {
        int n = (int)(count - j < 256 ? count - j : 256);
        if (from != TAKE_NOTHING)
            t->lanes->load[t->type[0]](piece, k->from, from + j, n);
        t->lanes->store[t->type[1]](k->to, to + j, piece, n);
    }
}

static void convert_row(const work *k, int64_t from, int64_t to)
{
    const take *t = k->t;

    if (from == TAKE_NOTHING && t->at != NULL) {
        convert_run(k, from, to, t->row);
        return;
    }
    for (int i = 0; i < t->run_count; i++)
        convert_run(k, from == TAKE_NOTHING || t->run[i].from == TAKE_NOTHING
                           ? TAKE_NOTHING : from + t->run[i].from,
                    to + t->run[i].to, t->run[i].count);
    for (int64_t i = 0; t->at != NULL && i < t->row; i++)
        map_number_store(t->type[1], k->to, to + i, t->at[i] == TAKE_NOTHING
                             ? 0 : map_number_load(t->type[0], k->from, from + t->at[i]));
}

/* A row that is one run: some of it. */
static void piece_of_row(const work *k, int64_t from, int64_t to, int64_t piece)
{
    const take *t = k->t;
    int64_t begin = piece * TAKE_TASK;
    int64_t count = t->row - begin < TAKE_TASK ? t->row - begin : TAKE_TASK;

    from = from == TAKE_NOTHING || t->run[0].from == TAKE_NOTHING
         ? TAKE_NOTHING : from + t->run[0].from + begin;
    if (t->type[0] != t->type[1])
        convert_run(k, from, to + begin, count);
    else if (from == TAKE_NOTHING)
        memset(k->to + (size_t)(to + begin) * k->size, 0, (size_t)count * k->size);
    else
        copy_run(k, from, to + begin, count);
}

static void row_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const take *t = k->t;
    int64_t first = task * t->rows_of_task, total = t->pieces;

    for (int a = 0; a < t->axes; a++)
        total *= t->axis[a].extent;
    for (int64_t row = first; row < first + t->rows_of_task && row < total; row++) {
        int64_t from = t->offset, to = t->to_offset, rest = row / t->pieces;
        for (int a = t->axes - 1; a >= 0; a--) {
            const take_axis *x = &t->axis[a];
            int64_t i = rest % x->extent, here = x->table != NULL ? x->table[i] : i * x->step;
            rest /= x->extent;
            from = here == TAKE_NOTHING || from == TAKE_NOTHING ? TAKE_NOTHING : from + here;
            to += i * x->to_step;
        }
        if (t->run_count == 1)
            piece_of_row(k, from, to, row % t->pieces);
        else if (t->type[0] == t->type[1])
            move_row(k, from, to);
        else
            convert_row(k, from, to);
    }
}

/* A block of the crossed axis by a piece of the last one. */
static void turn_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const take *t = k->t;
    const take_axis *crossed = &t->axis[t->crossed], *last = &t->axis[t->axes - 1];
    const int64_t piece = TAKE_TASK / TAKE_BLOCK;
    int64_t pieces = ceil_div_i64(last->extent, piece), column = task % pieces * piece;
    int64_t blocks = ceil_div_i64(crossed->extent, TAKE_BLOCK);
    int64_t row = task / pieces % blocks * TAKE_BLOCK, rest = task / pieces / blocks;
    int64_t rows = crossed->extent - row < TAKE_BLOCK ? crossed->extent - row : TAKE_BLOCK;
    int64_t columns = last->extent - column < piece ? last->extent - column : piece;
    int64_t from = t->offset + row + column * last->step;
    int64_t to = t->to_offset + row * crossed->to_step + column * last->to_step;

    for (int a = t->axes - 2; a >= 0; a--) {
        const take_axis *x = &t->axis[a];
        if (a == t->crossed)
            continue;
        from += rest % x->extent * x->step;
        to += rest % x->extent * x->to_step;
        rest /= x->extent;
    }
    for (int64_t c = 0; c < columns; c += TAKE_COLUMNS)
        turn[k->size](k->from + (from + c * last->step) * (int64_t)k->size,
                      k->to + (to + c) * (int64_t)k->size, rows, crossed->to_step,
                      columns - c < TAKE_COLUMNS ? columns - c : TAKE_COLUMNS, last->step);
}

/* Tasks of the same number write neighbours: they are done by one thread, one after another. */
typedef struct several {
    int count;
    const work *work;
} several;

static void task_of_each(void *context, int64_t task, int thread)
{
    const several *s = context;

    for (int i = 0; i < s->count; i++)
        (s->work[i].t->crossed >= 0 ? turn_task : row_task)((void *)&s->work[i], task, thread);
}

void take_run_several(const take *t, int count, void *const *from, void *to)
{
    work k[PONS_KERNEL_INPUTS_MAX];

    for (int i = 0; i < count; i++)
        k[i] = (work){ &t[i], from[i], to, map_type_size(t[i].type[0]) };
    for (int first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && t[end].task_count == t[first].task_count; end++)
            ;
        cpu_parallel(t[first].threads, t[first].task_count, task_of_each,
                     &(several){ end - first, k + first });
    }
}

static int64_t row_count(const take *t)
{
    int64_t rows = t->pieces;

    for (int a = 0; a < t->axes; a++)
        rows *= t->axis[a].extent;
    return rows;
}

void take_align(take *t, int count)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < count; i++) {
        if (t[i].crossed >= 0 || row_count(&t[i]) != row_count(&t[0]))
            return;
        least = t[i].rows_of_task < least ? t[i].rows_of_task : least;
    }
    least = least > 8 ? least / 8 : 1; /* what they write in turn stays in the L1 cache */
    for (int i = 0; i < count; i++) {
        t[i].rows_of_task = least;
        t[i].task_count = ceil_div_i64(row_count(&t[i]), least);
    }
}
