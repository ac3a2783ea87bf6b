/*
 * codegen_gather.c - kernels that move or mix elements along axes: copy, transpose, flip, crop,
 * pad, concatenate, gather, resize, and the gradients of pad and resize.
 *
 * An element of the result is a sum over elements of the argument that separates over the axes.
 * Along each axis the source is one position by a formula, one position (or none) by a table, or a
 * list of positions with weights. Gradients are therefore gathers too, and every thread writes its
 * own element.
 */
#include "cuda/codegen/codegen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

typedef enum gather_way {
    GATHER_LINE = 0,       /* start + step * i                                                    */
    GATHER_TABLE,          /* table[i]; negative: zero                                            */
    GATHER_LIST,           /* list[begin[i]] .. list[begin[i + 1] - 1], with weights              */
    GATHER_INDEX           /* element i of input 1; outside: zero                                 */
} gather_way;

typedef struct gather_axis {
    gather_way way;
    int64_t start, step;
    int table, list, weight;
    int64_t from_extent;   /* GATHER_INDEX: extent of the source                                  */
    int64_t from_stride, to_stride;
} gather_axis;

typedef struct gather_axes {
    codegen *s;
    int input, rank;
    int64_t extent[PONS_RANK_MAX], from_at, to_at;
    int64_t most;
    int width;
    gather_axis axis[PONS_RANK_MAX];
} gather_axes;

static void strides_of(pons_shape s, int64_t *stride)
{
    int64_t below = 1;

    for (int a = s.rank - 1; a >= 0; a--) {
        stride[a] = below;
        below *= s.extent[a];
    }
}

