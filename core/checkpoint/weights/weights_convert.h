/*
 * weights_convert.h - write the tensors of a network from a foreign file of weights as the
 * safetensors file that training would have written: its names, order and types.
 */
#ifndef CORE_CHECKPOINT_WEIGHTS_WEIGHTS_CONVERT_H
#define CORE_CHECKPOINT_WEIGHTS_WEIGHTS_CONVERT_H

#include "checkpoint/tensor_names.h"
#include "checkpoint/weights/weights_file.h"

/*
 * The storage gives names and shapes only; its memory is not touched. Tensors of other types become
 * f32, and a missing num_batches_tracked is 0. Tensors are written one by one. PONS_CONFIG: names
 * or shapes differ (tensor_names_compare); PONS_DATA: an element is not finite. 'path' is not
 * written then, or stays as it was.
 */
pons_status weights_convert(const storage *s, const weights_file *file, const char *where,
                            const tensor_format *format, const char *path,
                            void (*tell)(void *context, const char *line), void *context,
                            pons_error *err);

#endif
