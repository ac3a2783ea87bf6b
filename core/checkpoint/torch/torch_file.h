/*
 * torch_file.h - files of torch.save: the zip archives of PyTorch 1.6 and later, and the format
 * before it.
 *
 * The file is mapped, and nothing of it is run. Opening reads the pickle only; a tensor's bytes are
 * read where they are used. Files of big-endian machines, TorchScript programs, compressed archives
 * and pickles of anything else than plain data and tensors are refused with one line.
 */
#ifndef CORE_CHECKPOINT_TORCH_TORCH_FILE_H
#define CORE_CHECKPOINT_TORCH_TORCH_FILE_H

#include "checkpoint/torch/torch_value.h"

typedef struct torch_file torch_file;

/* Whether the first bytes of a file are those of a format, or of any zip archive. */
bool torch_file_is(const void *bytes, size_t size);

/* PONS_DATA: it cannot be read, or is no file that torch.save wrote of plain data. */
pons_status torch_file_open(const char *path, torch_file **out, pons_error *err);
/* torch_file_open from memory, which outlives the file. 'where' names it in messages. */
pons_status torch_file_read(const void *data, size_t size, const char *where, torch_file **out,
                            pons_error *err);
void torch_file_close(torch_file *f);
size_t torch_file_size(const torch_file *f); /* bytes                                             */

/* The value that was saved; it lives as long as the file. */
const torch_value *torch_file_root(const torch_file *f);
/*
 * The elements of a tensor as torch_tensor_elements gives them. The checksum of its storage is
 * compared at the first use; PONS_DATA: it differs, the file was cut meanwhile, or the tensor
 * overlaps. One thread.
 */
pons_status torch_file_elements(torch_file *f, const torch_tensor *t, void *buffer,
                                const void **out, pons_error *err);
/* Give the pages of these bytes of the file back to the system; a later use reads them again. */
void torch_file_release(const torch_file *f, const void *bytes, size_t size);

#endif
