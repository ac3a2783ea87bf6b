/*
 * codegen_value.c - the values of a map at one step of a thread.
 *
 * If a step has several points, loads come first, into arrays; then one loop over k computes the
 * values of these points. In the channel form a per-point value may need all channels of a
 * per-channel one, so there every per-channel value is an array and a loop of its own.
 */
#include "cuda/codegen/codegen_internal.h"

#include <string.h>

/* $0, $1 and $2 stand for the arguments. */
static const char *const formulas[PONS_MAP_OPERATION_COUNT] = {
    [PONS_MAP_ADD] = "$0 + $1", [PONS_MAP_SUB] = "$0 - $1", [PONS_MAP_MUL] = "$0 * $1",
    [PONS_MAP_DIV] = "$0 / $1", [PONS_MAP_MIN] = "$0 < $1 ? $0 : $1",
    [PONS_MAP_MAX] = "$0 > $1 ? $0 : $1", [PONS_MAP_POW] = "powf($0, $1)",
    [PONS_MAP_EQUAL] = "$0 == $1 ? 1.0f : 0.0f", [PONS_MAP_NOT_EQUAL] = "$0 != $1 ? 1.0f : 0.0f",
    [PONS_MAP_LESS] = "$0 < $1 ? 1.0f : 0.0f", [PONS_MAP_LESS_EQUAL] = "$0 <= $1 ? 1.0f : 0.0f",
    [PONS_MAP_GREATER] = "$0 > $1 ? 1.0f : 0.0f",
    [PONS_MAP_GREATER_EQUAL] = "$0 >= $1 ? 1.0f : 0.0f",
    [PONS_MAP_AND] = "$0 != 0.0f && $1 != 0.0f ? 1.0f : 0.0f",
    [PONS_MAP_OR] = "$0 != 0.0f || $1 != 0.0f ? 1.0f : 0.0f",
    [PONS_MAP_NOT] = "$0 == 0.0f ? 1.0f : 0.0f", [PONS_MAP_SELECT] = "$0 != 0.0f ? $1 : $2",
    [PONS_MAP_NEG] = "-$0", [PONS_MAP_ABS] = "fabsf($0)",
    [PONS_MAP_SIGN] = "($0 > 0.0f ? 1.0f : 0.0f) - ($0 < 0.0f ? 1.0f : 0.0f)",
    [PONS_MAP_FLOOR] = "floorf($0)", [PONS_MAP_ROUND] = "rintf($0)", [PONS_MAP_SQRT] = "sqrtf($0)",
    [PONS_MAP_EXP] = "expf($0)", [PONS_MAP_EXPM1] = "expm1f($0)", [PONS_MAP_LOG] = "logf($0)",
    [PONS_MAP_LOG1P] = "log1pf($0)", [PONS_MAP_SIN] = "sinf($0)", [PONS_MAP_COS] = "cosf($0)",
    [PONS_MAP_TANH] = "tanhf($0)", [PONS_MAP_ERF] = "erff($0)",
    [PONS_MAP_ISFINITE] = "(bits_of($0) & 0x7f800000u) != 0x7f800000u ? 1.0f : 0.0f",
    [PONS_MAP_STOP_GRADIENT] = "$0",
};

bool codegen_is_array(const codegen_map_plan *p, int value)
{
    const pons_value *v = &p->map->value[value];
    int last = p->map->axis_count - 1;

    if (p->map->channels > 0)
        return !v->per_point;
    if (p->width == 1)
        return false;
    if (v->operation == PONS_VALUE_LOAD)
        return p->map->load[v->operand].stride[last] != 0;
    if (v->operation == PONS_VALUE_CONSTANT)
        return false;
    for (int i = 0; i < v->argument_count; i++)
        if (codegen_is_array(p, v->argument[i]))
            return true;
    return v->argument_count == 0;
}

