/*
 * pickle_names.h - the names that a pickle of tensors may hold, and the plain values that they
 * stand for. Nothing else may be named.
 */
#ifndef CORE_CHECKPOINT_TORCH_PICKLE_NAMES_H
#define CORE_CHECKPOINT_TORCH_PICKLE_NAMES_H

#include "base/arena.h"
#include "checkpoint/torch/torch_value.h"

typedef struct pickle_name pickle_name;

/* The arena of new values, and the file in messages. */
typedef struct pickle_maker {
    arena *memory;
    const char *where;
    size_t spent;           /* bytes of copies, which short instructions could repeat endlessly   */
} pickle_maker;

/* A value that names 'module.name'. PONS_DATA: the list has no such name. */
pons_status pickle_names_find(pickle_maker *m, const char *module, const char *name,
                              torch_value **out, pons_error *err);
/* The value of such a name with a tuple of arguments. */
pons_status pickle_names_make(pickle_maker *m, const torch_value *name,
                              const torch_value *arguments, torch_value **out, pons_error *err);
/* Complete a value that was made by a name with its state. */
pons_status pickle_names_build(pickle_maker *m, torch_value *v, const torch_value *state,
                               pons_error *err);
/* The element type of a name such as torch.float32 or torch.FloatStorage; NULL: no type. */
const torch_type *pickle_names_type(const torch_value *v);

/* A new value of the arena. */
torch_value *pickle_value_new(arena *a, torch_kind kind);
/* A text or bytes; they are copied. */
torch_value *pickle_value_bytes(arena *a, torch_kind kind, const void *bytes, size_t size);
/* Append to a list, tuple, set or dictionary. False: it would be too large, deep or hold itself. */
bool pickle_value_append(arena *a, torch_value *list, torch_value *item);

#endif
