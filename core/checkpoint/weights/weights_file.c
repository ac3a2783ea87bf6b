/*
 * weights_file.c - find the state dictionary of a PyTorch file, and show it as a safetensors file.
 */
#include "checkpoint/weights/weights_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/hash/name_index.h"
#include "base/integer.h"
#include "base/text/text.h"

#define WRAPPED "module."
#define COMPILED "_orig_mod."

enum { HEAD_SIZE = 512, KEYS_SIZE = 200 };

/* Names under which programs save a state dictionary, in the order of their look-up. */
static const char *const customary[] = {
    "network_weights", "state_dict", "model_state_dict", "model_state", "model", "network",
    "net", "weights", "params"
};

/* ---- the state dictionary -------------------------------------------------------------------- */

static bool is_weight(const torch_value *v)
{
    return v->kind == TORCH_TENSOR && v->tensor->rank > 0;
}

static bool has_weights(const torch_value *v)
{
    for (int i = 0; v->kind == TORCH_DICTIONARY && i < torch_value_count(v); i++)
        if (is_weight(torch_value_item(v, i)) && torch_value_text(torch_value_key(v, i)) != NULL)
            return true;
    return false;
}

/* The state dictionary in v, or in what it holds under a customary name; NULL: there is none. */
static const torch_value *find_state(const torch_value *v, int depth)
{
    for (size_t i = 0; depth < 3 && i < sizeof customary / sizeof customary[0]; i++) {
        const torch_value *inner = torch_value_find(v, customary[i]), *found;
        if (inner != NULL && (found = find_state(inner, depth + 1)) != NULL)
            return found;
    }
    return has_weights(v) ? v : NULL;
}

