/*
 * tensor_names.h - the tensors of a storage as files have them: PyTorch's names, shapes, order of
 * axes.
 *
 * A convolution's weight lies as [O, kD, kH, kW, I] in memory and is written as [O, I, kD, kH, kW];
 * in a 2D network as [O, I, kH, kW]. Beside a state 'X.running_var' a file has
 * 'X.num_batches_tracked' (I64, no axes), which may be missing when it is read; without
 * 'X.running_var' it is a tensor too many.
 */
#ifndef CORE_CHECKPOINT_TENSOR_NAMES_H
#define CORE_CHECKPOINT_TENSOR_NAMES_H

#include "graph/program/program.h"
#include "checkpoint/safetensors.h"

typedef struct weights_format {
    bool flat;          /* a 2D network                                                           */
    bool wide;          /* the storage holds doubles                                              */
    const char *prefix; /* before every name in the file; NULL: none; others are ignored then     */
} weights_format;

enum {
    WEIGHTS_MODEL = 1 << STORAGE_PARAMETER | 1 << STORAGE_STATE,
    WEIGHTS_OPTIMIZER = 1 << STORAGE_SLOT,
    WEIGHTS_EMA = 1 << STORAGE_EMA | 1 << STORAGE_STATE
};

/*
 * Fill the tensors of 'groups' (bits 1 << storage_group) from a file. A tensor that is missing,
 * unknown or of another shape is PONS_CONFIG and named, numbers that are not finite are PONS_DATA;
 * nothing is filled then. 'where' is the file's name.
 */
pons_status weights_read(storage *s, unsigned groups, const safetensors *file, const char *where,
                         const weights_format *format, pons_error *err);
pons_status weights_read_file(storage *s, unsigned groups, const char *path,
                              const weights_format *format, pons_error *err);

/* The tensors of 'groups' to be written (f32). */
typedef struct weights_list {
    safetensors_content content;
    const storage *storage;
    weights_format format;
    int64_t applied;          /* written as num_batches_tracked                                   */
    safetensor *item;
    storage_tensor *from;     /* memory NULL: num_batches_tracked                                 */
    char **made_name;
    float *buffer;            /* the largest tensor                                               */
} weights_list;

/* The content points into the list; weights_list_clear ends both. */
pons_status weights_list_make(weights_list *list, const storage *s, unsigned groups,
                              const weights_format *format, pons_error *err);
void weights_list_clear(weights_list *list);
/*
 * Copy what is to be written into 'memory' of that size: the storage may change from now on. The
 * size is a multiple of 8.
 */
size_t weights_list_size(const weights_list *list);
void weights_list_detach(weights_list *list, void *memory);
/* The name of the first tensor with an element that is not finite; NULL: there is none. */
const char *weights_list_nonfinite(const weights_list *list);

#endif
