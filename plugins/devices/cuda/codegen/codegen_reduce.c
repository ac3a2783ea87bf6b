/*
 * codegen_reduce.c - the passes of a map with reductions, in an order that the shapes alone decide.
 *
 * A block has 'lanes' columns of kept elements and 256 / lanes threads for each column. A thread
 * processes its elements in order and sums in runs of 16; the block reduces its threads. If the
 * reduced elements are cut in pieces, a second kernel reduces the pieces. There are no atomics: the
 * bits are a function of the shapes.
 */
#include "cuda/codegen/codegen_internal.h"

#include "base/integer.h"

enum { BLOCKS = 1024, STEPS_LEAST = 8, REDUCED_FEW = 64 };

static const char *word_of(const pons_reduction *r)
{
    static const char *const word[] = { [PONS_REDUCE_SUM] = "sum", [PONS_REDUCE_MAX] = "max",
                                        [PONS_REDUCE_MIN] = "min",
                                        [PONS_REDUCE_MOMENTS] = "moments" };
    return word[r->kind];
}

static const char *none_of(const pons_reduction *r)
{
    static const char *const none[] = {
        [PONS_REDUCE_SUM] = "0.0f", [PONS_REDUCE_MAX] = "__int_as_float(0xff800000)",
        [PONS_REDUCE_MIN] = "__int_as_float(0x7f800000)", [PONS_REDUCE_MOMENTS] = "0.0f"
    };
    return none[r->kind];
}

static const char *type_of(const pons_reduction *r)
{
    return r->kind == PONS_REDUCE_MOMENTS ? "moments" : "float";
}

static size_t size_of(const pons_reduction *r)
{
    return r->kind == PONS_REDUCE_MOMENTS ? 12 : 4;
}

uint64_t codegen_kept(const codegen_map_plan *p, const pons_reduction *r)
{
    uint64_t kept = 0;

    if (p->ragged)
        return r->to[0].index == PONS_INDEX_SEGMENT;
    for (int a = 0; a < p->axes && r->to[0].index == PONS_INDEX_SPACE; a++)
        if (r->to[0].stride[a] != 0 && p->map->extent[a] > 1)
            kept |= UINT64_C(1) << a;
    return kept;
}

/* Accumulators of a thread for a reduction: 'width' or 1. */
static int codegen_accumulators(const codegen_map_plan *p, const pons_reduction *r)
{
    int last = p->map->axis_count - 1;

    if (p->ragged || r->to[0].index != PONS_INDEX_SPACE)
        return 1;
    if (p->map->channels > 0)
        return !p->map->value[r->value].per_point && r->to[0].stride[last] != 0 ? p->width : 1;
    return (codegen_kept(p, r) >> last & 1) != 0 ? p->width : 1;
}

/* Write the name of the reduced value at this point of the kernel. */
static void write_value(const codegen_map_plan *p, const pons_reduction *r, text *t)
{
    bool array = codegen_is_array(p, r->value)
              && (p->map->channels > 0 || p->map->value[r->value].operation == PONS_VALUE_LOAD);

    text_add(t, array ? "w%d[k]" : "v%d", r->value);
}

/* True for moments whose accumulators each take one element a step: they share one divisor. */
static bool is_even(const codegen_map_plan *p, const pons_reduction *r)
{
    return r->kind == PONS_REDUCE_MOMENTS && codegen_accumulators(p, r) > 1;
}

void codegen_accumulate(const codegen_map_plan *p, const pons_reduction *r, int number, text *t)
{
    const char *place = codegen_accumulators(p, r) > 1 ? "k" : "0";

    if (r->kind == PONS_REDUCE_SUM) {
        text_add(t, "        part%d[%s] += ", number, place);
        write_value(p, r, t);
        text_add(t, ";\n");
        return;
    }
    text_add(t, "        r%d[%s] = %s_%s(r%d[%s], ", number, place,
             is_even(p, r) ? "next" : r->kind == PONS_REDUCE_MOMENTS ? "take" : "join", word_of(r),
             number, place);
    write_value(p, r, t);
    text_add(t, is_even(p, r) ? ", share);\n" : ");\n");
}