/* The identity: every element of the output from its own position in input 'input'. */
static gather_axes plan_of(codegen *s, int input)
{
    const pons_request *r = s->request;
    pons_shape from = r->input[input].shape, to = r->output[0].shape;
    int64_t from_stride[PONS_RANK_MAX], to_stride[PONS_RANK_MAX], n = codegen_count(from);
    gather_axes p = { .s = s, .input = input, .rank = to.rank, .width = 1,
                      .most = codegen_count(to) };

    p.most = max_i64(n, p.most);
    strides_of(from, from_stride);
    strides_of(to, to_stride);
    for (int a = 0; a < to.rank; a++) {
        p.extent[a] = to.extent[a];
        p.axis[a] = (gather_axis){ .step = 1, .from_extent = a < from.rank ? from.extent[a] : 1,
                                   .from_stride = a < from.rank ? from_stride[a] : 0,
                                   .to_stride = to_stride[a] };
    }
    return p;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int64_t pad_source(pons_pad_mode mode, int64_t i, int64_t low, int64_t step, int64_t n)
{
    i -= low;
    if (mode == PONS_PAD_EDGE)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (mode == PONS_PAD_REFLECT)
        return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    return i < 0 || i % step != 0 || i / step >= n ? -1 : i / step;
}

/* The position of a linear mode between the sources of element i of m. */
static double linear_source(pons_resize_mode mode, int64_t i, int64_t n, int64_t m)
{
    double at = ((double)i + 0.5) * (double)n / (double)m - 0.5;

    if (mode == PONS_RESIZE_LINEAR_ALIGNED)
        return m > 1 ? (double)(i * (n - 1)) / (double)(m - 1) : 0;
    return at < 0 ? 0 : at;
}

/* The two source positions of element i of m among n, and the weight of the second. */
static double resize_source(pons_resize_mode mode, int64_t i, int64_t n, int64_t m, int64_t out[2])
{
    double at = linear_source(mode, i, n, m), second = 0;

    if (mode == PONS_RESIZE_NEAREST) {
        out[0] = i * n / m;
    } else if (mode == PONS_RESIZE_NEAREST_EXACT) {
        out[0] = (2 * i + 1) * n / (2 * m);
    } else {
        out[0] = (int64_t)floor(at);
        second = at - floor(at);
    }
    out[1] = out[0] + 1 < n ? out[0] + 1 : n - 1;
    return second;
}

/*
 * The sources of element i of the 'm' larger ones among 'n': at most two, with weights; returns
 * their count.
 */
typedef int (*gather_sources)(const void *attributes, int axis, int64_t i, int64_t n, int64_t m,
                              int64_t place[2], float weight[2]);

static int resize_sources(const void *attributes, int axis, int64_t i, int64_t n, int64_t m,
                          int64_t place[2], float weight[2])
{
    const pons_resize_attributes *a = attributes;
    double second = resize_source(a->mode, i, n, m, place);

    weight[0] = (float)(1 - second);
    weight[1] = (float)second;
    return second > 0 ? 2 : 1;
}

static int pad_sources(const void *attributes, int axis, int64_t i, int64_t n, int64_t m,
                       int64_t place[2], float weight[2])
{
    const pons_pad_attributes *a = attributes;

    place[0] = pad_source(a->mode, i, a->low[axis], a->step[axis], n);
    weight[0] = 1;
    return place[0] >= 0 ? 1 : 0;
}

/*
 * Make the lists of an axis: for each of the m results its sources among n. If 'transposed', they
 * list for each of the n sources the results that use it, in order.
 */
static bool list_axis(gather_axes *p, int axis, int64_t n, int64_t m, bool transposed,
                      gather_sources sources)
{
    gather_axis *x = &p->axis[axis];
    const void *attributes = p->s->request->attributes;
    int64_t count = transposed ? n : m, room = 2 * m, place[2];
    int *begin = codegen_table(p->s, "int", count + 1, &x->table);
    int *list = codegen_table(p->s, "int", room, &x->list);
    float *weights = codegen_table(p->s, "float", room, &x->weight), weight[2];
    int used = 0;

    if (begin == NULL || list == NULL || weights == NULL)
        return false;
    x->way = GATHER_LIST;
    for (int64_t of = 0; of < count; of++) {
        begin[of] = used;
        for (int64_t i = transposed ? 0 : of; i < (transposed ? m : of + 1); i++) {
            int k = sources(attributes, axis, i, n, m, place, weight);
            for (int j = 0; j < k; j++)
                if (!transposed || place[j] == of) {
                    list[used] = (int)(transposed ? i : place[j]);
                    weights[used++] = weight[j];
                }
        }
    }
    begin[count] = used;
    return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_simple(const gather_axes *p)
{
    for (int a = 0; a < p->rank; a++)
        if (p->axis[a].way == GATHER_LIST)
            return false;
    return true;
}

/* Choose accesses of 16 bytes along the last axis, if that is copied in order. */
static void choose_width(gather_axes *p)
{
    pons_type type = p->s->request->output[0].type;
    const gather_axis *last = &p->axis[p->rank - 1];
    int width = type == PONS_BF16 || type == PONS_F16 ? 8 : 4;

    if (p->rank == 0 || last->way != GATHER_LINE || last->step != 1 || last->from_stride != 1
        || last->to_stride != 1)
        return;
    for (; width > 1; width /= 2) {
        bool fits = width >= 4 && p->extent[p->rank - 1] % width == 0
                 && (p->from_at + last->start) % width == 0 && p->to_at % width == 0;
        for (int a = 0; a + 1 < p->rank; a++) {
            const gather_axis *x = &p->axis[a];
            bool moves = p->extent[a] > 1 || x->way != GATHER_LINE || x->start != 0;
            fits = fits && (!moves || (x->from_stride % width == 0 && x->to_stride % width == 0));
        }
        if (fits)
            break;
    }
    p->width = width;
    p->extent[p->rank - 1] /= width;
}

/* Write an axis's term of the argument's address. */
static void write_term(const gather_axes *p, int a, text *t)
{
    const gather_axis *x = &p->axis[a];
    int64_t unit = a == p->rank - 1 ? p->width : 1;

    if (x->way == GATHER_LINE && p->extent[a] == 1 && x->start == 0)
        return;
    if (x->way == GATHER_LINE)
        text_add(t, " + (%lld + %s%d * %lld) * %lld", (long long)x->start, "i", a,
                 (long long)(x->step * unit), (long long)x->from_stride);
    else
        text_add(t, " + f%d * %lld", a, (long long)x->from_stride);
}

static void write_sources(const gather_axes *p, text *t)
{
    for (int a = 0; a < p->rank; a++) {
        const gather_axis *x = &p->axis[a];
        if (x->way == GATHER_TABLE)
            text_add(t, "    const int f%d = table%d[i%d];\n    if (f%d >= 0) {\n", a, x->table,
                     a, a);
        else if (x->way == GATHER_INDEX)
            text_add(t, "    const int f%d = (int)in1[i%d];\n"
                     "    if (f%d >= 0 && f%d < %lld) {\n", a, a, a, a, (long long)x->from_extent);
        else if (x->way == GATHER_LIST)
            text_add(t, "    for (int l%d = table%d[i%d]; l%d < table%d[i%d + 1]; l%d++) {\n"
                     "    const int f%d = table%d[l%d];\n    const float w%d = table%d[l%d];\n",
                     a, x->table, a, a, x->table, a, a, a, x->list, a, a, x->weight, a);
    }
}

static void write_gather(const gather_axes *p, text *t)
{
    const pons_request *r = p->s->request;
    const char *word = text_word(r->input[p->input].type);
    bool simple = is_simple(p);

    write_sources(p, t);
    text_add(t, "    {\n    const %s from = %lld", text_index(p->most), (long long)p->from_at);
    for (int a = 0; a < p->rank; a++)
        write_term(p, a, t);
    text_add(t, ";\n");
    if (simple && p->width > 1) {
        text_add(t, "    load%d_%s(in%d + from, x);\n", p->width, word, p->input);
    } else if (simple) {
        text_add(t, "    x[0] = number_%s(in%d[from]);\n", word, p->input);
    } else {
        text_add(t, "    const float weight = 1.0f");
        for (int a = 0; a < p->rank; a++)
            if (p->axis[a].way == GATHER_LIST)
                text_add(t, " * w%d", a);
        text_add(t, ";\n");
        if (p->width > 1)
            text_add(t, "    float y[%d];\n    load%d_%s(in%d + from, y);\n", p->width, p->width,
                     word, p->input);
        else
            text_add(t, "    float y[1];\n    y[0] = number_%s(in%d[from]);\n", word, p->input);
        text_add(t, "    EACH(k, %d)\n        x[k] = fmaf(weight, y[k], x[k]);\n", p->width);
    }
    text_add(t, "    }\n");
    for (int a = 0; a < p->rank; a++)
        if (p->axis[a].way != GATHER_LINE)
            text_add(t, "    }\n");
}

static void write_kernel(gather_axes *p)
{
    const char *word = text_word(p->s->request->output[0].type);
    int64_t count = 1;
    text *t;

    if (p->rank > 0)
        choose_width(p);
    for (int a = 0; a < p->rank; a++)
        count *= p->extent[a];
    if (count == 0)
        return;
    t = codegen_begin(p->s, codegen_blocks(count));
    codegen_point(t, "point", count, p->most);
    codegen_coordinates(t, "point", "i", p->rank, p->extent, p->most);
    text_add(t, "    float x[%d];\n    EACH(k, %d)\n        x[k] = 0.0f;\n", p->width, p->width);
    write_gather(p, t);
    text_add(t, "    const %s to = %lld", text_index(p->most), (long long)p->to_at);
    for (int a = 0; a < p->rank; a++)
        if (p->extent[a] > 1)
            text_add(t, " + i%d * %lld", a, (long long)(p->axis[a].to_stride
                                                        * (a == p->rank - 1 ? p->width : 1)));
    if (p->width > 1)
        text_add(t, ";\n    store%d_%s(out0 + to, x);\n", p->width, word);
    else
        text_add(t, ";\n    out0[to] = stored_%s(x[0]);\n", word);
    codegen_end(p->s);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static bool set_copy(gather_axes *p)
{
    p->extent[0] = codegen_count(p->s->request->output[0].shape);
    p->rank = 1;
    p->axis[0] = (gather_axis){ .step = 1, .from_stride = 1, .to_stride = 1 };
    return true;
}

static bool set_transpose(gather_axes *p)
{
    const pons_transpose_attributes *t = p->s->request->attributes;
    int64_t stride[PONS_RANK_MAX];

    strides_of(p->s->request->input[0].shape, stride);
    for (int a = 0; a < p->rank; a++)
        p->axis[a].from_stride = stride[t->order[a]];
    return true;
}

static bool set_flip(gather_axes *p)
{
    const pons_flip_attributes *f = p->s->request->attributes;

    for (int a = 0; a < p->rank; a++)
        if ((f->axes & PONS_AXIS(a)) != 0 && p->extent[a] > 1) {
            p->axis[a].start = p->extent[a] - 1;
            p->axis[a].step = -1;
        }
    return true;
}

static bool set_crop(gather_axes *p)
{
    const pons_crop_attributes *c = p->s->request->attributes;

    for (int a = 0; a < p->rank; a++) {
        p->axis[a].start = c->start[a];
        p->axis[a].step = c->step[a];
    }
    return true;
}

static bool set_gather(gather_axes *p)
{
    const pons_axis_attributes *g = p->s->request->attributes;

    p->axis[g->axis].way = GATHER_INDEX;
    return true;
}

static bool set_pad(gather_axes *p)
{
    const pons_request *r = p->s->request;
    const pons_pad_attributes *d = r->attributes;

    for (int a = 0; a < p->rank; a++) {
        int64_t n = r->input[0].shape.extent[a];
        int *table;
        if (p->extent[a] == n && d->low[a] == 0 && d->step[a] <= 1)
            continue;
        table = codegen_table(p->s, "int", p->extent[a], &p->axis[a].table);
        if (table == NULL)
            return false;
        p->axis[a].way = GATHER_TABLE;
        for (int64_t i = 0; i < p->extent[a]; i++)
            table[i] = (int)pad_source(d->mode, i, d->low[a], d->step[a], n);
    }
    return true;
}

static bool set_pad_gradient(gather_axes *p)
{
    const pons_request *r = p->s->request;

    for (int a = 0; a < p->rank; a++)
        if (r->input[0].shape.extent[a] != p->extent[a]
            && !list_axis(p, a, p->extent[a], r->input[0].shape.extent[a], true, pad_sources))
            return false;
    return true;
}

static bool set_resize(gather_axes *p)
{
    const pons_request *r = p->s->request;
    bool transposed = r->kind == PONS_KERNEL_RESIZE_GRADIENT;

    for (int a = 1; a < 4; a++) {
        int64_t from = r->input[0].shape.extent[a], to = p->extent[a];
        if (from != to && !list_axis(p, a, transposed ? to : from, transposed ? from : to,
                                     transposed, resize_sources))
            return false;
    }
    return true;
}

/* One kernel for each input, which writes its slice. */
static bool write_concatenation(codegen *s)
{
    const pons_axis_attributes *c = s->request->attributes;
    int64_t begin = 0;

    for (int i = 0; i < s->request->input_count && i < CUDA_LAUNCHES; i++) {
        gather_axes p = plan_of(s, i);
        p.extent[c->axis] = s->request->input[i].shape.extent[c->axis];
        p.to_at = begin * p.axis[c->axis].to_stride;
        begin += p.extent[c->axis];
        write_kernel(&p);
    }
    return s->launch_count > 0;
}

bool codegen_gather(codegen *s)
{
    static bool (*const set[PONS_KERNEL_KIND_COUNT])(gather_axes *p) = {
        [PONS_KERNEL_COPY] = set_copy, [PONS_KERNEL_TRANSPOSE] = set_transpose,
        [PONS_KERNEL_FLIP] = set_flip, [PONS_KERNEL_CROP] = set_crop,
        [PONS_KERNEL_GATHER] = set_gather, [PONS_KERNEL_PAD] = set_pad,
        [PONS_KERNEL_PAD_GRADIENT] = set_pad_gradient, [PONS_KERNEL_RESIZE] = set_resize,
        [PONS_KERNEL_RESIZE_GRADIENT] = set_resize,
    };
    gather_axes p;

    if (s->request->kind == PONS_KERNEL_CONCATENATE)
        return write_concatenation(s);
    p = plan_of(s, 0);
    if (!set[s->request->kind](&p))
        return false;
    write_kernel(&p);
    return s->launch_count > 0;
}
