/*
 * gather_copy.c - copy rows as runs, element by element, or as transposed blocks; see
 * gather_copy.h.
 *
 * A task is a fixed number of rows.
 */
#include "cpu/move/gather_copy.h"

#include "cpu/cpu.h"
#include "cpu/simd/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

#define GATHER_COPY_TASK ((int64_t)1 << 14)   /* elements of a task, approximately                */
#define GATHER_COPY_BLOCK 32           /* rows of a transposed block                              */
#define GATHER_COPY_COLUMNS 128        /* columns of a block: its source stays in L1              */
#define GATHER_COPY_LIST 4096          /* most runs or source indices of a row                    */

/* ---- plan ------------------------------------------------------------------------------------ */

static void drop_axis(gather_copy *t, int axis)
{
    memmove(t->axis + axis, t->axis + axis + 1,
            (size_t)(t->axes - axis - 1) * sizeof t->axis[0]);
    t->axes--;
}

/*
 * Drop axes of one element and merge neighbouring axes whose strides fit. The last axis is dense in
 * the output.
 */
static void join_axes(gather_copy *t)
{
    for (int a = t->axes - 1; a >= 0; a--) {
        gather_copy_axis *x = &t->axis[a];
        if (x->extent == 1 && x->table == NULL)
            drop_axis(t, a);
    }
    for (int a = t->axes - 2; a >= 0; a--) {
        gather_copy_axis *x = &t->axis[a], *inner = &t->axis[a + 1];
        if (x->table != NULL || inner->table != NULL || x->step != inner->extent * inner->step ||
            x->to_step != inner->extent * inner->to_step ||
            (inner->step != 1 && inner->extent * x->extent > GATHER_COPY_LIST))
            continue;
        inner->extent *= x->extent;
        drop_axis(t, a);
    }
    if (t->axes == 0 || t->axis[t->axes - 1].to_step != 1)
        t->axis[t->axes++] = (gather_copy_axis){ .extent = 1, .to_step = 1, .step = 1 };
}

/* True if 'from' and 'to' continue run 'r'. */
static bool run_follows(const gather_copy_run *r, int64_t from, int64_t to)
{
    if (to != r->to + r->count)
        return false;
    return from == GATHER_COPY_ZERO ? r->from == GATHER_COPY_ZERO
                                : r->from != GATHER_COPY_ZERO && from == r->from + r->count;
}

/*
 * The runs of a row along axis x, 'length' elements for each of its positions. Adjacent runs are
 * merged.
 */
static bool make_runs(gather_copy *t, const gather_copy_axis *x, int64_t length)
{
    t->run = calloc((size_t)x->extent, sizeof *t->run);
    if (t->run == NULL)
        return false;
    for (int64_t i = 0; i < x->extent; i++) {
        int64_t from = x->table != NULL ? x->table[i] : i * x->step, to = i * x->to_step;
        if (t->run_count > 0 && run_follows(&t->run[t->run_count - 1], from, to))
            t->run[t->run_count - 1].count += length;
        else
            t->run[t->run_count++] = (gather_copy_run){ to, from, length };
    }
    return true;
}

/* Replace runs of one element each by a list of source indices. */
static bool make_indices(gather_copy *t)
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

/*
 * The axis to transpose with the last one: it has step 1, the last has not, and no axis has a
 * table. -1: none.
 */
static int crossed_axis(const gather_copy *t)
{
    int crossed = -1;

    for (int a = 0; a < t->axes; a++) {
        if (t->axis[a].table != NULL)
            return -1;
        crossed = t->axis[a].step == 1 ? a : crossed;
    }
    return crossed < t->axes - 1 ? crossed : -1;
}

/* Turn the innermost one or two axes into a row. */
static bool make_row(gather_copy *t)
{
    gather_copy_axis last = t->axis[--t->axes];
    bool straight = last.table == NULL && last.step == 1;

    t->row = last.extent;
    if (last.run_time_table) {
        t->at = last.table;
        return true;
    }
    if (straight && last.extent < GATHER_COPY_LIST && t->axes > 0
        && !t->axis[t->axes - 1].run_time_table &&
        t->axis[t->axes - 1].extent <= GATHER_COPY_LIST) {
        int64_t length = last.extent;
        last = t->axis[--t->axes];
        t->row *= last.extent;
        if (!make_runs(t, &last, length))
            return false;
        free(last.table);
        return make_indices(t);
    }
    if (straight) {
        last.extent = 1;
        return make_runs(t, &last, t->row);
    }
    if (!make_runs(t, &last, 1))
        return false;
    free(last.table);
    return make_indices(t);
}