/* ---- accumulators ---------------------------------------------------------------------------- */

static bool is_of(const codegen_map_plan *p, const map_pass *pass, int number)
{
    return codegen_kept(p, &p->map->reduction[number]) == pass->kept;
}

static void write_begin(const codegen_map_plan *p, const map_pass *pass, text *t)
{
    text_add(t, "    __shared__ float shared[768];\n    int turn = 0;\n");
    for (int i = 0; i < p->map->reduction_count; i++) {
        const pons_reduction *r = &p->map->reduction[i];
        int n = codegen_accumulators(p, r);
        if (!is_of(p, pass, i))
            continue;
        text_add(t, "    %s r%d[%d];\n", type_of(r), i, n);
        if (r->kind == PONS_REDUCE_MOMENTS)
            text_add(t, "    EACH(k, %d)\n        r%d[k].count = r%d[k].mean = r%d[k].squares = "
                     "0.0f;\n", n, i, i, i);
        else
            text_add(t, "    EACH(k, %d)\n        r%d[k] = %s;\n", n, i, none_of(r));
        if (r->kind == PONS_REDUCE_SUM)
            text_add(t, "    float part%d[%d];\n    EACH(k, %d)\n        part%d[k] = 0.0f;\n", i, n,
                     n, i);
    }
}

/* Write the end of a run of sums, after 16 steps and after the last one. */
static void write_flush(const codegen_map_plan *p, const map_pass *pass, bool last, text *t)
{
    if (!last)
        text_add(t, "    if (++turn %% 16 == 0) {\n");
    for (int i = 0; i < p->map->reduction_count; i++) {
        const pons_reduction *r = &p->map->reduction[i];
        if (is_of(p, pass, i) && r->kind == PONS_REDUCE_SUM)
            text_add(t, "    EACH(k, %d) {\n        r%d[k] += part%d[k];\n"
                     "        part%d[k] = 0.0f;\n    }\n", codegen_accumulators(p, r), i, i, i);
    }
    if (!last)
        text_add(t, "    }\n");
}

/* ---- results --------------------------------------------------------------------------------- */

/* Write "const int i1 = ...;" for the axes in 'axes', from the row-major index 'from'. */
static void write_axes(const codegen_map_plan *p, const char *from, uint64_t axes, text *t)
{
    int64_t below = 1, count = 1;
    bool first = true;

    for (int a = 0; a < p->axes; a++)
        count *= (axes >> a & 1) != 0 ? p->extent[a] : 1;
    below = count;
    for (int a = 0; a < p->axes; a++) {
        if ((axes >> a & 1) == 0)
            continue;
        below /= p->extent[a];
        text_add(t, "    const %s i%d = %s / %lld", text_index(p->most), a, from,
                 (long long)below);
        text_add(t, first ? ";\n" : " %% %lld;\n", (long long)p->extent[a]);
        first = false;
    }
}

/* Write the store of the result 'x'. The kept axes are i0, ..., and k is the accumulator. */
static void write_result(const codegen_map_plan *p, const pons_reduction *r, const char *x, text *t)
{
    int last = p->map->axis_count - 1;
    uint64_t kept = p->ragged ? 0 : codegen_kept(p, r);

    for (int j = 0; j < (r->kind == PONS_REDUCE_MOMENTS ? 2 : 1); j++) {
        const pons_operand *o = &r->to[j];
        text_add(t, "        out%d[", o->tensor);
        codegen_address(p, o, kept, t);
        if (codegen_accumulators(p, r) > 1)
            text_add(t, " + k * %lld", (long long)o->stride[last]);
        text_add(t, "] = stored_%s(%s%s);\n", text_word(o->type), x,
                 r->kind != PONS_REDUCE_MOMENTS ? "" : j == 0 ? ".mean"
                 : ".squares / (x.count > 0.0f ? x.count : 1.0f)");
    }
}

