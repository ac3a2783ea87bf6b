/*
 * onednn.h - convolutions with their gradients and matrix products by oneDNN.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_ONEDNN_ONEDNN_H
#define PLUGINS_DEVICES_CPU_CONV_ONEDNN_ONEDNN_H

#include <pons/device.h>

typedef struct onednn onednn; /* engine and stream of one device */

pons_status onednn_open(onednn **out, pons_error *err);
void onednn_close(onednn *o);
/* "oneDNN 2.6.3" */
void onednn_version(char *text, size_t size);

/* As pons_device_operations.prepare; the thread count is that of the calling thread's OpenMP. */
pons_status onednn_prepare_convolution(onednn *o, const pons_request *request, pons_kernel *kernel,
                                       bool *supported, pons_error *err);
pons_status onednn_prepare_matmul(onednn *o, const pons_request *request, pons_kernel *kernel,
                                  bool *supported, pons_error *err);

#endif