void codegen_address(const codegen_map_plan *p, const pons_operand *o, uint64_t axes, text *t)
{
    int last = p->map->axis_count - 1;

    text_add(t, "%lld", (long long)o->offset);
    if (p->ragged) {
        text_add(t, o->index == PONS_INDEX_ELEMENT ? " + element"
                    : o->index == PONS_INDEX_SEGMENT ? " + segment" : "");
        return;
    }
    for (int a = 0; a < p->axes && o->index == PONS_INDEX_SPACE; a++) {
        int64_t stride = o->stride[a];
        if (a == last && p->map->channels == 0)
            stride *= p->width;
        if ((axes >> a & 1) != 0 && stride != 0 && p->extent[a] > 1)
            text_add(t, stride == 1 ? " + i%d" : " + i%d * %lld", a, (long long)stride);
    }
}

/* Adjacent elements of an operand that one access can load or store: 8, 4, 2 or 1. */
static int piece_of(const codegen_map_plan *p, const pons_operand *o)
{
    int last = p->map->axis_count - 1;

    if (p->map->channels == 0)
        return o->stride[last] == 1 ? p->width : 1;
    if (o->stride[last] != 1)
        return 1;
    for (int piece = 8; piece > 1; piece /= 2) {
        bool whole = p->map->channels % piece == 0 && o->offset % piece == 0;
        for (int a = 0; a < last; a++)
            whole = whole && (o->stride[a] % piece == 0 || p->extent[a] == 1);
        if (whole)
            return piece;
    }
    return 1;
}

static void write_load(const codegen_map_plan *p, int value, text *t)
{
    const pons_value *v = &p->map->value[value];
    const pons_operand *o = &p->map->load[v->operand];
    const char *word = text_word(o->type);
    int piece, last = p->map->axis_count - 1;

    if (!codegen_is_array(p, value)) {
        text_add(t, "    const float v%d = number_%s(in%d[", value, word, o->tensor);
        codegen_address(p, o, UINT64_MAX, t);
        text_add(t, "]);\n");
        return;
    }
    piece = piece_of(p, o);
    text_add(t, "    float w%d[%d];\n", value, p->width);
    if (piece > 1)
        for (int k = 0; k < p->width; k += piece) {
            text_add(t, "    load%d_%s(in%d + ", piece, word, o->tensor);
            codegen_address(p, o, UINT64_MAX, t);
            text_add(t, " + %d, w%d + %d);\n", k, value, k);
        }
    else {
        text_add(t, "    EACH(k, %d)\n        w%d[k] = number_%s(in%d[", p->width, value, word,
                 o->tensor);
        codegen_address(p, o, UINT64_MAX, t);
        text_add(t, " + k * %lld]);\n", (long long)o->stride[last]);
    }
}

/* Write the name of an argument. */
static void write_argument(const codegen_map_plan *p, int value, text *t)
{
    bool array = codegen_is_array(p, value)
              && (p->map->channels > 0 || p->map->value[value].operation == PONS_VALUE_LOAD);

    text_add(t, array ? "w%d[k]" : "v%d", value);
}

static void write_formula(const codegen_map_plan *p, const pons_value *v, text *t)
{
    for (const char *c = formulas[v->operation]; *c != '\0'; c++)
        if (*c == '$')
            write_argument(p, v->argument[*++c - '0'], t);
        else
            text_add(t, "%c", *c);
}

/* Write the index of the element in the whole space. */
static void write_linear(const codegen_map_plan *p, bool wide, text *t)
{
    if (p->ragged)
        text_add(t, "(u64)element");
    else if (p->width == 1)
        text_add(t, "(u64)point");
    else
        text_add(t, wide ? "((u64)point * %d + k)" : "((u64)point * %d)", p->width);
}