static int64_t group_size(const codegen_map_plan *p, const pons_reduction *r)
{
    int last = p->map->axis_count - 1;

    if (r->groups == 0)
        return 1;
    while (last > 0 && r->to[0].stride[last] == 0)
        last--;
    return p->map->extent[last] / r->groups > 0 ? p->map->extent[last] / r->groups : 1;
}

static bool is_direct(const codegen_map_plan *p, const map_pass *pass, const pons_reduction *r)
{
    return !p->ragged && pass->pieces == 1 && group_size(p, r) == 1;
}

static void write_join(codegen_map_plan *p, const map_pass *pass, int number, text *t)
{
    const pons_reduction *r = &p->map->reduction[number];
    int n = codegen_accumulators(p, r);
    int64_t pieces = p->ragged ? p->piece_count : pass->pieces;

    text_add(t, "    for (int k = 0; k < %d; k++) {\n"
             "        const %s x = block_%s(r%d[k], %d, shared);\n"
             "        if (threadIdx.x >= %d || kept >= %lld)\n            continue;\n", n,
             type_of(r), word_of(r), number, pass->lanes, pass->lanes, (long long)pass->kept_count);
    if (is_direct(p, pass, r)) {
        write_result(p, r, "x", t);
    } else {
        p->partial_at[number] = codegen_scratch(p->s, (size_t)(pieces * pass->kept_count * n)
                                                     * size_of(r));
        text_add(t, "        ((%s *)(scratch + %lld))[(piece * %lldll + kept) * %d + k] = x;\n",
                 type_of(r), (long long)p->partial_at[number] / 4, (long long)pass->kept_count, n);
    }
    text_add(t, "    }\n");
}

/* ---- the second kernel ----------------------------------------------------------------------- */

static void write_first(const pons_reduction *r, text *t)
{
    if (r->kind == PONS_REDUCE_MOMENTS)
        text_add(t, "    moments x = { 0.0f, 0.0f, 0.0f };\n");
    else
        text_add(t, "    float x = %s;\n", none_of(r));
}

/* The second kernel for columns: 32 adjacent kept elements in a block. */
static void finish_columns(const codegen_map_plan *p, const map_pass *pass, int number)
{
    const pons_reduction *r = &p->map->reduction[number];
    int n = codegen_accumulators(p, r);
    int64_t count = pass->kept_count * n;
    text *t = codegen_begin(p->s, ceil_div_i64(count, 32));

    text_add(t, "    __shared__ float shared[768];\n"
             "    const %s *partial = (const %s *)(scratch + %lld);\n"
             "    const int result = (int)blockIdx.x * 32 + (int)threadIdx.x %% 32;\n",
             type_of(r), type_of(r), (long long)p->partial_at[number] / 4);
    write_first(r, t);
    text_add(t, "    for (int piece = (int)threadIdx.x / 32; result < %lld && piece < %lld; "
             "piece += 8)\n        x = join_%s(x, partial[piece * %lldll + result]);\n",
             (long long)count, (long long)pass->pieces, word_of(r), (long long)count);
    text_add(t, "    x = block_%s(x, 32, shared);\n"
             "    if (threadIdx.x >= 32 || result >= %lld)\n        return;\n", word_of(r),
             (long long)count);
    text_add(t, "    const int kept = result / %d, k = result %% %d;\n", n, n);
    write_axes(p, "kept", pass->kept, t);
    write_result(p, r, "x", t);
    codegen_end(p->s);
}

/*
 * The second kernel for groups: a block for each group of kept elements, all of which get its
 * result.
 */