bool gather_copy_finish(gather_copy *t)
{
    int64_t rows = 1;

    join_axes(t);
    t->crossed = t->type[0] == t->type[1] ? crossed_axis(t) : -1;
    if (t->crossed >= 0) {
        const gather_copy_axis *a = &t->axis[t->crossed], *last = &t->axis[t->axes - 1];
        t->task_count = ceil_div_i64(a->extent, GATHER_COPY_BLOCK) *
                        ceil_div_i64(last->extent, GATHER_COPY_TASK / GATHER_COPY_BLOCK);
        for (int i = 0; i < t->axes - 1; i++)
            t->task_count *= i == t->crossed ? 1 : t->axis[i].extent;
        return true;
    }
    if (!make_row(t))
        return false;
    t->pieces = t->run_count == 1 ? ceil_div_i64(t->row, GATHER_COPY_TASK) : 1;
    for (int i = 0; i < t->axes; i++)
        rows *= t->axis[i].extent;
    rows *= t->pieces;
    t->rows_of_task = t->row < GATHER_COPY_TASK ? GATHER_COPY_TASK / t->row : 1;
    t->task_count = ceil_div_i64(rows, t->rows_of_task);
    return true;
}

void gather_copy_free(gather_copy *t)
{
    for (int i = 0; i < t->axes; i++)
        free(t->axis[i].table);
    free(t->run);
    free(t->at);
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct work {
    const gather_copy *t;
    const char *from;
    char *to;
    size_t size;
} work;

/* memcpy, without a call for short copies. */
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

#define COPY_INDEXED(NAME, TYPE)                                                                  \
    static void copy_indexed_##NAME(const char *from, char *to, const int64_t *at, int64_t count) \
    {                                                                                             \
        const TYPE *f = (const TYPE *)from;                                                       \
        TYPE *t = (TYPE *)to;                                                                     \
        for (int64_t i = 0; i < count; i++)                                                       \
            t[i] = at[i] == GATHER_COPY_ZERO ? 0 : f[at[i]];                                      \
    }

/*
 * Small squares are transposed in registers: after the shuffles element j of row i is element i of
 * row j. Each round interleaves rows that are SIDE / 2 apart.
 */
#define TRANSPOSE(NAME, TYPE, SIDE, SQUARE)                                                       \
    typedef TYPE square_##NAME __attribute__((vector_size(SIDE * sizeof(TYPE))));                 \
    typedef TYPE loose_##NAME __attribute__((vector_size(SIDE * sizeof(TYPE)),                    \
                                             aligned(sizeof(TYPE)), may_alias));                  \
    static inline void square_transpose_##NAME(const TYPE *from, TYPE *to, int64_t to_step,       \
                                               int64_t step)                                      \
    {                                                                                             \
        square_##NAME a[SIDE], b[SIDE];                                                           \
        _Pragma("GCC unroll 8") for (int i = 0; i < SIDE; i++)                                    \
            a[i] = (square_##NAME)*(const loose_##NAME *)(from + i * step);                       \
        SQUARE                                                                                    \
        _Pragma("GCC unroll 8") for (int i = 0; i < SIDE; i++)                                    \
            *(loose_##NAME *)(to + i * to_step) = (loose_##NAME)a[i];                             \
    }                                                                                             \
    static void transpose_##NAME(const char *from, char *to, int64_t rows, int64_t to_step,       \
                                 int64_t columns, int64_t step)                                   \
    {                                                                                             \
        const TYPE *f = (const TYPE *)from;                                                       \
        TYPE *t = (TYPE *)to;                                                                     \
        int64_t whole = columns / SIDE * SIDE, i = 0;                                             \
        for (; i + SIDE <= rows; i += SIDE)                                                       \
            for (int64_t c = 0; c < whole; c += SIDE)                                             \
                square_transpose_##NAME(f + i + c * step, t + i * to_step + c, to_step, step);    \
        for (int64_t r = 0; r < rows; r++)                                                        \
            for (int64_t c = r < i ? whole : 0; c < columns; c++)                                 \
                t[r * to_step + c] = f[r + c * step];                                             \
    }

/* Rows i and i + SIDE / 2 become rows 2 i and 2 i + 1, with their elements interleaved. */
#define MERGE(TO, FROM, SIDE, LOW, HIGH)                                                          \
    _Pragma("GCC unroll 8") for (int i = 0; i < SIDE / 2; i++) {                                  \
        TO[2 * i] = LOW(FROM[i], FROM[i + SIDE / 2]);                                             \
        TO[2 * i + 1] = HIGH(FROM[i], FROM[i + SIDE / 2]);                                        \
    }
#define LOW_4(a, b) SHUFFLE(square_4, a, b, 0, 4, 1, 5)
#define HIGH_4(a, b) SHUFFLE(square_4, a, b, 2, 6, 3, 7)
#define LOW_2(a, b) SHUFFLE(square_2, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_2(a, b) SHUFFLE(square_2, a, b, 4, 12, 5, 13, 6, 14, 7, 15)

TRANSPOSE(4, uint32_t, 4, MERGE(b, a, 4, LOW_4, HIGH_4) MERGE(a, b, 4, LOW_4, HIGH_4))
TRANSPOSE(2, uint16_t, 8, MERGE(b, a, 8, LOW_2, HIGH_2) MERGE(a, b, 8, LOW_2, HIGH_2)
                     MERGE(b, a, 8, LOW_2, HIGH_2)
                     _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) a[i] = b[i];)

