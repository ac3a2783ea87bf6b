/*
 * map_body.h - a plain interpreter of map programs.
 *
 * It visits the last axis in runs of at most RUN lanes (in channel form it is one run), and
 * computes every value for the whole run before the next value. Reductions accumulate in double;
 * moments by Welford's update, with Chan's merge of groups.
 */

#include "graph/ir/shape.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* y[i] from a[i sa], b[i sb], c[i sc]. */
typedef struct NAME(arguments) {
    const REAL *item[3];
    int64_t step[3];
} NAME(arguments);

#define A ((double)v->item[0][i * v->step[0]])
#define B ((double)v->item[1][i * v->step[1]])
#define C ((double)v->item[2][i * v->step[2]])
#define POINTWISE(name, expression)                                                               \
    static void NAME(point_##name)(const NAME(arguments) *v, REAL *y, int64_t count)              \
    {                                                                                             \
        for (int64_t i = 0; i < count; i++)                                                       \
            y[i] = (REAL)(expression);                                                            \
    }
POINTWISE(add, A + B)
POINTWISE(sub, A - B)
POINTWISE(mul, A * B)
POINTWISE(div, A / B)
POINTWISE(min, A < B ? A : B)
POINTWISE(max, A > B ? A : B)
POINTWISE(pow, pow(A, B))
POINTWISE(equal, A == B)
POINTWISE(not_equal, A != B)
POINTWISE(less, A < B)
POINTWISE(less_equal, A <= B)
POINTWISE(greater, A > B)
POINTWISE(greater_equal, A >= B)
POINTWISE(and, A != 0 && B != 0)
POINTWISE(or, A != 0 || B != 0)
POINTWISE(not, A == 0)
POINTWISE(select, A != 0 ? B : C)
POINTWISE(neg, -A)
POINTWISE(abs, fabs(A))
POINTWISE(sign, (A > 0) - (A < 0))
POINTWISE(floor, floor(A))
POINTWISE(round, rint(A))
POINTWISE(sqrt, sqrt(A))
POINTWISE(exp, exp(A))
POINTWISE(expm1, expm1(A))
POINTWISE(log, log(A))
POINTWISE(log1p, log1p(A))
POINTWISE(sin, sin(A))
POINTWISE(cos, cos(A))
POINTWISE(tanh, tanh(A))
POINTWISE(erf, erf(A))
POINTWISE(isfinite, isfinite(A) != 0)
POINTWISE(stop_gradient, A)
#undef A
#undef B
#undef C
#undef POINTWISE

static void (*const NAME(pointwise)[PONS_MAP_OPERATION_COUNT])(const NAME(arguments) *v, REAL *y,
                                                               int64_t count) = {
#define ROW(UPPER, name, arity) [PONS_MAP_##UPPER] = NAME(point_##name),
    PONS_MAP_OPERATIONS(ROW)
#undef ROW
};

/* ---- a run ----------------------------------------------------------------------------------- */

/*
 * The position of the interpreter: the outer axes, and the first lane of the run on the last axis.
 */
typedef struct NAME(position) {
    const pons_request *r;
    const pons_map *m;
    const pons_call *call;
    int64_t at[PONS_MAP_AXES];
    int64_t segment;
    int64_t first, count;      /* lanes of the run; at[last axis] = first                         */
    int64_t linear;            /* index of the first lane in the whole space                      */
    bool segment_ends, all_ends;
    REAL *value;               /* [value][room]                                                   */
    int64_t room;
} NAME(position);

static int64_t NAME(room)(const pons_map *m)
{
    return m->channels > RUN ? m->channels : RUN;
}

/* The index of an operand's element for the run's first lane, and its step from lane to lane. */
static int64_t NAME(locate)(const NAME(position) *p, const pons_operand *o, int64_t *step)
{
    int64_t index = o->offset;

    *step = 0;
    if (o->index == PONS_INDEX_SEGMENT)
        return index + p->segment;
    if (o->index == PONS_INDEX_ELEMENT) {
        *step = 1;
        return index + p->linear;
    }
    if (o->index == PONS_INDEX_SPACE && p->m->axis_count > 0) {
        *step = o->stride[p->m->axis_count - 1];
        for (int i = 0; i < p->m->axis_count; i++)
            index += p->at[i] * o->stride[i];
    }
    return index;
}

static void NAME(load)(const NAME(position) *p, const pons_value *v, REAL *y, int64_t count)
{
    const pons_operand *o = &p->m->load[v->operand];
    int64_t step, index = NAME(locate)(p, o, &step);

    for (int64_t i = 0; i < count; i++)
        y[i] = (REAL)number_load(o->type, p->call->input[o->tensor], index + i * step);
}

static void NAME(random)(const NAME(position) *p, const pons_value *v, REAL *y, int64_t count)
{
    const pons_step_key *now = p->call->step_key;

    for (int64_t i = 0; i < count; i++) {
        uint64_t element = (uint64_t)(p->linear + i);
        uint32_t u[4];
        float normal[4];

        random_graph(now->seed, v->stream, now->step, now->micro_batch, element / 4, u);
        if (v->operation == PONS_VALUE_UNIFORM) {
            y[i] = random_uniform(u[element % 4]);
            continue;
        }
        random_normal(u[0], u[1], normal);
        random_normal(u[2], u[3], normal + 2);
        y[i] = normal[element % 4];
    }
}

/* The four reductions over the channels of a point. */
static REAL NAME(over_channels)(uint16_t operation, const REAL *a, int64_t count)
{
    bool stays = operation != PONS_VALUE_CHANNEL_ARG_MAX;
    double sum = 0;
    int64_t best = 0;

    for (int64_t i = 0; i < count; i++) {
        sum += a[i];
        if ((operation == PONS_VALUE_CHANNEL_MIN ? a[i] < a[best] : a[i] > a[best])
            || (stays && a[i] != a[i]))
            best = i;
    }
    if (operation == PONS_VALUE_CHANNEL_SUM)
        return (REAL)sum;
    return operation == PONS_VALUE_CHANNEL_ARG_MAX ? (REAL)best : a[best];
}

static void NAME(evaluate)(const NAME(position) *p, const pons_value *v, REAL *y)
{
    int64_t count = v->per_point ? 1 : p->count;
    NAME(arguments) a = { .step = { 0 } };

    for (int i = 0; i < v->argument_count; i++) {
        a.item[i] = p->value + v->argument[i] * p->room;
        a.step[i] = p->m->value[v->argument[i]].per_point ? 0 : 1;
    }
    if (v->operation < PONS_MAP_OPERATION_COUNT)
        NAME(pointwise)[v->operation](&a, y, count);
    else if (v->operation == PONS_VALUE_LOAD)
        NAME(load)(p, v, y, count);
    else if (v->operation == PONS_VALUE_UNIFORM || v->operation == PONS_VALUE_NORMAL)
        NAME(random)(p, v, y, count);
    else if (v->operation >= PONS_VALUE_CHANNEL_SUM)
        *y = NAME(over_channels)(v->operation, a.item[0], p->count);
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = v->operation == PONS_VALUE_CONSTANT ? (REAL)v->number :
                   (REAL)((p->linear + i) / v->divisor % v->modulus);
}

/* A store per segment happens behind the last element of the segment. */
static void NAME(store)(const NAME(position) *p, const pons_store *s)
{
    const pons_operand *o = &s->to;
    const REAL *y = p->value + s->value * p->room;
    int64_t count = p->m->value[s->value].per_point ? 1 : p->count;
    int64_t step, index = NAME(locate)(p, o, &step);

    if ((o->index == PONS_INDEX_SEGMENT && !p->segment_ends) ||
        (o->index == PONS_INDEX_SCALAR && !p->all_ends))
        return;
    for (int64_t i = 0; i < count; i++)
        number_store(o->type, p->call->output[o->tensor], index + i * step, y[i]);
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef struct NAME(sums) {
    double count, mean, squares; /* SUM, MAX, MIN: 'mean' holds the result                        */
} NAME(sums);

/* Row-major strides of the accumulators over the kept axes. Returns the number of accumulators. */
static int64_t NAME(kept)(const pons_map *m, const pons_reduction *d, int64_t *stride)
{
    int64_t count = 1;

    if (m->segment_count > 0)
        return d->to[0].index == PONS_INDEX_SEGMENT ? m->segment_count : 1;
    for (int i = m->axis_count - 1; i >= 0; i--) {
        bool keep = d->to[0].index == PONS_INDEX_SPACE && d->to[0].stride[i] != 0;

        stride[i] = keep ? count : 0;
        count *= keep ? m->extent[i] : 1;
    }
    return count;
}

static void NAME(take)(pons_reduction_kind kind, NAME(sums) *s, double x)
{
    double away = x - s->mean;

    s->count++;
    if (kind == PONS_REDUCE_SUM)
        s->mean += x;
    else if (kind == PONS_REDUCE_MOMENTS) {
        s->mean += away / s->count;
        s->squares += away * (x - s->mean);
    } else if (s->count == 1 || x != x || (kind == PONS_REDUCE_MAX ? away > 0 : away < 0))
        s->mean = x;
}

static void NAME(reduce)(const NAME(position) *p, const pons_reduction *d, NAME(sums) *sums)
{
    int64_t stride[PONS_MAP_AXES] = { 0 }, index = 0, step = 0;
    bool per_point = p->m->value[d->value].per_point;
    const REAL *x = p->value + d->value * p->room;

    NAME(kept)(p->m, d, stride);
    if (d->to[0].index == PONS_INDEX_SEGMENT)
        index = p->segment;
    else if (p->m->segment_count == 0 && p->m->axis_count > 0) {
        step = stride[p->m->axis_count - 1];
        for (int i = 0; i < p->m->axis_count; i++)
            index += p->at[i] * stride[i];
    }
    for (int64_t i = 0; i < (per_point ? 1 : p->count); i++)
        NAME(take)(d->kind, &sums[index + i * step], x[i]);
}

/* Merge 'width' accumulators by Chan's formula, and give each of them the result. */
static void NAME(merge)(NAME(sums) *s, int64_t width)
{
    NAME(sums) all = s[0];

    for (int64_t i = 1; i < width; i++) {
        double count = all.count + s[i].count, away = s[i].mean - all.mean;

        all.squares += s[i].squares + away * away * all.count * s[i].count / count;
        all.mean += away * s[i].count / count;
        all.count = count;
    }
    for (int64_t i = 0; i < width; i++)
        s[i] = all;
}

static void NAME(write_reduction)(const NAME(position) *p, const pons_reduction *d,
                                  NAME(sums) *sums)
{
    const pons_map *m = p->m;
    int64_t stride[PONS_MAP_AXES] = { 0 }, count = NAME(kept)(m, d, stride);
    int last = m->axis_count - 1;

    if (d->groups > 0 && last >= 0 && stride[last] != 0)
        for (int64_t i = 0; i < count; i += m->extent[last] / d->groups)
            NAME(merge)(sums + i, m->extent[last] / d->groups);
    for (int64_t i = 0; i < count; i++) {
        double result[2] = { sums[i].mean, sums[i].squares / sums[i].count };

        for (int k = 0; k < (d->kind == PONS_REDUCE_MOMENTS ? 2 : 1); k++) {
            const pons_operand *o = &d->to[k];
            int64_t index = o->offset;

            if (o->index == PONS_INDEX_SEGMENT)
                index += i;
            for (int j = 0; j <= last && o->index == PONS_INDEX_SPACE; j++)
                if (stride[j] != 0)
                    index += i / stride[j] % m->extent[j] * o->stride[j];
            number_store(o->type, p->call->output[o->tensor], index, result[k]);
        }
    }
}

/* ---- the space ------------------------------------------------------------------------------- */

static void NAME(run)(NAME(position) *p, NAME(sums) *sums)
{
    const pons_map *m = p->m;
    int64_t unused[PONS_MAP_AXES];

    for (int i = 0; i < m->value_count; i++)
        NAME(evaluate)(p, &m->value[i], p->value + i * p->room);
    for (int i = 0; i < m->store_count; i++)
        NAME(store)(p, &m->store[i]);
    for (int i = 0; i < m->reduction_count; i++) {
        NAME(reduce)(p, &m->reduction[i], sums);
        sums += NAME(kept)(m, &m->reduction[i], unused);
    }
}

static void NAME(runs)(NAME(position) *p, int64_t length, int64_t begin, NAME(sums) *sums)
{
    int64_t most = p->m->channels > 0 ? length : RUN;
    int last = p->m->axis_count - 1;
    bool all_ends = p->all_ends;

    for (p->first = 0; p->first < length; p->first += most) {
        p->count = length - p->first < most ? length - p->first : most;
        p->linear = begin + p->first;
        p->segment_ends = p->first + p->count == length;
        p->all_ends = all_ends && p->segment_ends;
        if (last >= 0)
            p->at[last] = p->first;
        NAME(run)(p, sums);
    }
    if (last >= 0)
        p->at[last] = 0;
}

static void NAME(walk)(NAME(position) *p, NAME(sums) *sums)
{
    const pons_map *m = p->m;
    pons_shape outer = { .rank = m->axis_count > 0 ? m->axis_count - 1 : 0 };
    int64_t length = m->axis_count > 0 ? m->extent[m->axis_count - 1] : 1, rows, row = 0;

    if (m->segment_count > 0) {
        for (p->segment = 0; p->segment < m->segment_count; p->segment++) {
            p->all_ends = p->segment == m->segment_count - 1;
            NAME(runs)(p, m->segment_length[p->segment], m->segment_start[p->segment], sums);
        }
        return;
    }
    for (int i = 0; i < outer.rank; i++)
        outer.extent[i] = m->extent[i];
    rows = shape_count(outer);
    do {
        p->all_ends = row == rows - 1;
        NAME(runs)(p, length, row++ * length, sums);
    } while (index_next(outer, p->at));
}

static size_t NAME(map_scratch)(const pons_map *m)
{
    int64_t accumulators = 0, unused[PONS_MAP_AXES];

    for (int i = 0; i < m->reduction_count; i++)
        accumulators += NAME(kept)(m, &m->reduction[i], unused);
    return (size_t)accumulators * sizeof(NAME(sums)) +
           (size_t)(m->value_count * NAME(room)(m)) * sizeof(REAL);
}

static void NAME(map)(const pons_request *r, const pons_call *call)
{
    const pons_map *m = r->attributes;
    NAME(position) p = { .r = r, .m = m, .call = call, .room = NAME(room)(m) };
    NAME(sums) *sums = call->scratch;
    int64_t count = 0, unused[PONS_MAP_AXES];

    for (int i = 0; i < m->reduction_count; i++)
        count += NAME(kept)(m, &m->reduction[i], unused);
    for (int64_t i = 0; i < count; i++)
        sums[i] = (NAME(sums)){ 0 };
    p.value = (REAL *)(sums + count);
    NAME(walk)(&p, sums);
    for (int i = 0; i < m->reduction_count; i++) {
        NAME(write_reduction)(&p, &m->reduction[i], sums);
        sums += NAME(kept)(m, &m->reduction[i], unused);
    }
}
