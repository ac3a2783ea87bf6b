/*
 * pickle_names.c - the list of names, and the values that they make.
 */
#include "checkpoint/torch/pickle_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { COPIES_MAX = 128 << 20 };

typedef pons_status (*name_make)(pickle_maker *m, const torch_value *arguments,
                                 torch_value **out, pons_error *err);

struct pickle_name {
    const char *module, *name;
    name_make make;         /* NULL: it only names something                                      */
};

/* ---- values ---------------------------------------------------------------------------------- */

torch_value *pickle_value_new(arena *a, torch_kind kind)
{
    torch_value *v = arena_alloc(a, sizeof *v);

    v->kind = kind;
    v->depth = 1;
    v->total = 1;
    return v;
}

torch_value *pickle_value_bytes(arena *a, torch_kind kind, const void *bytes, size_t size)
{
    torch_value *v = pickle_value_new(a, kind);
    char *copy = arena_alloc(a, size + 1);

    memcpy(copy, bytes, size);
    v->text.bytes = copy;
    v->text.size = size;
    v->text.has_nul = memchr(copy, '\0', size) != NULL;
    return v;
}

bool pickle_value_append(arena *a, torch_value *list, torch_value *item)
{
    if (list->held || item == list || item->depth >= TORCH_DEPTH_MAX
        || item->total > TORCH_VALUES_MAX - list->total)
        return false;
    if (list->list.count == list->list.room) {
        int more = max_int(4, 2 * list->list.room);
        size_t size = sizeof(torch_value *);
        list->list.item = arena_grow(a, list->list.item, (size_t)list->list.count * size,
                                     (size_t)more * size);
        list->list.room = more;
    }
    item->held = true;
    list->list.item[list->list.count++] = item;
    list->depth = max_int(list->depth, item->depth + 1);
    list->total += item->total;
    return true;
}

static const torch_value *argument(const torch_value *arguments, int index)
{
    return index < arguments->list.count ? arguments->list.item[index] : NULL;
}

static pons_status refuse_arguments(pickle_maker *m, const char *name, pons_error *err)
{
    return pons_fail(err, PONS_DATA, "'%s': arguments of %s are damaged", m->where, name);
}

/* Count the bytes of a copy; a bomb fails. */
static pons_status charge(pickle_maker *m, size_t size, pons_error *err)
{
    m->spent += size;
    if (m->spent > COPIES_MAX)
        return pons_fail(err, PONS_DATA, "'%s': the pickle makes more values than a checkpoint has",
                         m->where);
    return PONS_OK;
}

/* ---- containers, texts ----------------------------------------------------------------------- */