static void write_expression(const codegen_map_plan *p, int value, text *t)
{
    const pons_value *v = &p->map->value[value];
    bool wide = codegen_is_array(p, value);

    if (v->operation < PONS_MAP_OPERATION_COUNT) {
        write_formula(p, v, t);
    } else if (v->operation == PONS_VALUE_CONSTANT) {
        text_number(t, v->number);
    } else if (v->operation == PONS_VALUE_IOTA) {
        text_add(t, "(float)(");
        write_linear(p, wide, t);
        text_add(t, " / %lldu %% %lldu)", (long long)v->divisor, (long long)v->modulus);
    } else {
        text_add(t, "random_%s(seed ^ 0x%016llxull, ",
                 v->operation == PONS_VALUE_UNIFORM ? "uniform" : "normal",
                 (unsigned long long)v->stream);
        write_linear(p, wide, t);
        text_add(t, ", step, micro_batch)");
    }
}

/* Write a reduction over all channels. */
static void write_channels(const codegen_map_plan *p, int value, text *t)
{
    const pons_value *v = &p->map->value[value];
    bool wide = codegen_is_array(p, v->argument[0]);
    bool argument = v->operation == PONS_VALUE_CHANNEL_ARG_MAX;
    bool sum = v->operation == PONS_VALUE_CHANNEL_SUM;
    int a = v->argument[0];

    if (!wide) {
        text_add(t, "    const float v%d = ", value);
        text_add(t, argument ? "0.0f" : sum ? "v%d * %d.0f" : "v%d", a, p->width);
        text_add(t, ";\n");
        return;
    }
    text_add(t, "    float v%d = w%d[0];\n", value, a);
    if (argument)
        text_add(t, "    float at%d = 0.0f;\n", value);
    text_add(t, "    EACH(k, %d)\n        ", p->width);
    if (sum)
        text_add(t, "v%d += k > 0 ? w%d[k] : 0.0f;\n", value, a);
    else if (!argument)
        text_add(t, "v%d = w%d[k] %s v%d || w%d[k] != w%d[k] ? w%d[k] : v%d;\n", value, a,
                 v->operation == PONS_VALUE_CHANNEL_MIN ? "<" : ">", value, a, a, a, value);
    else
        text_add(t, "if (w%d[k] > v%d) {\n            v%d = w%d[k];\n            at%d = (float)k;\n"
                 "        }\n    v%d = at%d;\n", a, value, value, a, value, value, value);
}

static bool is_over_channels(const pons_value *v)
{
    return v->operation >= PONS_VALUE_CHANNEL_SUM && v->operation < PONS_VALUE_COUNT;
}

/* True if the store has one element for each k. */
static bool collects(const codegen_map_plan *p, const pons_store *store)
{
    return p->map->channels > 0 ? codegen_is_array(p, store->value) : p->width > 1;
}

static void write_store(const codegen_map_plan *p, const pons_store *store, text *t)
{
    const pons_operand *o = &store->to;
    const char *word = text_word(o->type);
    int piece = piece_of(p, o), last = p->map->axis_count - 1;

    if (!collects(p, store)) {
        text_add(t, "    out%d[", o->tensor);
        codegen_address(p, o, UINT64_MAX, t);
        text_add(t, "] = stored_%s(", word);
        write_argument(p, store->value, t);
        text_add(t, ");\n");
        return;
    }
    for (int k = 0; piece > 1 && k < p->width; k += piece) {
        text_add(t, "    store%d_%s(out%d + ", piece, word, o->tensor);
        codegen_address(p, o, UINT64_MAX, t);
        text_add(t, " + %d, s%d + %d);\n", k, (int)(store - p->map->store), k);
    }
    if (piece > 1)
        return;
    text_add(t, "    EACH(k, %d)\n        out%d[", p->width, o->tensor);
    codegen_address(p, o, UINT64_MAX, t);
    text_add(t, " + k * %lld] = stored_%s(s%d[k]);\n", (long long)o->stride[last], word,
             (int)(store - p->map->store));
}

static bool pass_stores(const codegen_map_plan *p, const map_pass *pass, const pons_store *store)
{
    return pass->storing && (!p->ragged || store->to.index == pass->stores);
}

