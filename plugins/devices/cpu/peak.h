/*
 * peak.h - loops that show what a processor reaches: a copy past the caches, fused products.
 */
#ifndef PLUGINS_DEVICES_CPU_PEAK_H
#define PLUGINS_DEVICES_CPU_PEAK_H

#include <pons/device.h>

#include "cpu/isa.h"

enum { LIMITS_ALIGN = 64, LIMITS_INPUT = 2048 }; /* bytes: of addresses; of the loops' numbers    */

typedef struct limits_loop {
    isa set;            /* where it runs                                                         */
    /* 'rounds' times the same products of the numbers at 'input'; something of it to 'output'. */
    void (*run)(int64_t rounds, const void *input, float *output);
    double operations;  /* of a round                                                             */
} limits_loop;

/* Ends with run == NULL; the first that runs here is the best. */
extern const limits_loop limits_f32[], limits_bf16[];

/* 'size' and addresses are multiples of 64; stores go past the caches where that is possible. */
void limits_copy(void *to, const void *from, size_t size);

/* As pons_device_operations.limits. */
pons_status limits_measure(void *device, pons_device_peak *limits, pons_error *err);

#endif