static void transpose_1(const char *from, char *to, int64_t rows, int64_t to_step, int64_t columns,
                        int64_t step)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++)
            to[i * to_step + c] = from[i + c * step];
}

COPY_INDEXED(1, uint8_t)
COPY_INDEXED(2, uint16_t)
COPY_INDEXED(4, uint32_t)

static void (*const copy_indexed[])(const char *from, char *to, const int64_t *at, int64_t count)
    = {
    [1] = copy_indexed_1, [2] = copy_indexed_2, [4] = copy_indexed_4 };
static void (*const transpose[])(const char *from, char *to, int64_t rows, int64_t to_step,
                                 int64_t columns, int64_t step) = {
    [1] = transpose_1, [2] = transpose_2, [4] = transpose_4 };

static void move_row(const work *k, int64_t from, int64_t to)
{
    const gather_copy *t = k->t;

    if (from == GATHER_COPY_ZERO && t->at != NULL) {
        memset(k->to + (size_t)to * k->size, 0, (size_t)t->row * k->size);
        return;
    }
    for (int i = 0; i < t->run_count; i++) {
        const gather_copy_run *r = &t->run[i];
        if (r->from == GATHER_COPY_ZERO || from == GATHER_COPY_ZERO)
            memset(k->to + (size_t)(to + r->to) * k->size, 0, (size_t)r->count * k->size);
        else
            copy_run(k, from + r->from, to + r->to, r->count);
    }
    if (t->at != NULL)
        copy_indexed[k->size](k->from + from * (int64_t)k->size, k->to + (size_t)to * k->size,
                              t->at, t->row);
}

/* 'count' adjacent elements, or zeros, converted to the output's type. */
static void convert_run(const work *k, int64_t from, int64_t to, int64_t count)
{
    const gather_copy *t = k->t;
    float piece[256] = { 0 };

    for (int64_t j = 0; j < count; j += 256) {
        int n = (int)min_i64(count - j, 256);
        if (from != GATHER_COPY_ZERO)
            t->lanes->load[t->type[0]](piece, k->from, from + j, n);
        t->lanes->store[t->type[1]](k->to, to + j, piece, n);
    }
}

static void convert_row(const work *k, int64_t from, int64_t to)
{
    const gather_copy *t = k->t;

    if (from == GATHER_COPY_ZERO && t->at != NULL) {
        convert_run(k, from, to, t->row);
        return;
    }
    for (int i = 0; i < t->run_count; i++)
        convert_run(k, from == GATHER_COPY_ZERO || t->run[i].from == GATHER_COPY_ZERO
                           ? GATHER_COPY_ZERO : from + t->run[i].from,
                    to + t->run[i].to, t->run[i].count);
    for (int64_t i = 0; t->at != NULL && i < t->row; i++)
        map_number_store(t->type[1], k->to, to + i, t->at[i] == GATHER_COPY_ZERO
                             ? 0 : map_number_load(t->type[0], k->from, from + t->at[i]));
}

