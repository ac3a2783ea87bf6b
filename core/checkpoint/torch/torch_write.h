/*
 * torch_write.h - write files of torch.save, the zip archives of PyTorch 1.6 and later.
 *
 * The pickle has the names of a state dictionary alone, so that torch.load with weights_only reads
 * it. A dictionary whose values all are tensors becomes an OrderedDict. Several tensors over one
 * storage share its bytes in the file.
 */
#ifndef CORE_CHECKPOINT_TORCH_TORCH_WRITE_H
#define CORE_CHECKPOINT_TORCH_TORCH_WRITE_H

#include "base/progress.h"
#include "checkpoint/torch/torch_value.h"

/*
 * Write the tree through a temporary file: on failure an older file at 'path' stays as it was.
 * 'progress' may be NULL.
 * Values are none, flags, numbers, texts, lists, tuples, dictionaries and tensors. PONS_CONFIG: it
 * holds another kind, or is larger than the 4 GiB of an archive without zip64.
 */
pons_status torch_file_write(const char *path, const torch_value *root, byte_progress *progress,
                             pons_error *err);

#endif
