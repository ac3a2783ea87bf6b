/*
 * peak.h - loops that measure the peak rates of a processor: a non-temporal copy and fused
 * multiply-adds.
 */
#ifndef PLUGINS_DEVICES_CPU_PEAK_H
#define PLUGINS_DEVICES_CPU_PEAK_H

#include <pons/device.h>

#include "cpu/isa.h"

enum { PEAK_ALIGN = 64, PEAK_INPUT = 2048 };     /* bytes: alignment; input of a loop             */

typedef struct peak_loop {
    isa set;            /* required instruction set                                              */
    /*
     * 'rounds' times the same multiply-adds of the elements at 'input'. Part of the result goes to
     * 'output', so that the compiler keeps the loop.
     */
    void (*run)(int64_t rounds, const void *input, float *output);
    double operations;  /* operations of one round                                                */
} peak_loop;

/* Loops from the fastest to the slowest; run == NULL ends a list. */
extern const peak_loop peak_f32[], peak_bf16[];

/*
 * 'size' and both addresses are multiples of 64. Stores are non-temporal where the processor has
 * them.
 */
void peak_copy(void *to, const void *from, size_t size);

/* As profiling.peak of pons_device_operations. */
pons_status peak_measure(void *device, pons_device_peak *peak, pons_error *err);

#endif
