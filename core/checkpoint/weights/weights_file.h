/*
 * weights_file.h - named tensors from a file of weights of any known format, under one interface.
 *
 * safetensors files and the files of torch.save (torch/torch_file.h) are recognised by their first
 * bytes. Of the latter the state dictionary is taken: the value itself, or what it holds under a
 * customary name such as 'network_weights', 'state_dict' or 'model'. 'module.' in front of all
 * names and '_orig_mod.' anywhere, which wrappers of PyTorch add, are removed. Tensors lie where
 * the file is mapped; two names of one tensor have the same data. A tensor whose elements overlap,
 * as after expand(), has no data (NULL).
 */
#ifndef CORE_CHECKPOINT_WEIGHTS_WEIGHTS_FILE_H
#define CORE_CHECKPOINT_WEIGHTS_WEIGHTS_FILE_H

#include "base/arena.h"
#include "checkpoint/tensor_names.h"
#include "checkpoint/torch/torch_file.h"

typedef struct weights_file {
    safetensors *tensors;
    torch_file *torch;            /* NULL: a safetensors file                                     */
    arena *memory;
    /*
     * A checkpoint of nnU-Net has kernels in the order of its plan: order[d] is the kernel's axis
     * for axis d of D, H, W (tensor_format).
     */
    bool ordered;
    int order[3];
} weights_file;

/* PONS_DATA: the file is damaged, or none of the formats, or has no state dictionary. */
pons_status weights_file_open(const char *path, weights_file *out, pons_error *err);
/*
 * The same of an open file of torch.save, which the result owns, also on failure. 'weights' is its
 * state dictionary; NULL: it is looked for.
 */
pons_status weights_file_of_torch(torch_file *torch, const torch_value *weights, const char *where,
                                  weights_file *out, pons_error *err);
void weights_file_close(weights_file *w);
/*
 * The order of a network's kernels by a plan of nnU-Net: plan[d], a permutation, is the plan's axis
 * for axis d of D, H, W. A 2D plan, 'flat', lacks its axis 0.
 */
void weights_plan_order(const int plan[3], bool flat, int order[3]);
/* tensor_names_read of such a file. */
pons_status weights_file_read(storage *s, unsigned groups, const char *path,
                              const tensor_format *format, pons_error *err);
/* Give the pages of a tensor back to the system after its last use. */
void weights_file_release(const weights_file *w, const safetensor *t);

#endif
