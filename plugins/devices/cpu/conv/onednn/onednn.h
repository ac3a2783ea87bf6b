/*
 * onednn.h - convolutions with their gradients and matrix products by oneDNN.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_ONEDNN_ONEDNN_H
#define PLUGINS_DEVICES_CPU_CONV_ONEDNN_ONEDNN_H

#include "cpu/conv/solver.h"

typedef struct onednn onednn; /* engine and stream of one device */

pons_status onednn_open(onednn **out, pons_error *err);
void onednn_close(onednn *o);
/* "oneDNN 2.6.3" */
void onednn_version(char *text, size_t size);

/* Convolutions, where this build has the library. */
extern const conv_operations onednn_operations;
/* As pons_device_operations.prepare. */
pons_status onednn_prepare_matmul(const cpu_device *cpu, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err);

#endif
