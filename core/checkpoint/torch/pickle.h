/*
 * pickle.h - a machine for Python's pickles that cannot call anything.
 *
 * It knows the instructions of plain data, and a closed list of names (pickle_names.h) that stand
 * for tensors and other plain values. Any other instruction or name is refused. Instructions run
 * once each, without recursion, and a budget of TORCH_VALUES_MAX bounds what they make.
 */
#ifndef CORE_CHECKPOINT_TORCH_PICKLE_H
#define CORE_CHECKPOINT_TORCH_PICKLE_H

#include "base/arena.h"
#include "checkpoint/torch/torch_value.h"

/* The storage that a persistent id names, such as ("storage", type, "0", "cpu", 6). */
typedef pons_status (*pickle_find_storage)(void *context, const torch_value *id,
                                           torch_storage **out, pons_error *err);

typedef struct pickle {
    const unsigned char *bytes;     /* may be longer than the pickle                              */
    size_t size;
    const char *where;              /* the file's name                                            */
    arena *memory;                  /* of the values                                              */
    pickle_find_storage find_storage; /* NULL: persistent ids are refused                         */
    void *context;
    size_t end;                     /* set: bytes of the pickle                                   */
    torch_value *root;              /* set                                                        */
} pickle;

/* Run one pickle. PONS_DATA: it is damaged, or holds something else than plain data. */
pons_status pickle_run(pickle *p, pons_error *err);

#endif