/* One piece of a row that is a single run. */
static void piece_of_row(const work *k, int64_t from, int64_t to, int64_t piece)
{
    const gather_copy *t = k->t;
    int64_t begin = piece * GATHER_COPY_TASK;
    int64_t count = min_i64(t->row - begin, GATHER_COPY_TASK);

    from = from == GATHER_COPY_ZERO || t->run[0].from == GATHER_COPY_ZERO
         ? GATHER_COPY_ZERO : from + t->run[0].from + begin;
    if (t->type[0] != t->type[1])
        convert_run(k, from, to + begin, count);
    else if (from == GATHER_COPY_ZERO)
        memset(k->to + (size_t)(to + begin) * k->size, 0, (size_t)count * k->size);
    else
        copy_run(k, from, to + begin, count);
}

static void row_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const gather_copy *t = k->t;
    int64_t first = task * t->rows_of_task, total = t->pieces;

    for (int a = 0; a < t->axes; a++)
        total *= t->axis[a].extent;
    for (int64_t row = first; row < first + t->rows_of_task && row < total; row++) {
        int64_t from = t->offset, to = t->to_offset, rest = row / t->pieces;
        for (int a = t->axes - 1; a >= 0; a--) {
            const gather_copy_axis *x = &t->axis[a];
            int64_t i = rest % x->extent, here = x->table != NULL ? x->table[i] : i * x->step;
            rest /= x->extent;
            from = here == GATHER_COPY_ZERO || from == GATHER_COPY_ZERO ? GATHER_COPY_ZERO
                : from + here;
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

/* A block of rows of the crossed axis by a range of columns of the last axis. */
static void transpose_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const gather_copy *t = k->t;
    const gather_copy_axis *crossed = &t->axis[t->crossed], *last = &t->axis[t->axes - 1];
    const int64_t piece = GATHER_COPY_TASK / GATHER_COPY_BLOCK;
    int64_t pieces = ceil_div_i64(last->extent, piece), column = task % pieces * piece;
    int64_t blocks = ceil_div_i64(crossed->extent, GATHER_COPY_BLOCK);
    int64_t row = task / pieces % blocks * GATHER_COPY_BLOCK, rest = task / pieces / blocks;
    int64_t rows = min_i64(crossed->extent - row, GATHER_COPY_BLOCK);
    int64_t columns = min_i64(last->extent - column, piece);
    int64_t from = t->offset + row + column * last->step;
    int64_t to = t->to_offset + row * crossed->to_step + column * last->to_step;

    for (int a = t->axes - 2; a >= 0; a--) {
        const gather_copy_axis *x = &t->axis[a];
        if (a == t->crossed)
            continue;
        from += rest % x->extent * x->step;
        to += rest % x->extent * x->to_step;
        rest /= x->extent;
    }
    for (int64_t c = 0; c < columns; c += GATHER_COPY_COLUMNS)
        transpose[k->size](k->from + (from + c * last->step) * (int64_t)k->size,
                           k->to + (to + c) * (int64_t)k->size, rows, crossed->to_step,
                           min_i64(columns - c, GATHER_COPY_COLUMNS),
                               last->step);
}

/* Tasks of the same index write adjacent memory: one thread runs them one after another. */
typedef struct several {
    int count;
    const work *work;
} several;

static void task_of_each(void *context, int64_t task, int thread)
{
    const several *s = context;

    for (int i = 0; i < s->count; i++)
        (s->work[i].t->crossed >= 0 ? transpose_task : row_task)((void *)&s->work[i], task, thread);
}

void gather_copy_run_several(const gather_copy *t, int count, void *const *from, void *to)
{
    work k[PONS_KERNEL_INPUTS_MAX];

    for (int i = 0; i < count; i++)
        k[i] = (work){ &t[i], from[i], to, map_type_size(t[i].type[0]) };
    for (int first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && t[end].task_count == t[first].task_count; end++)
            ;
        cpu_parallel_for(t[first].threads, t[first].task_count, task_of_each,
                         &(several){ end - first, k + first });
    }
}

static int64_t row_count(const gather_copy *t)
{
    int64_t rows = t->pieces;

    for (int a = 0; a < t->axes; a++)
        rows *= t->axis[a].extent;
    return rows;
}

void gather_copy_align(gather_copy *t, int count)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < count; i++) {
        if (t[i].crossed >= 0 || row_count(&t[i]) != row_count(&t[0]))
            return;
        least = min_i64(t[i].rows_of_task, least);
    }
    least = least > 8 ? least / 8 : 1; /* the output of one turn stays in L1 */
    for (int i = 0; i < count; i++) {
        t[i].rows_of_task = least;
        t[i].task_count = ceil_div_i64(row_count(&t[i]), least);
    }
}