static bool pass_reduces(const codegen_map_plan *p, const map_pass *pass, const pons_reduction *r)
{
    return (!pass->storing || pass->stores == PONS_INDEX_ELEMENT)
        && codegen_kept(p, r) == pass->kept;
}

/* Write the collection of stored values in arrays s0, s1, ... */
static void write_collect(const codegen_map_plan *p, const map_pass *pass, text *t)
{
    for (int i = 0; i < p->map->store_count; i++)
        if (pass_stores(p, pass, &p->map->store[i]) && collects(p, &p->map->store[i])) {
            text_add(t, "        s%d[k] = ", i);
            write_argument(p, p->map->store[i].value, t);
            text_add(t, ";\n");
        }
}

static void write_arrays(const codegen_map_plan *p, const map_pass *pass, text *t)
{
    for (int i = 0; i < p->map->store_count; i++)
        if (pass_stores(p, pass, &p->map->store[i]) && collects(p, &p->map->store[i]))
            text_add(t, "    float s%d[%d];\n", i, p->width);
}

static void write_reductions(const codegen_map_plan *p, const map_pass *pass, bool wide, text *t)
{
    for (int i = 0; i < p->map->reduction_count; i++) {
        const pons_reduction *r = &p->map->reduction[i];
        if (pass_reduces(p, pass, r)
            && (p->map->channels == 0 ? wide : codegen_is_array(p, r->value) == wide))
            codegen_accumulate(p, r, i, t);
    }
}

/* Write the linear form: scalars, then a loop over k for arrays. */
static void write_linear_form(const codegen_map_plan *p, const map_pass *pass, text *t)
{
    const pons_map *m = p->map;

    for (int i = 0; i < m->value_count; i++) {
        if (!pass->needed[i])
            continue;
        if (m->value[i].operation == PONS_VALUE_LOAD) {
            write_load(p, i, t);
        } else if (!codegen_is_array(p, i)) {
            text_add(t, "    const float v%d = ", i);
            write_expression(p, i, t);
            text_add(t, ";\n");
        }
    }
    write_arrays(p, pass, t);
    if (p->width == 1) {
        write_reductions(p, pass, true, t);
        return;
    }
    text_add(t, "    EACH(k, %d) {\n", p->width);
    for (int i = 0; i < m->value_count; i++)
        if (pass->needed[i] && m->value[i].operation != PONS_VALUE_LOAD && codegen_is_array(p, i)) {
            text_add(t, "        const float v%d = ", i);
            write_expression(p, i, t);
            text_add(t, ";\n");
        }
    write_collect(p, pass, t);
    write_reductions(p, pass, true, t);
    text_add(t, "    }\n");
}

static void write_channel_form(const codegen_map_plan *p, const map_pass *pass, text *t)
{
    const pons_map *m = p->map;

    for (int i = 0; i < m->value_count; i++) {
        const pons_value *v = &m->value[i];
        if (!pass->needed[i])
            continue;
        if (v->operation == PONS_VALUE_LOAD) {
            write_load(p, i, t);
        } else if (is_over_channels(v)) {
            write_channels(p, i, t);
        } else {
            bool wide = codegen_is_array(p, i);
            text_add(t, wide ? "    float w%d[%d];\n    EACH(k, %d)\n        w%d[k] = "
                             : "    const float v%d = ", i, p->width, p->width, i);
            write_expression(p, i, t);
            text_add(t, ";\n");
        }
    }
    write_arrays(p, pass, t);
    text_add(t, "    EACH(k, %d) {\n", p->width);
    write_collect(p, pass, t);
    write_reductions(p, pass, true, t);
    text_add(t, "    }\n");
    write_reductions(p, pass, false, t);
}

void codegen_values(const codegen_map_plan *p, const map_pass *pass, text *t)
{
    if (p->map->channels > 0)
        write_channel_form(p, pass, t);
    else
        write_linear_form(p, pass, t);
    for (int i = 0; i < p->map->store_count; i++)
        if (pass_stores(p, pass, &p->map->store[i]))
            write_store(p, &p->map->store[i], t);
}
