/*
 * wide_bf16.h - packing of bf16 for the kernels that multiply pairs of them.
 */
#ifndef CPU_WIDE_BF16_H
#define CPU_WIDE_BF16_H

#include "wide.h"

void wide_bf16_panel(void *to, pons_type type, const char *const *position, int first, int count);
void wide_bf16_rows(void *to, int64_t pitch, pons_type type, const char *const *position,
                    int first, int count);

#endif