static void finish_groups(const codegen_map_plan *p, const map_pass *pass, int number, int64_t size)
{
    const pons_reduction *r = &p->map->reduction[number];
    int n = codegen_accumulators(p, r);
    int64_t count = pass->kept_count * n;
    text *t = codegen_begin(p->s, count / size);

    text_add(t, "    __shared__ float shared[768];\n"
             "    const moments *partial = (const moments *)(scratch + %lld);\n"
             "    const int first = (int)blockIdx.x * %lld;\n",
             (long long)p->partial_at[number] / 4, (long long)size);
    write_first(r, t);
    text_add(t, "    for (int i = (int)threadIdx.x; i < %lld; i += %d)\n"
             "        x = join_moments(x, partial[i / %lld * %lldll + first + i %% %lld]);\n"
             "    x = block_moments(x, 1, shared);\n    if (threadIdx.x != 0)\n        return;\n",
             (long long)(pass->pieces * size), CUDA_THREADS, (long long)size, (long long)count,
             (long long)size);
    text_add(t, "    for (int result = first; result < first + %lld; result++) {\n"
             "    const int kept = result / %d, k = result %% %d;\n", (long long)size, n, n);
    write_axes(p, "kept", pass->kept, t);
    write_result(p, r, "x", t);
    text_add(t, "    }\n");
    codegen_end(p->s);
}

/* The second kernel of the ragged form: a block for each segment, or one block. */
static void finish_segments(const codegen_map_plan *p, const map_pass *pass, int number)
{
    const pons_reduction *r = &p->map->reduction[number];
    bool each = pass->kept != 0;
    text *t = codegen_begin(p->s, each ? p->map->segment_count : 1);

    text_add(t, "    __shared__ float shared[768];\n"
             "    const %s *partial = (const %s *)(scratch + %lld);\n"
             "    const int segment = (int)blockIdx.x;\n", type_of(r), type_of(r),
             (long long)p->partial_at[number] / 4);
    text_add(t, "    const int begin = table%d[%s], end = table%d[%s", p->table_piece,
             each ? "segment" : "0", p->table_piece, each ? "segment + 1];\n" : "");
    if (!each)
        text_add(t, "%lld];\n", (long long)p->map->segment_count);
    write_first(r, t);
    text_add(t, "    for (int piece = begin + (int)threadIdx.x; piece < end; piece += %d)\n"
             "        x = join_%s(x, partial[piece]);\n    x = block_%s(x, 1, shared);\n"
             "    if (threadIdx.x != 0)\n        return;\n", CUDA_THREADS, word_of(r), word_of(r));
    write_result(p, r, "x", t);
    codegen_end(p->s);
}

static void write_finish(const codegen_map_plan *p, const map_pass *pass, int number)
{
    const pons_reduction *r = &p->map->reduction[number];
    int64_t size = p->ragged ? 1 : group_size(p, r);

    if (p->ragged)
        finish_segments(p, pass, number);
    else if (size > 1)
        finish_groups(p, pass, number, size);
    else if (!is_direct(p, pass, r))
        finish_columns(p, pass, number);
}

/* ---- the first kernel ------------------------------------------------------------------------ */

static void plan_blocks(const codegen_map_plan *p, map_pass *pass)
{
    int64_t columns, most;
    int last = p->axes - 1;

    pass->kept_count = pass->reduced_count = 1;
    for (int a = 0; a < p->axes; a++)
        *((pass->kept >> a & 1) != 0 ? &pass->kept_count : &pass->reduced_count) *= p->extent[a];
    pass->lanes = 1;
    if ((last >= 0 && (pass->kept >> last & 1) != 0) || pass->reduced_count < REDUCED_FEW)
        while (pass->lanes < 32 && pass->lanes < pass->kept_count)
            pass->lanes *= 2;
    columns = ceil_div_i64(pass->kept_count, pass->lanes);
    most = pass->reduced_count / (CUDA_THREADS / pass->lanes * STEPS_LEAST);
    pass->pieces = columns < BLOCKS ? BLOCKS / columns : 1;
    pass->pieces = min_i64(pass->pieces, most);
    pass->pieces = pass->pieces > 0 ? pass->pieces : 1;
    pass->piece = ceil_div_i64(pass->reduced_count, pass->pieces);
    pass->pieces = ceil_div_i64(pass->reduced_count, pass->piece);
}

