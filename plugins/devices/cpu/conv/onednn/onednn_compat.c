/*
 * onednn_compat.c - one half for oneDNN 2, one for oneDNN 3; the compiler takes the installed one.
 */
#include "cpu/conv/onednn/onednn_compat.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t key, uint64_t value)
{
    return (key ^ value) * 0x100000001b3u;
}

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t onednn_layout_new(onednn_layout *layout, int rank, const dnnl_dims_t extent,
                                dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(layout, rank, extent, type, tag);
}

void onednn_layout_free(onednn_layout layout)
{
    if (layout != NULL)
        dnnl_memory_desc_destroy(layout);
}

int64_t onednn_layout_extent(onednn_layout_view layout)
{
    const dnnl_dims_t *extent = NULL;

    dnnl_memory_desc_query(layout, dnnl_query_dims, &extent);
    return (*extent)[0];
}

dnnl_status_t onednn_layout_part(onednn_layout *part, onednn_layout_view whole, int64_t first,
                                 int64_t end)
{
    const dnnl_dims_t *all = NULL;
    dnnl_dims_t extent, offset = { first };

    dnnl_memory_desc_query(whole, dnnl_query_dims, &all);
    memcpy(extent, *all, sizeof extent);
    extent[0] = end - first;
    return dnnl_memory_desc_create_submemory(part, whole, extent, offset);
}

uint64_t onednn_layout_key(onednn_layout_view layout)
{
    uint64_t key = dnnl_memory_desc_get_size(layout);
    int rank = 0, blocks = 0;
    const dnnl_dims_t *stride = NULL, *block = NULL, *index = NULL;

    dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &rank);
    dnnl_memory_desc_query(layout, dnnl_query_inner_nblks_s32, &blocks);
    dnnl_memory_desc_query(layout, dnnl_query_strides, &stride);
    dnnl_memory_desc_query(layout, dnnl_query_inner_blks, &block);
    dnnl_memory_desc_query(layout, dnnl_query_inner_idxs, &index);
    for (int i = 0; i < rank; i++)
        key = mix(key, (uint64_t)(*stride)[i]);
    for (int i = 0; i < blocks; i++)
        key = mix(mix(key, (uint64_t)(*block)[i]), (uint64_t)(*index)[i]);
    return key;
}

static dnnl_status_t describe_forward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                      const onednn_convolution *c, dnnl_prop_kind_t prop,
                                      const_dnnl_primitive_attr_t attributes)
{
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, prop, dnnl_convolution_direct, c->x, c->forward_w, NULL, c->y, c->stride,
        c->dilation, c->pad_low, c->pad_high, attributes);
}

static dnnl_status_t describe_backward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                       const onednn_convolution *c, dnnl_primitive_desc_t hint,
                                       const_dnnl_primitive_attr_t attributes)
{
    if (c->direction == ONEDNN_INPUT_GRADIENT)
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, dnnl_convolution_direct, c->x, c->w, c->y, c->stride, c->dilation,
            c->pad_low, c->pad_high, hint, attributes);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, engine, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->stride, c->dilation,
        c->pad_low, c->pad_high, hint, attributes);
}

dnnl_status_t onednn_matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                     onednn_layout a, onednn_layout b, onednn_layout c,
                                     const_dnnl_primitive_attr_t attributes)
{
    return dnnl_matmul_primitive_desc_create(out, engine, a, b, NULL, c, attributes);
}

#else

dnnl_status_t onednn_layout_new(onednn_layout *layout, int rank, const dnnl_dims_t extent,
                                dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    onednn_layout made = malloc(sizeof *made);
    if (made == NULL)
        return dnnl_out_of_memory;

    dnnl_status_t status = dnnl_memory_desc_init_by_tag(made, rank, extent, type, tag);
    if (status == dnnl_success)
        *layout = made;
    else
        free(made);
    return status;
}

void onednn_layout_free(onednn_layout layout)
{
    free(layout);
}

int64_t onednn_layout_extent(onednn_layout_view layout)
{
    return layout->dims[0];
}

dnnl_status_t onednn_layout_part(onednn_layout *part, onednn_layout_view whole, int64_t first,
                                 int64_t end)
{
    dnnl_dims_t extent, offset = { first };
    onednn_layout made = malloc(sizeof *made);
    dnnl_status_t status;

    if (made == NULL)
        return dnnl_out_of_memory;
    memcpy(extent, whole->dims, sizeof extent);
    extent[0] = end - first;
    status = dnnl_memory_desc_init_submemory(made, whole, extent, offset);
    if (status == dnnl_success)
        *part = made;
    else
        free(made);
    return status;
}

uint64_t onednn_layout_key(onednn_layout_view layout)
{
    const dnnl_blocking_desc_t *blocking = &layout->format_desc.blocking;
    uint64_t key = dnnl_memory_desc_get_size(layout);

    for (int i = 0; i < layout->ndims; i++)
        key = mix(key, (uint64_t)blocking->strides[i]);
    for (int i = 0; i < blocking->inner_nblks; i++)
        key = mix(mix(key, (uint64_t)blocking->inner_blks[i]), (uint64_t)blocking->inner_idxs[i]);
    return key;
}

static dnnl_status_t describe_forward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                      const onednn_convolution *c, dnnl_prop_kind_t prop,
                                      const_dnnl_primitive_attr_t attributes)
{
    dnnl_convolution_desc_t operation;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &operation, prop, dnnl_convolution_direct, c->x, c->forward_w, NULL, c->y, c->stride,
        c->dilation, c->pad_low, c->pad_high);

    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &operation, attributes, engine, NULL);
}

static dnnl_status_t describe_backward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                       const onednn_convolution *c, dnnl_primitive_desc_t hint,
                                       const_dnnl_primitive_attr_t attributes)
{
    dnnl_convolution_desc_t operation;
    dnnl_status_t status;

    if (c->direction == ONEDNN_INPUT_GRADIENT)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &operation, dnnl_convolution_direct, c->x, c->w, c->y, c->stride, c->dilation,
            c->pad_low, c->pad_high);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &operation, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->stride, c->dilation,
            c->pad_low, c->pad_high);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &operation, attributes, engine, hint);
}

dnnl_status_t onednn_matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                     onednn_layout a, onednn_layout b, onednn_layout c,
                                     const_dnnl_primitive_attr_t attributes)
{
    dnnl_matmul_desc_t operation;
    dnnl_status_t status = dnnl_matmul_desc_init(&operation, a, b, NULL, c);

    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &operation, attributes, engine, NULL);
}

#endif

dnnl_status_t onednn_convolution_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                          const onednn_convolution *c,
                                          const_dnnl_primitive_attr_t attributes)
{
    if (c->direction == ONEDNN_FORWARD)
        return describe_forward(out, engine, c, dnnl_forward_inference, attributes);

    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status = describe_forward(&hint, engine, c, dnnl_forward_training, NULL);
    if (status != dnnl_success)
        return status;
    status = describe_backward(out, engine, c, hint, attributes);
    dnnl_primitive_desc_destroy(hint);
    return status;
}