static pons_status refuse_absent(const torch_value *root, const char *where, pons_error *err)
{
    char keys[KEYS_SIZE] = "";
    size_t used = 0;

    for (int i = 0; i < torch_value_count(root) && used < sizeof keys; i++) {
        const torch_value *key = torch_value_key(root, i);
        const char *text = torch_value_text(key);
        if (text != NULL)
            used += (size_t)snprintf(keys + used, sizeof keys - used, "%s'%.40s'",
                                     used > 0 ? ", " : "", text);
    }
    return pons_fail(err, PONS_DATA, "'%s': it has no state dictionary of tensors; it is %s%s%s",
                     where, torch_kind_name(root->kind), keys[0] != '\0' ? " of " : "", keys);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Whether all names of tensors begin with 'module.'. */
static bool are_wrapped(const torch_value *state)
{
    for (int i = 0; i < torch_value_count(state); i++) {
        const char *name = torch_value_text(torch_value_key(state, i));
        if (name != NULL && torch_value_item(state, i)->kind == TORCH_TENSOR
            && strncmp(name, WRAPPED, strlen(WRAPPED)) != 0)
            return false;
    }
    return true;
}

/* The name without the marks of wrappers. */
static const char *clean_name(arena *a, const char *name, bool wrapped)
{
    char *copy = arena_string(a, name), *mark;

    while ((mark = strstr(copy, COMPILED)) != NULL && (mark == copy || mark[-1] == '.'))
        memmove(mark, mark + strlen(COMPILED), strlen(mark + strlen(COMPILED)) + 1);
    if (wrapped && strncmp(copy, WRAPPED, strlen(WRAPPED)) == 0)
        copy += strlen(WRAPPED);
    return copy;
}

/* ---- nnU-Net ------------------------------------------------------------------------------- */

/* A name of a module that has another name in the same file. */
static bool is_copy(const char *name)
{
    return strncmp(name, "decoder.encoder.", 16) == 0 || strstr(name, ".all_modules.") != NULL;
}

static bool has_volumes(const torch_value *state)
{
    for (int i = 0; i < torch_value_count(state); i++) {
        const torch_value *v = torch_value_item(state, i);
        if (v->kind == TORCH_TENSOR && v->tensor->rank == 5)
            return true;
    }
    return false;
}

/*
 * The order of kernels by the plans in a checkpoint. Plan axis 'backward[2 - d]' is axis d of a
 * file; a 2D plan lacks plan axis 0. PONS_DATA: the plans hold no permutation.
 */
static pons_status read_order(weights_file *w, const torch_value *state, const char *where,
                              pons_error *err)
{
    const torch_value *plans = torch_value_find(torch_value_find(torch_file_root(w->torch),
                                                                 "init_args"), "plans");
    const torch_value *backward = torch_value_find(plans, "transpose_backward");
    bool flat = !has_volumes(state);
    int count = 0, seen = 0, order[3] = { 0, 0, 0 };

    if (plans == NULL || torch_value_find(torch_file_root(w->torch), "network_weights") == NULL)
        return PONS_OK;
    count = flat;
    for (int d = 0; d < 3 && torch_value_count(backward) == 3; d++) {
        int64_t axis;
        if (!torch_value_integer(torch_value_item(backward, 2 - d), &axis) || axis < 0 || axis > 2)
            break;
        seen |= 1 << axis;
        if (!flat || axis != 0)
            order[count++ % 3] = (int)axis;
    }
    if (seen != 7)
        return pons_fail(err, PONS_DATA, "'%s': 'transpose_backward' of its plans is no "
                         "permutation of 0, 1 and 2", where);
    memcpy(w->order, order, sizeof w->order);
    w->ordered = true;
    return PONS_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static pons_status fill_item(const weights_file *w, const torch_tensor *t, const char *where,
                             safetensor *out, pons_error *err)
{
    void *buffer = NULL;

    if (t->type->type == 0)
        return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has type %s, which is not "
                         "supported", where, out->name, t->type->name);
    out->type = t->type->type;
    out->rank = t->rank;
    memcpy(out->extent, t->extent, sizeof out->extent);
    out->count = t->count;
    out->size = (size_t)t->count * t->type->size;
    if (!torch_tensor_is_contiguous(t) || t->count == 0)
        buffer = arena_alloc(w->memory, out->size + 1);
    if (torch_file_elements(w->torch, t, buffer, &out->data, err) == PONS_OK)
        torch_file_release(w->torch, t->storage->bytes, t->storage->size);
    return err->status;
}

static bool are_same(const torch_tensor *a, const torch_tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->rank == b->rank
           && a->type == b->type && memcmp(a->extent, b->extent, sizeof a->extent) == 0
           && memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

/* The earlier item that is the same tensor in another order than C's; NULL: none. */
static const safetensor *find_gathered(const torch_value *const *from, const safetensor *item,
                                       int count, const torch_tensor *t)
{
    for (int i = 0; i < count && !torch_tensor_is_contiguous(t); i++)
        if (are_same(from[i]->tensor, t))
            return &item[i];
    return NULL;
}

static pons_status collect(weights_file *w, const torch_value *state, const char *where,
                           pons_error *err)
{
    const size_t room = (size_t)torch_value_count(state) + 1;
    safetensor *item = arena_alloc(w->memory, room * sizeof *item);
    const torch_value **from = arena_alloc(w->memory, room * sizeof *from);
    bool wrapped = are_wrapped(state);
    int count = 0;

    for (int i = 0; i < torch_value_count(state); i++) {
        const torch_value *v = torch_value_item(state, i);
        const char *name = torch_value_text(torch_value_key(state, i));
        const safetensor *same;
        if (name == NULL || v->kind != TORCH_TENSOR || (w->ordered && is_copy(name)))
            continue;
        from[count] = v;
        same = find_gathered(from, item, count, v->tensor);
        if (same != NULL)
            item[count] = *same;
        item[count].name = clean_name(w->memory, name, wrapped);
        if (same == NULL && fill_item(w, v->tensor, where, &item[count], err) != PONS_OK)
            return err->status;
        count++;
    }
    return safetensors_of_items(count, item, where, &w->tensors, err);
}

pons_status weights_file_of_torch(torch_file *torch, const torch_value *weights, const char *where,
                                  weights_file *out, pons_error *err)
{
    weights_file w = { .torch = torch, .memory = arena_new() };
    const torch_value *state = weights;

    if (state == NULL)
        state = find_state(torch_file_root(torch), 0);
    if (w.memory == NULL)
        pons_fail(err, PONS_DEVICE, "'%s': out of memory", where);
    else if (state == NULL)
        refuse_absent(torch_file_root(torch), where, err);
    else if (read_order(&w, state, where, err) == PONS_OK)
        collect(&w, state, where, err);
    if (err->status != PONS_OK)
        weights_file_close(&w);
    else
        *out = w;
    return err->status;
}

/* Whether the file has the first bytes of a PyTorch file. NumPy's archives are refused by name. */
static bool is_torch(const char *path)
{
    FILE *f = file_open_reader(path);
    char head[HEAD_SIZE];
    size_t size = f != NULL ? fread(head, 1, sizeof head, f) : 0;

    if (f != NULL)
        fclose(f);
    return torch_file_is(head, size) && memmem(head, size, ".npy", 4) == NULL;
}

pons_status weights_file_open(const char *path, weights_file *out, pons_error *err)
{
    torch_file *torch = NULL;

    *out = (weights_file){ .tensors = NULL };
    if (!is_torch(path))
        return safetensors_open(path, &out->tensors, err);
    if (torch_file_open(path, &torch, err) != PONS_OK)
        return err->status;
    return weights_file_of_torch(torch, NULL, path, out, err);
}

void weights_file_close(weights_file *w)
{
    safetensors_close(w->tensors);
    torch_file_close(w->torch);
    arena_free(w->memory);
    *w = (weights_file){ .tensors = NULL };
}

pons_status weights_file_read(storage *s, unsigned groups, const char *path,
                              const tensor_format *format, pons_error *err)
{
    tensor_format ordered = *format;
    weights_file file;

    if (weights_file_open(path, &file, err) != PONS_OK)
        return err->status;
    if (file.ordered)
        ordered.order = file.order;
    tensor_names_read(s, groups, file.tensors, path, &ordered, err);
    weights_file_close(&file);
    return err->status;
}

void weights_file_release(const weights_file *w, const safetensor *t)
{
    if (w->torch != NULL)
        torch_file_release(w->torch, t->data, t->size);
}
