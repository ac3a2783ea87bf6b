/*
 * onednn_compat.h - the calls in which oneDNN 2 and 3 differ, under one set of names.
 *
 * oneDNN 2 describes memory by a struct and makes a primitive descriptor of an operation
 * descriptor; oneDNN 3 has a handle for the one and no other for the other.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_ONEDNN_ONEDNN_COMPAT_H
#define PLUGINS_DEVICES_CPU_CONV_ONEDNN_ONEDNN_COMPAT_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdint.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t onednn_layout;
typedef const_dnnl_memory_desc_t onednn_layout_view;
#else
typedef dnnl_memory_desc_t *onednn_layout;
typedef const dnnl_memory_desc_t *onednn_layout_view;
#endif

dnnl_status_t onednn_layout_new(onednn_layout *layout, int rank, const dnnl_dims_t extent,
                                dnnl_data_type_t type, dnnl_format_tag_t tag);
void onednn_layout_free(onednn_layout layout);
/* The extent of the first axis. */
int64_t onednn_layout_extent(onednn_layout_view layout);
/* Indices first .. end - 1 of the first axis; refused where a block would be cut. */
dnnl_status_t onednn_layout_part(onednn_layout *part, onednn_layout_view whole, int64_t first,
                                 int64_t end);
/* A key that equal layouts of one tensor share. */
uint64_t onednn_layout_key(onednn_layout_view layout);

typedef enum onednn_direction {
    ONEDNN_FORWARD, ONEDNN_INPUT_GRADIENT, ONEDNN_WEIGHT_GRADIENT
} onednn_direction;

typedef struct onednn_convolution {
    onednn_direction direction;
    onednn_layout x, w, y;
    onednn_layout forward_w; /* the weight in the type of x: the forward hint of a gradient */
    dnnl_dims_t stride, dilation, pad_low, pad_high;
} onednn_convolution;

/* The gradients make and drop the forward descriptor that oneDNN wants as a hint. */
dnnl_status_t onednn_convolution_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                          const onednn_convolution *c,
                                          const_dnnl_primitive_attr_t attributes);
dnnl_status_t onednn_matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                     onednn_layout a, onednn_layout b, onednn_layout c,
                                     const_dnnl_primitive_attr_t attributes);

#endif
