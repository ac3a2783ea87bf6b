/*
 * torch_value.c - look-up in values, and the elements of a tensor in C order.
 */
#include "checkpoint/torch/torch_value.h"

#include <math.h>
#include <string.h>

static const torch_type types[] = {
    { "FloatStorage", "float32", SAFETENSORS_F32, 4 },
    { "DoubleStorage", "float64", SAFETENSORS_F64, 8 },
    { "HalfStorage", "float16", SAFETENSORS_F16, 2 },
    { "BFloat16Storage", "bfloat16", SAFETENSORS_BF16, 2 },
    { "LongStorage", "int64", SAFETENSORS_I64, 8 },
    { "IntStorage", "int32", SAFETENSORS_I32, 4 },
    { "ShortStorage", "int16", SAFETENSORS_I16, 2 },
    { "CharStorage", "int8", SAFETENSORS_I8, 1 },
    { "ByteStorage", "uint8", SAFETENSORS_U8, 1 },
    { "BoolStorage", "bool", SAFETENSORS_BOOL, 1 },
    { "ComplexFloatStorage", "complex64", 0, 8 },
    { "ComplexDoubleStorage", "complex128", 0, 16 },
    { NULL, "uint16", SAFETENSORS_U16, 2 },
    { NULL, "uint32", SAFETENSORS_U32, 4 },
    { NULL, "uint64", SAFETENSORS_U64, 8 },
    { NULL, "float8_e4m3fn", 0, 1 },
    { NULL, "float8_e5m2", 0, 1 },
    { NULL, "float8_e4m3fnuz", 0, 1 },
    { NULL, "float8_e5m2fnuz", 0, 1 },
    { "UntypedStorage", NULL, SAFETENSORS_U8, 1 },
};

const torch_type *torch_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const torch_type *t = &types[i];
        if ((t->storage != NULL && strcmp(t->storage, name) == 0)
            || (t->name != NULL && strcmp(t->name, name) == 0))
            return t;
    }
    return NULL;
}

const char *torch_kind_name(torch_kind kind)
{
    static const char *const names[] = {
        [TORCH_NONE] = "none", [TORCH_FLAG] = "a truth value", [TORCH_INTEGER] = "an integer",
        [TORCH_REAL] = "a number", [TORCH_TEXT] = "a text", [TORCH_BYTES] = "bytes",
        [TORCH_LIST] = "a list", [TORCH_TUPLE] = "a tuple", [TORCH_SET] = "a set",
        [TORCH_DICTIONARY] = "a dictionary", [TORCH_TENSOR] = "a tensor", [TORCH_OTHER] = "a type"
    };
    return names[kind];
}

const char *torch_value_text(const torch_value *v)
{
    return v != NULL && v->kind == TORCH_TEXT && !v->text.has_nul ? v->text.bytes : NULL;
}

const torch_value *torch_value_find(const torch_value *v, const char *key)
{
    for (int i = torch_value_count(v) - 1; i >= 0; i--) {
        const char *name = torch_value_text(torch_value_key(v, i));
        if (name != NULL && strcmp(name, key) == 0)
            return torch_value_item(v, i);
    }
    return NULL;
}

int torch_value_count(const torch_value *v)
{
    if (v == NULL || v->kind < TORCH_LIST || v->kind > TORCH_DICTIONARY)
        return 0;
    return v->kind == TORCH_DICTIONARY ? v->list.count / 2 : v->list.count;
}

const torch_value *torch_value_item(const torch_value *v, int index)
{
    return v->kind == TORCH_DICTIONARY ? v->list.item[2 * index + 1] : v->list.item[index];
}

const torch_value *torch_value_key(const torch_value *v, int index)
{
    return v->kind == TORCH_DICTIONARY ? v->list.item[2 * index] : NULL;
}

static bool only_element(const torch_tensor *t, double *out)
{
    safetensor one = { .type = t->type->type, .count = 1 };

    if (t->count != 1 || one.type == 0)
        return false;
    one.data = t->storage->bytes + (size_t)t->offset * t->type->size;
    safetensor_doubles(&one, out);
    return true;
}

bool torch_value_real(const torch_value *v, double *out)
{
    if (v == NULL)
        return false;
    if (v->kind == TORCH_TENSOR)
        return only_element(v->tensor, out);
    if (v->kind == TORCH_FLAG)
        *out = v->flag;
    else if (v->kind == TORCH_INTEGER)
        *out = (double)v->integer;
    else if (v->kind == TORCH_REAL)
        *out = v->real;
    else
        return false;
    return true;
}

bool torch_value_integer(const torch_value *v, int64_t *out)
{
    double value;

    if (v != NULL && v->kind == TORCH_INTEGER) {
        *out = v->integer;
        return true;
    }
    if (!torch_value_real(v, &value) || floor(value) != value || fabs(value) > 9007199254740992.0)
        return false;
    *out = (int64_t)value;
    return true;
}

/* ---- tensors --------------------------------------------------------------------------------- */

bool torch_tensor_is_contiguous(const torch_tensor *t)
{
    int64_t step = 1;

    if (t->count == 0)
        return true;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->extent[i] != 1 && t->stride[i] != step)
            return false;
        step *= t->extent[i];
    }
    return true;
}

/* Advance the index of an element in C order, and its place in the storage. */
static int64_t next_place(const torch_tensor *t, int64_t index[], int64_t place)
{
    for (int i = t->rank - 1; i >= 0; i--) {
        place += t->stride[i];
        if (++index[i] < t->extent[i])
            return place;
        place -= t->extent[i] * t->stride[i];
        index[i] = 0;
    }
    return place;
}

const void *torch_tensor_elements(const torch_tensor *t, void *buffer)
{
    const unsigned char *from = t->storage->bytes;
    size_t size = t->type->size;
    int64_t index[SAFETENSORS_RANK_MAX] = { 0 }, place = t->offset;
    char *to = buffer;

    if (t->count == 0)
        return buffer;
    if (torch_tensor_is_contiguous(t))
        return from + (size_t)t->offset * size;
    for (int64_t i = 0; i < t->count; i++, to += size) {
        memcpy(to, from + (size_t)place * size, size);
        place = next_place(t, index, place);
    }
    return buffer;
}
