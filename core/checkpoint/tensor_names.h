/*
 * tensor_names.h - the tensors of a storage as files have them: PyTorch's names, shapes, order of
 * axes.
 *
 * A convolution's weight lies as [O, kD, kH, kW, I] in memory and is written as [O, I, kD, kH, kW];
 * in a 2D network as [O, I, kH, kW]. Beside a state 'X.running_var' a file has
 * 'X.num_batches_tracked' (I64, no axes), which may be missing when it is read; without
 * 'X.running_var' it is a tensor too many. 'X.relative_position_index', a constant of window
 * attention, is passed over beside 'X.relative_position_bias_table', and it is not written.
 */
#ifndef CORE_CHECKPOINT_TENSOR_NAMES_H
#define CORE_CHECKPOINT_TENSOR_NAMES_H

#include "base/progress.h"
#include "checkpoint/safetensors.h"
#include "graph/program/program.h"

typedef struct tensor_format {
    bool flat;          /* a 2D network                                                           */
    bool wide;          /* the storage holds doubles                                              */
    const char *prefix; /* before every name in the file; others are ignored then. NULL: none, or
                           one that all names of the network have and that is found               */
    const int *order;   /* reading: a kernel's axis in the file for D, H, W; NULL: 0 1 2          */
    const char *const *skip; /* names of tensors that are left as they are; NULL ends; or NULL    */
    byte_progress *progress; /* of reading; NULL: none                                            */
} tensor_format;

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
pons_status tensor_names_read(storage *s, unsigned groups, const safetensors *file,
                              const char *where, const tensor_format *format, pons_error *err);
/*
 * Compare names and shapes only, and pass each difference as one line to 'tell', after 20 of them
 * their number. PONS_CONFIG: there were some; the text counts them.
 */
pons_status tensor_names_compare(const storage *s, unsigned groups, const safetensors *file,
                                 const char *where, const tensor_format *format,
                                 void (*tell)(void *context, const char *line), void *context,
                                 pons_error *err);
/* The tensor of the file for a name of the network; NULL: none. */
const safetensor *tensor_names_find(const safetensors *file, const tensor_format *format,
                                    const char *name);
/*
 * The text between the beginning of the names in a file and those of the network, such as 'net.',
 * malloc'ed; NULL: nothing. Among several the one with the most names of the network is taken.
 */
char *tensor_names_prefix(const storage *s, unsigned groups, const safetensors *file);
pons_status tensor_names_read_file(storage *s, unsigned groups, const char *path,
                                   const tensor_format *format, pons_error *err);

/* The tensors of 'groups' to be written (f32). */
typedef struct tensor_names_list {
    safetensors_content content;
    tensor_format format;
    int64_t applied;          /* written as num_batches_tracked                                   */
    safetensor *item;
    storage_tensor *from;     /* memory NULL: num_batches_tracked                                 */
    char **made_name;
    float *buffer;            /* the largest tensor                                               */
} tensor_names_list;

/*
 * The content points into the list; tensor_names_list_clear ends both. Call storage_fetch before:
 * here it fails without a reason.
 */
pons_status tensor_names_list_make(tensor_names_list *list, const storage *s, unsigned groups,
                                   const tensor_format *format, pons_error *err);
void tensor_names_list_clear(tensor_names_list *list);
/*
 * Copy the tensors into 'memory' of that size. The storage may change afterwards. The size is a
 * multiple of 8.
 */
size_t tensor_names_list_size(const tensor_names_list *list);
void tensor_names_list_copy(tensor_names_list *list, void *memory);
/* The name of the first tensor with an element that is not finite; NULL: there is none. */
const char *tensor_names_list_nonfinite(const tensor_names_list *list);

#endif
