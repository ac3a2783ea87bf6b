/*
 * cudnn_graph.c - the convolution of a request as a cuDNN graph of one operation.
 *
 * Tensors have the extents N, C, D, H, W and the strides of [N, D, H, W, C]; weights have O, I, kD,
 * kH, kW and the strides of [O, kD, kH, kW, I]. Images of one slice with a flat kernel are 2D, for
 * which the library has more engines. The library has no engine that reads 16 bits and writes an
 * f32 weight gradient (9.19, bf16 and fp16, on sm_80 and sm_90). The gradient is written in 16 bits
 * and converted afterwards.
 */
#include "cuda/cudnn/cudnn.h"

enum { ALIGNMENT = 16, MULTIPLE = 8, RANK = 5 };

typedef struct operation {
    int kind;
    int alpha, beta, convolution, w, x, y;
    int place[3];        /* index of x, w and y in a request: 0 and 1 are inputs, 2 is the output */
} operation;

static const operation operations[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_CONVOLUTION] = { DNN_FORWARD, DNN_FORWARD_ALPHA, DNN_FORWARD_BETA,
                                  DNN_FORWARD_CONVOLUTION, DNN_FORWARD_W, DNN_FORWARD_X,
                                  DNN_FORWARD_Y, { 0, 1, 2 } },
    [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = { DNN_BACKWARD_DATA, DNN_DATA_ALPHA, DNN_DATA_BETA,
                                                 DNN_DATA_CONVOLUTION, DNN_DATA_W, DNN_DATA_DX,
                                                 DNN_DATA_DY, { 2, 1, 0 } },
    [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = { DNN_BACKWARD_FILTER, DNN_FILTER_ALPHA,
                                                  DNN_FILTER_BETA, DNN_FILTER_CONVOLUTION,
                                                  DNN_FILTER_DW, DNN_FILTER_X, DNN_FILTER_DY,
                                                  { 0, 2, 1 } },
};

static int type_of(pons_type type)
{
    return type == PONS_F32 ? DNN_F32 : type == PONS_F16 ? DNN_F16 : type == PONS_BF16 ? DNN_BF16
                                                                                        : -1;
}

/* True if axis D can be dropped: one slice of images and kernel, without padding or stride. */
static bool is_flat(const cudnn_convolution *c)
{
    const pons_convolution *v = c->request->attributes;

    return c->x.shape.extent[1] == 1 && c->w.shape.extent[1] == 1 && c->y.shape.extent[1] == 1
        && v->pad_low[0] == 0 && v->pad_high[0] == 0 && v->stride[0] == 1;
}

static cudnn_convolution convolution_of(const pons_request *r)
{
    const pons_tensor tensor[3] = { r->input[0], r->input[1], r->output[0] };
    const int *place = operations[r->kind].place;
    cudnn_convolution c = { .request = r, .x = tensor[place[0]], .w = tensor[place[1]],
                            .y = tensor[place[2]] };

    if (r->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        c.w.type = c.x.type;
    c.flat = is_flat(&c);
    return c;
}

bool cudnn_supports(const pons_request *r, cudnn_convolution *c)
{
    const pons_convolution *v = r->attributes;

    if (r->kind >= PONS_KERNEL_KIND_COUNT || operations[r->kind].kind == 0)
        return false;
    *c = convolution_of(r);
    return c->x.type == c->w.type && c->w.type == c->y.type && type_of(c->x.type) >= 0
        && c->w.shape.extent[4] % MULTIPLE == 0
        && c->w.shape.extent[0] / v->groups % MULTIPLE == 0;
}

void cudnn_order_pointers(const cudnn_convolution *c, const pons_call *call, void *low,
                          void *pointer[3])
{
    void *memory[3] = { call->input[0], call->input[1], low != NULL ? low : call->output[0] };

    for (int i = 0; i < 3; i++)
        pointer[i] = memory[operations[c->request->kind].place[i]];
}

static cudnn_descriptor add_tensor(cudnn_list *l, pons_tensor t, bool flat, int64_t number)
{
    const int64_t *e = t.shape.extent, alignment = ALIGNMENT;
    int64_t extent[RANK] = { e[0], e[4] }, stride[RANK] = { 0, 1 }, step = e[4];
    int first = flat ? 2 : 1, rank = RANK - (flat ? 1 : 0), type = type_of(t.type);
    cudnn_descriptor d = cudnn_add(l, DNN_TENSOR);

    for (int a = rank - 1; a >= 2; a--) {
        extent[a] = e[first + a - 2];
        stride[a] = step;
        step *= extent[a];
    }
    stride[0] = step;
    cudnn_set(l, d, DNN_TENSOR_NUMBER, DNN_TYPE_INT64, 1, &number);
    cudnn_set(l, d, DNN_TENSOR_TYPE, DNN_TYPE_DATA, 1, &type);
    cudnn_set(l, d, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    cudnn_set(l, d, DNN_TENSOR_EXTENTS, DNN_TYPE_INT64, rank, extent);
    cudnn_set(l, d, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, rank, stride);
    cudnn_finish(l, d);
    return d;
}

static cudnn_descriptor add_convolution(cudnn_list *l, const pons_convolution *v, bool flat)
{
    const int compute = DNN_F32, mode = DNN_CROSS_CORRELATION, first = flat ? 1 : 0;
    const int64_t rank = 3 - first;
    int64_t stride[3], dilation[3], low[3], high[3];
    cudnn_descriptor d = cudnn_add(l, DNN_CONVOLUTION);

    for (int a = 0; a < rank; a++) {
        stride[a] = v->stride[first + a];
        dilation[a] = v->dilation[first + a];
        low[a] = v->pad_low[first + a];
        high[a] = v->pad_high[first + a];
    }
    cudnn_set(l, d, DNN_CONVOLUTION_COMPUTE, DNN_TYPE_DATA, 1, &compute);
    cudnn_set(l, d, DNN_CONVOLUTION_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cudnn_set(l, d, DNN_CONVOLUTION_RANK, DNN_TYPE_INT64, 1, &rank);
    cudnn_set(l, d, DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, rank, dilation);
    cudnn_set(l, d, DNN_CONVOLUTION_STRIDES, DNN_TYPE_INT64, rank, stride);
    cudnn_set(l, d, DNN_CONVOLUTION_PADS_LOW, DNN_TYPE_INT64, rank, low);
    cudnn_set(l, d, DNN_CONVOLUTION_PADS_HIGH, DNN_TYPE_INT64, rank, high);
    cudnn_finish(l, d);
    return d;
}

cudnn_descriptor cudnn_graph(cudnn_list *l, const cudnn_convolution *c, cudnn_handle handle)
{
    const operation *o = &operations[c->request->kind];
    const pons_convolution *v = c->request->attributes;
    const float one = 1, zero = 0;
    cudnn_descriptor x, w, y, convolution, node, graph;

    x = add_tensor(l, c->x, c->flat, DNN_X);
    w = add_tensor(l, c->w, c->flat, DNN_W);
    y = add_tensor(l, c->y, c->flat, DNN_Y);
    convolution = add_convolution(l, v, c->flat);
    node = cudnn_add(l, o->kind);
    cudnn_set(l, node, o->alpha, DNN_TYPE_FLOAT, 1, &one);
    cudnn_set(l, node, o->beta, DNN_TYPE_FLOAT, 1, &zero);
    cudnn_set(l, node, o->convolution, DNN_TYPE_DESCRIPTOR, 1, &convolution);
    cudnn_set(l, node, o->w, DNN_TYPE_DESCRIPTOR, 1, &w);
    cudnn_set(l, node, o->x, DNN_TYPE_DESCRIPTOR, 1, &x);
    cudnn_set(l, node, o->y, DNN_TYPE_DESCRIPTOR, 1, &y);
    cudnn_finish(l, node);
    graph = cudnn_add(l, DNN_GRAPH);
    if (handle != NULL)
        cudnn_set(l, graph, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    cudnn_set(l, graph, DNN_GRAPH_OPERATIONS, DNN_TYPE_DESCRIPTOR, 1, &node);
    cudnn_finish(l, graph);
    return graph;
}

cudnn_descriptor cudnn_variant_pack(cudnn_list *l, void *const pointer[3], void *workspace)
{
    static const int64_t numbers[3] = { DNN_X, DNN_W, DNN_Y };
    cudnn_descriptor d = cudnn_add(l, DNN_PACK);

    cudnn_set(l, d, DNN_PACK_NUMBERS, DNN_TYPE_INT64, 3, numbers);
    cudnn_set(l, d, DNN_PACK_POINTERS, DNN_TYPE_POINTER, 3, pointer);
    cudnn_set(l, d, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &workspace);
    cudnn_finish(l, d);
    return d;
}
