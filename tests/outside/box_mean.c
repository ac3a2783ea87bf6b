/*
 * box_mean - the mean of the box of radius r around each voxel, with zeros beyond the image:
 *
 *   y[d, h, w, c] = sum of x over |d - d'| <= r_D, |h - h'| <= r_H, |w - w'| <= r_W, divided by
 *                   (2 r_D + 1) (2 r_H + 1) (2 r_W + 1)
 *
 * x and y are [N, D, H, W, C]. The op is its own adjoint, since the divisor is the same everywhere.
 * Built outside the source tree with the installed headers alone.
 */
#include <pons/op.h>

typedef struct box_mean {
    int radius[3];
} box_mean;

static const pons_option options[] = {
    PONS_AXES(box_mean, radius, "1", 0, 64, "Voxels from the centre to the side, along D H W."),
    PONS_OPTIONS_END
};

static pons_status shape(const void *config, const pons_tensor *input, pons_shape *output,
                         pons_error *err)
{
    if (input->shape.rank != 5 || input->type != PONS_F32)
        return pons_fail(err, PONS_PLUGIN, "the input must be an f32 image of 5 axes, found %d",
                         input->shape.rank);
    *output = input->shape;
    return PONS_OK;
}

/* The range of the box around 'at' on an axis of 'extent'. */
static void range(int64_t at, int radius, int64_t extent, int64_t *begin, int64_t *end)
{
    *begin = at - radius > 0 ? at - radius : 0;
    *end = at + radius + 1 < extent ? at + radius + 1 : extent;
}

/* Sum of x over the box around row 'row', in channel c; 'wide': x is double. */
static inline double box_sum(const box_mean *b, const int64_t *n, const void *x, bool wide,
                             int64_t row, int64_t c)
{
    int64_t begin[3], end[3], image = row / (n[1] * n[2] * n[3]);
    double sum = 0;

    range(row / (n[2] * n[3]) % n[1], b->radius[0], n[1], &begin[0], &end[0]);
    range(row / n[3] % n[2], b->radius[1], n[2], &begin[1], &end[1]);
    range(row % n[3], b->radius[2], n[3], &begin[2], &end[2]);
    for (int64_t d = begin[0]; d < end[0]; d++)
        for (int64_t h = begin[1]; h < end[1]; h++)
            for (int64_t w = begin[2]; w < end[2]; w++) {
                int64_t at = (((image * n[1] + d) * n[2] + h) * n[3] + w) * n[4] + c;
                sum += wide ? ((const double *)x)[at] : (double)((const float *)x)[at];
            }
    return sum;
}

static inline double box_size(const box_mean *b)
{
    return (2.0 * b->radius[0] + 1) * (2 * b->radius[1] + 1) * (2 * b->radius[2] + 1);
}

static void run_float(const pons_op_call *call)
{
    const int64_t *n = call->shape.extent;
    float *y = call->to;

    for (int64_t row = call->begin; row < call->end; row++)
        for (int64_t c = 0; c < n[4]; c++)
            y[row * n[4] + c] = (float)(box_sum(call->config, n, call->from[0], false, row, c)
                                        / box_size(call->config));
}

static void run_double(const pons_op_call *call)
{
    const int64_t *n = call->shape.extent;
    double *y = call->to;

    for (int64_t row = call->begin; row < call->end; row++)
        for (int64_t c = 0; c < n[4]; c++)
            y[row * n[4] + c] = box_sum(call->config, n, call->from[0], true, row, c)
                                / box_size(call->config);
}

static pons_status gradient(pons_graph *g, const void *config, pons_node *const *input,
                            pons_node *output, pons_node *dy, const bool *wanted,
                            pons_node **gradient, pons_error *err)
{
    gradient[0] = pons_op_again(g, output, &dy);
    return pons_graph_status(g, err);
}

static const char cuda[] =
    "extern \"C\" __global__ void box_mean(float *to, const void *const *from,\n"
    "                                    const long long *extent, const unsigned char *config)\n"
    "{\n"
    "    const int *r = (const int *)config;\n"
    "    const float *x = (const float *)from[0];\n"
    "    const long long D = extent[2], H = extent[3], W = extent[4], C = extent[5];\n"
    "    const long long count = extent[1] * D * H * W * C;\n"
    "    const float size = (2.f * r[0] + 1) * (2 * r[1] + 1) * (2 * r[2] + 1);\n"
    "    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count;\n"
    "         i += (long long)gridDim.x * blockDim.x) {\n"
    "        const long long c = i % C, w = i / C % W, h = i / C / W % H, d = i / C / W / H % D;\n"
    "        const long long n = i / C / W / H / D;\n"
    "        float sum = 0;\n"
    "        for (long long a = max(d - r[0], 0LL); a <= min(d + r[0], D - 1); a++)\n"
    "            for (long long b = max(h - r[1], 0LL); b <= min(h + r[1], H - 1); b++)\n"
    "                for (long long e = max(w - r[2], 0LL); e <= min(w + r[2], W - 1); e++)\n"
    "                    sum += x[(((n * D + a) * H + b) * W + e) * C + c];\n"
    "        to[i] = sum / size;\n"
    "    }\n"
    "}\n";

static const pons_op_operations operations = {
    .input_count = 1, .sliced = true, .shape = shape, .run_float = run_float,
    .run_double = run_double, .gradient = gradient, .cuda = cuda
};

PONS_OP(box_mean, "1.0", "mean of a box around each voxel", options, operations);