/* OrderedDict() or OrderedDict([(key, value), ...]). */
static pons_status make_dictionary(pickle_maker *m, const torch_value *arguments,
                                   torch_value **out, pons_error *err)
{
    const torch_value *pairs = argument(arguments, 0);
    torch_value *v = pickle_value_new(m->memory, TORCH_DICTIONARY);

    if (charge(m, (size_t)torch_value_count(pairs) * 4 * sizeof pairs, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < torch_value_count(pairs); i++) {
        const torch_value *pair = torch_value_item(pairs, i);
        if (pairs->kind != TORCH_LIST || torch_value_count(pair) != 2
            || pair->kind == TORCH_DICTIONARY
            || !pickle_value_append(m->memory, v, pair->list.item[0])
            || !pickle_value_append(m->memory, v, pair->list.item[1]))
            return refuse_arguments(m, "collections.OrderedDict", err);
    }
    *out = v;
    return PONS_OK;
}

static pons_status make_set(pickle_maker *m, const torch_value *arguments, torch_value **out,
                            pons_error *err)
{
    const torch_value *items = argument(arguments, 0);
    torch_value *v = pickle_value_new(m->memory, TORCH_SET);

    if (charge(m, (size_t)torch_value_count(items) * 2 * sizeof items, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < torch_value_count(items); i++)
        if (items->kind != TORCH_LIST || !pickle_value_append(m->memory, v, items->list.item[i]))
            return refuse_arguments(m, "set", err);
    *out = v;
    return PONS_OK;
}

/* A value that the arguments hold as it is: torch.Size((2, 3)), Parameter(tensor, True). */
static pons_status make_first(pickle_maker *m, const torch_value *arguments,
                              torch_value **out, pons_error *err)
{
    if (arguments->list.count == 0)
        return refuse_arguments(m, "a parameter or size", err);
    *out = arguments->list.item[0];
    return PONS_OK;
}

static pons_status make_bytes(pickle_maker *m, const torch_value *arguments,
                              torch_value **out, pons_error *err)
{
    const torch_value *from = argument(arguments, 0);

    if (from != NULL && from->kind != TORCH_BYTES)
        return refuse_arguments(m, "bytes", err);
    *out = from != NULL ? arguments->list.item[0] : pickle_value_bytes(m->memory, TORCH_BYTES, "",
                                                                        0);
    return PONS_OK;
}

/* "cpu" or "cuda:1" of ("cuda", 1). */
static pons_status make_device(pickle_maker *m, const torch_value *arguments,
                               torch_value **out, pons_error *err)
{
    const char *kind = torch_value_text(argument(arguments, 0));
    const torch_value *index = argument(arguments, 1);
    const char *text = kind;

    if (kind == NULL || (index != NULL && index->kind != TORCH_INTEGER))
        return refuse_arguments(m, "torch.device", err);
    if (charge(m, strlen(kind), err) != PONS_OK)
        return err->status;
    if (index != NULL)
        text = arena_format(m->memory, "%s:%" PRId64, kind, index->integer);
    *out = pickle_value_bytes(m->memory, TORCH_TEXT, text, strlen(text));
    return PONS_OK;
}

/* Bytes as the text of their latin-1 characters, which is UTF-8 here. */
static pons_status make_encoded(pickle_maker *m, const torch_value *arguments,
                                torch_value **out, pons_error *err)
{
    const torch_value *from = argument(arguments, 0);
    const char *code = torch_value_text(argument(arguments, 1));
    torch_value *v;
    char *to;

    if (from == NULL || from->kind != TORCH_TEXT || code == NULL || strcmp(code, "latin1") != 0)
        return refuse_arguments(m, "_codecs.encode", err);
    if (charge(m, from->text.size, err) != PONS_OK)
        return err->status;
    v = pickle_value_bytes(m->memory, TORCH_BYTES, from->text.bytes, from->text.size);
    to = (char *)v->text.bytes; /* of this arena */
    for (size_t i = 0, n = 0; i < from->text.size; i++, v->text.size = ++n) {
        unsigned char c = (unsigned char)from->text.bytes[i];
        if (c >= 0x80 && (c < 0xc2 || c > 0xc3 || i + 1 == from->text.size))
            return refuse_arguments(m, "_codecs.encode", err);
        if (c >= 0x80)
            c = (unsigned char)(c << 6 | ((unsigned char)from->text.bytes[++i] & 0x3f));
        to[n] = (char)c;
    }
    *out = v;
    return PONS_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Extents and strides; false where they are no small lists of numbers >= 0. */
static bool read_axes(const torch_value *v, int *rank, int64_t out[SAFETENSORS_RANK_MAX])
{
    *rank = torch_value_count(v);
    if (v == NULL || v->kind != TORCH_TUPLE || *rank > SAFETENSORS_RANK_MAX)
        return false;
    for (int i = 0; i < *rank; i++) {
        if (v->list.item[i]->kind != TORCH_INTEGER || v->list.item[i]->integer < 0)
            return false;
        out[i] = v->list.item[i]->integer;
    }
    return true;
}

/* Whether no two elements lie at one place: each axis steps over all that smaller steps reach. */
static bool axes_are_apart(const torch_tensor *t)
{
    bool used[SAFETENSORS_RANK_MAX] = { false };
    int64_t reach = 0;

    for (int n = 0; n < t->rank; n++) {
        int next = -1;
        for (int i = 0; i < t->rank; i++)
            if (!used[i] && t->extent[i] > 1 && (next < 0 || t->stride[i] < t->stride[next]))
                next = i;
        if (next < 0)
            break;
        if (t->stride[next] <= reach)
            return false;
        reach += (t->extent[next] - 1) * t->stride[next];
        used[next] = true;
    }
    return true;
}

/* Whether every element lies in the storage. Sets t->count and t->overlaps. */
static bool axes_fit(torch_tensor *t)
{
    int64_t room = (int64_t)(t->storage->size / t->type->size), last = t->offset;

    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->extent[i] == 0)
            t->count = 0;
    if (t->count == 0)
        return true;
    for (int i = 0; i < t->rank; i++) {
        int64_t reach;
        if (__builtin_mul_overflow(t->extent[i] - 1, t->stride[i], &reach)
            || __builtin_add_overflow(last, reach, &last)
            || __builtin_mul_overflow(t->count, t->extent[i], &t->count))
            return false;
    }
    t->overlaps = !axes_are_apart(t);
    return last < room;
}

/* (storage, offset, extents, strides, ...) with elements of 'type'; NULL: of the storage's. */
static pons_status make_view(pickle_maker *m, const torch_value *arguments,
                             const torch_type *type, torch_value **out, pons_error *err)
{
    const torch_value *storage = argument(arguments, 0), *offset = argument(arguments, 1);
    torch_tensor *t = arena_alloc(m->memory, sizeof *t);
    int strides;

    if (storage == NULL || storage->kind != TORCH_OTHER
        || strcmp(storage->other.name, "storage") != 0 || offset == NULL
        || offset->kind != TORCH_INTEGER || offset->integer < 0
        || !read_axes(argument(arguments, 2), &t->rank, t->extent)
        || !read_axes(argument(arguments, 3), &strides, t->stride) || strides != t->rank)
        return refuse_arguments(m, "a tensor", err);
    t->storage = (torch_storage *)storage->other.about;
    t->type = type != NULL ? type : t->storage->type;
    t->offset = offset->integer;
    if (!axes_fit(t))
        return pons_fail(err, PONS_DATA, "'%s': a tensor goes beyond its storage '%.40s' of "
                         "%" PRId64 " elements", m->where, t->storage->key, t->storage->count);
    *out = pickle_value_new(m->memory, TORCH_TENSOR);
    (*out)->tensor = t;
    return PONS_OK;
}

static pons_status make_tensor(pickle_maker *m, const torch_value *arguments,
                               torch_value **out, pons_error *err)
{
    return make_view(m, arguments, NULL, out, err);
}

/* The same with a type behind requires_grad and hooks. */
static pons_status make_typed_tensor(pickle_maker *m, const torch_value *arguments,
                                     torch_value **out, pons_error *err)
{
    const torch_type *type = pickle_names_type(argument(arguments, 6));

    if (type == NULL)
        return refuse_arguments(m, "a tensor", err);
    return make_view(m, arguments, type, out, err);
}

/* ---- NumPy ----------------------------------------------------------------------------------- */

/* "f8" */
static const struct { const char *numpy, *torch; } numpy_types[] = {
    { "f8", "float64" }, { "f4", "float32" }, { "f2", "float16" }, { "i8", "int64" },
    { "i4", "int32" }, { "i2", "int16" }, { "i1", "int8" }, { "u8", "uint64" }, { "u4", "uint32" },
    { "u2", "uint16" }, { "u1", "uint8" }, { "b1", "bool" }
};

static const char numpy_type_name[] = "numpy.dtype", array_name[] = "numpy.ndarray";

static pons_status make_numpy_type(pickle_maker *m, const torch_value *arguments,
                                   torch_value **out, pons_error *err)
{
    const char *code = torch_value_text(argument(arguments, 0));

    if (code == NULL)
        return refuse_arguments(m, numpy_type_name, err);
    for (size_t i = 0; i < sizeof numpy_types / sizeof numpy_types[0]; i++) {
        if (strcmp(numpy_types[i].numpy, code) != 0)
            continue;
        *out = pickle_value_new(m->memory, TORCH_OTHER);
        (*out)->other.name = numpy_type_name;
        (*out)->other.about = torch_type_find(numpy_types[i].torch);
        return PONS_OK;
    }
    return pons_fail(err, PONS_DATA, "'%s': it has a NumPy array of type '%.20s', expected numbers",
                     m->where, code);
}

static const torch_type *numpy_type(const torch_value *v)
{
    return v != NULL && v->kind == TORCH_OTHER && v->other.name == numpy_type_name ? v->other.about
                                                                                  : NULL;
}

/* A tensor in C order whose elements are the text of 'bytes'. False: their number is wrong. */
static bool fill_array(arena *a, torch_value *v, const torch_type *type, const torch_value *bytes)
{
    torch_tensor *t = v->tensor;
    torch_storage *s = arena_alloc(a, sizeof *s);
    int64_t step = 1;

    *s = (torch_storage){ .key = "array", .type = type, .size = bytes->text.size,
                          .count = (int64_t)(bytes->text.size / type->size),
                          .bytes = (const unsigned char *)bytes->text.bytes };
    t->type = type;
    t->storage = s;
    for (int i = t->rank - 1; i >= 0; i--) {
        t->stride[i] = step;
        if (__builtin_mul_overflow(step, max_i64(t->extent[i], 1), &step))
            return false;
    }
    return axes_fit(t) && t->count == s->count && s->size % type->size == 0;
}

static torch_value *array_new(arena *a)
{
    torch_value *v = pickle_value_new(a, TORCH_TENSOR);

    v->tensor = arena_alloc(a, sizeof *v->tensor);
    return v;
}

/* scalar(type, bytes) */
static pons_status make_scalar(pickle_maker *m, const torch_value *arguments,
                               torch_value **out, pons_error *err)
{
    const torch_type *type = numpy_type(argument(arguments, 0));
    const torch_value *bytes = argument(arguments, 1);
    torch_value *v = array_new(m->memory);

    if (type == NULL || bytes == NULL || bytes->kind != TORCH_BYTES
        || !fill_array(m->memory, v, type, bytes))
        return refuse_arguments(m, "a NumPy scalar", err);
    *out = v;
    return PONS_OK;
}

/* _reconstruct(ndarray, (0,), b'b') is an array without elements; its state follows. */
static pons_status make_array(pickle_maker *m, const torch_value *arguments,
                              torch_value **out, pons_error *err)
{
    const torch_value *type = argument(arguments, 0);
    const torch_value *none = pickle_value_bytes(m->memory, TORCH_BYTES, "", 0);

    if (type == NULL || type->kind != TORCH_OTHER || strcmp(type->other.name, array_name) != 0)
        return refuse_arguments(m, "a NumPy array", err);
    *out = array_new(m->memory);
    (*out)->tensor->rank = 1;
    fill_array(m->memory, *out, torch_type_find("uint8"), none);
    (*out)->tensor->storage->key = array_name; /* its state is missing */
    return PONS_OK;
}

/* (version, extents, type, whether in Fortran's order, bytes) */
static pons_status build_array(pickle_maker *m, torch_value *v, const torch_value *state,
                               pons_error *err)
{
    const torch_value *order = argument(state, 3), *bytes = argument(state, 4);
    const torch_type *type = numpy_type(argument(state, 2));

    if (type == NULL || order == NULL || order->kind != TORCH_FLAG || bytes == NULL
        || bytes->kind != TORCH_BYTES
        || !read_axes(argument(state, 1), &v->tensor->rank, v->tensor->extent)
        || !fill_array(m->memory, v, type, bytes))
        return refuse_arguments(m, "a NumPy array", err);
    for (int64_t i = 0, step = 1; order->flag && i < v->tensor->rank; i++) {
        v->tensor->stride[i] = step;
        step *= v->tensor->extent[i];
    }
    return PONS_OK;
}

/* (3, "<", ...): the order of bytes must be little endian. */
static pons_status build_numpy_type(pickle_maker *m, const torch_value *state,
                                    pons_error *err)
{
    const char *order = torch_value_text(argument(state, 1));

    if (order == NULL || strchr("<|=", order[0]) == NULL || order[0] == '\0')
        return pons_fail(err, PONS_DATA, "'%s': a NumPy array is not little endian", m->where);
    return PONS_OK;
}

pons_status pickle_names_build(pickle_maker *m, torch_value *v, const torch_value *state,
                               pons_error *err)
{
    if (v->kind == TORCH_DICTIONARY) /* attributes such as _metadata */
        return PONS_OK;
    if (state->kind == TORCH_TUPLE && v->kind == TORCH_TENSOR
        && v->tensor->storage->key == array_name)
        return build_array(m, v, state, err);
    if (state->kind == TORCH_TUPLE && numpy_type(v) != NULL)
        return build_numpy_type(m, state, err);
    return pons_fail(err, PONS_DATA, "'%s': the pickle has a state for %s", m->where,
                     torch_kind_name(v->kind));
}

/* ---- the list -------------------------------------------------------------------------------- */

static const pickle_name names[] = {
    { "collections", "OrderedDict", make_dictionary },
    { "builtins", "set", make_set },
    { "__builtin__", "set", make_set },
    { "builtins", "frozenset", make_set },
    { "__builtin__", "frozenset", make_set },
    { "builtins", "bytes", make_bytes },
    { "__builtin__", "bytes", make_bytes },
    { "builtins", "bytearray", make_bytes },
    { "__builtin__", "bytearray", make_bytes },
    { "_codecs", "encode", make_encoded },
    { "torch", "Size", make_first },
    { "torch", "device", make_device },
    { "torch.nn.parameter", "Parameter", make_first },
    { "torch.serialization", "_get_layout", make_first },
    { "torch._utils", "_rebuild_parameter", make_first },
    { "torch._utils", "_rebuild_parameter_with_state", make_first },
    { "torch._utils", "_rebuild_tensor", make_tensor },
    { "torch._utils", "_rebuild_tensor_v2", make_tensor },
    { "torch._utils", "_rebuild_tensor_v3", make_typed_tensor },
    { "numpy", "dtype", make_numpy_type },
    { "numpy", "ndarray", NULL },
    { "numpy.core.multiarray", "scalar", make_scalar },
    { "numpy._core.multiarray", "scalar", make_scalar },
    { "numpy.core.multiarray", "_reconstruct", make_array },
    { "numpy._core.multiarray", "_reconstruct", make_array },
};

static const pickle_name a_type = { .name = "type" };

static pons_status name_value(pickle_maker *m, const char *module, const char *name,
                              const void *about, torch_value **out)
{
    *out = pickle_value_new(m->memory, TORCH_OTHER);
    (*out)->other.name = arena_format(m->memory, "%s.%s", module, name);
    (*out)->other.about = about;
    return PONS_OK;
}

pons_status pickle_names_find(pickle_maker *m, const char *module, const char *name,
                              torch_value **out, pons_error *err)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].module, module) == 0 && strcmp(names[i].name, name) == 0)
            return name_value(m, module, name, &names[i], out);
    if ((strcmp(module, "torch") == 0 || strcmp(module, "torch.storage") == 0)
        && torch_type_find(name) != NULL)
        return name_value(m, module, name, &a_type, out);
    return pons_fail(err, PONS_DATA, "'%s': it names '%.200s.%.200s', which is no part of a state "
                     "dictionary; nothing of the file was run\nhint: torch.save(net.state_dict(), "
                     "FILE) writes one", m->where, module, name);
}

pons_status pickle_names_make(pickle_maker *m, const torch_value *name,
                              const torch_value *arguments, torch_value **out, pons_error *err)
{
    const pickle_name *row = NULL;

    if (name->kind == TORCH_OTHER && strchr(name->other.name, '.') != NULL
        && name->other.name != numpy_type_name)
        row = name->other.about;
    if (row == NULL || row->make == NULL)
        return pons_fail(err, PONS_DATA, "'%s': the pickle uses %s as a function", m->where,
                         name->kind == TORCH_OTHER ? name->other.name
                                                   : torch_kind_name(name->kind));
    return row->make(m, arguments, out, err);
}

const torch_type *pickle_names_type(const torch_value *v)
{
    if (v == NULL || v->kind != TORCH_OTHER || v->other.about != &a_type)
        return NULL;
    return torch_type_find(strrchr(v->other.name, '.') + 1);
}