/* Write the index of the step in the whole space. */
static void write_point(const codegen_map_plan *p, text *t)
{
    int64_t below = p->steps;

    text_add(t, "    const %s point = 0", text_index(p->most));
    for (int a = 0; a < p->axes; a++) {
        below /= p->extent[a];
        text_add(t, below > 1 ? " + i%d * %lld" : " + i%d", a, (long long)below);
    }
    text_add(t, ";\n");
}

static text *write_dense(codegen_map_plan *p, map_pass *pass)
{
    const char *index = text_index(p->most);
    uint64_t all = (UINT64_C(1) << p->axes) - 1;
    bool even = false;
    text *t;

    plan_blocks(p, pass);
    t = codegen_begin(p->s, ceil_div_i64(pass->kept_count, pass->lanes) * pass->pieces);
    text_add(t, "    const %s kept = (%s)(blockIdx.x / %lld) * %d + (int)threadIdx.x %% %d;\n",
             index, index, (long long)pass->pieces, pass->lanes, pass->lanes);
    text_add(t, "    const %s piece = (%s)(blockIdx.x %% %lld), begin = piece * %lld;\n"
             "    const %s end = begin + %lld < %lld ? begin + %lld : %lld;\n", index, index,
             (long long)pass->pieces, (long long)pass->piece, index, (long long)pass->piece,
             (long long)pass->reduced_count, (long long)pass->piece,
             (long long)pass->reduced_count);
    write_axes(p, "kept", pass->kept, t);
    write_begin(p, pass, t);
    text_add(t, "    for (%s reduced = begin + (int)threadIdx.x / %d;\n"
             "         kept < %lld && reduced < end; reduced += %d) {\n", index, pass->lanes,
             (long long)pass->kept_count, CUDA_THREADS / pass->lanes);
    write_axes(p, "reduced", all & ~pass->kept, t);
    write_point(p, t);
    for (int i = 0; i < p->map->reduction_count; i++)
        even = even || (is_of(p, pass, i) && is_even(p, &p->map->reduction[i]));
    if (even)
        text_add(t, "    const float share = 1.0f / (float)(turn + 1);\n");
    return t;
}

static text *write_ragged(codegen_map_plan *p, map_pass *pass)
{
    text *t = codegen_begin(p->s, p->piece_count);

    pass->lanes = 1;
    pass->kept_count = 1;
    text_add(t, "    const int kept = 0, piece = (int)blockIdx.x;\n"
             "    const int segment = table%d[piece], first = table%d[piece];\n"
             "    const int count = table%d[piece];\n", p->table_segment, p->table_first,
             p->table_count);
    write_begin(p, pass, t);
    text_add(t, "    for (int e = (int)threadIdx.x; e < count; e += %d) {\n"
             "    const int element = first + e;\n", CUDA_THREADS);
    return t;
}

void codegen_reduce(codegen_map_plan *p, map_pass *pass)
{
    text *t = p->ragged ? write_ragged(p, pass) : write_dense(p, pass);

    codegen_values(p, pass, t);
    write_flush(p, pass, false, t);
    text_add(t, "    }\n");
    write_flush(p, pass, true, t);
    for (int i = 0; i < p->map->reduction_count; i++)
        if (is_of(p, pass, i))
            write_join(p, pass, i, t);
    codegen_end(p->s);
    for (int i = 0; i < p->map->reduction_count; i++)
        if (is_of(p, pass, i))
            write_finish(p, pass, i);
}
