/*
 * select.c - who computes a convolution or a matrix product. Families are asked in turn: our
 * kernels for few channels on one side (few_channels.h), those with fewer products (winograd.h),
 * for many channels (bf16_gemm.h) and for any (direct.h) where they are faster, the library
 * (onednn.h), our kernels for any again, which decline only types that the graph never hands to
 * them. Whose scratch memory is above the limit is passed over for the next.
 */
#include "cpu/cpu.h"
#include "cpu/conv/direct/direct.h"
#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/conv/few_channels_amx/few_channels_amx.h"
#include "cpu/conv/onednn/onednn.h"
#include "cpu/conv/winograd/winograd.h"

#include <omp.h>

#include "base/integer.h"

static pons_status by_narrow_tile(cpu_device *device, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err)
{
    if (device->wide != &wide_tiles)
        return PONS_OK;
    if (request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return narrow_tile_prepare_weight(device->threads, request, kernel, supported, err);
    return narrow_tile_prepare(device->narrow, device->threads, request, kernel, supported, err);
}

static pons_status by_narrow(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return narrow_prepare(device->narrow, device->threads, request, kernel, supported, err);
}

static int64_t product(const int64_t *extent, int count)
{
    return count == 0 ? 1 : extent[0] * product(extent + 1, count - 1);
}

static bool is_strided(const pons_convolution *c)
{
    return c->stride[0] * c->stride[1] * c->stride[2] > 1;
}

/*
 * Where our tiles are faster than the library (2.6.3, docs/performance.md). Gradients by the weight
 * take it two to six times as long; in the other directions it loses where a stride sends it to
 * kernels that scatter, and where sums are long.
 */
static bool tiles_win(const pons_request *request)
{
    const int64_t *k = request->input[1].shape.extent;
    int64_t taps = product(k + 1, 3);

    switch (request->kind) {
    case PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT:
        return true;
    case PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT:
        return taps > 1 && (k[0] >= 128 || (is_strided(request->attributes) &&
                                            (k[0] >= 64 || k[4] >= 64)));
    default:
        return taps > 1 && k[4] >= 256;
    }
}

/*
 * Vectors of pairs the library uses well, too: forward and by the input ours take 1.3 to 2.1 times
 * as long, and are for builds without it. Gradients by the weight take 0.5 to 1.05 times as long,
 * but for channels that leave much of our tiles empty, and with a dilation: lines are packed that
 * none meets.
 */
static bool dots_win(const pons_request *request)
{
    const int64_t *k = request->output[0].shape.extent;
    const pons_convolution *c = request->attributes;

    return request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT && product(k + 1, 3) > 1 &&
           c->dilation[0] * c->dilation[1] * c->dilation[2] == 1 && k[0] >= WIDE_TILE &&
           k[4] >= WIDE_TILE &&
           5 * round_up_i64(k[0], WIDE_TILE) * round_up_i64(k[4], WIDE_TILE) <= 6 * k[0] * k[4];
}

static bool wide_wins(const cpu_device *device, const pons_request *request)
{
    return device->library == NULL
        || (device->wide == &wide_tiles ? tiles_win(request) : dots_win(request));
}

/*
 * Vectors of pairs are what limits the library, so fewer products win: 0.5 to 0.8 of its time where
 * tiles of all images' planes, 2 x 2 points of the smaller side each and 8 together, are mostly
 * full. With a stride it is 0.75 to 0.95, and fewer pairs of channels pay too much for sums.
 */
static bool fewer_products_win(const pons_request *request)
{
    enum { TILES = 8, POINTS = 4, STRIDED_PAIRS = 32 * 32 };
    const int64_t *k = request->input[1].shape.extent;
    const pons_convolution *c = request->attributes;
    bool plain = c->stride[2] == 1;
    bool spreads = !plain && request->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;
    const int64_t *y = (spreads ? request->input : request->output)[0].shape.extent;
    int64_t tiles = round_up_i64(y[0] * round_up_i64(y[2], 2) * round_up_i64(y[3], 2) / POINTS,
                                 TILES);
    int full = plain ? 70 : 85;     /* percent */

    return 100 * y[0] * y[2] * y[3] >= full * POINTS * tiles &&
           (plain || k[0] * k[4] >= STRIDED_PAIRS);
}

/*
 * Of the gradient by the weight, 0.5 to 0.8 of the time of all products, 0.7 to 0.9 with a stride,
 * also with 17 channels on a side or 5 out: from a tile of input channels on, with a stride from
 * two or of more kernel planes, wherever they are fewer with those of what tiles, 2 x 2 points
 * each, leave empty. Two rows of them are multiplied at once.
 */
static bool fewer_products_win_by_weight(const pons_request *request)
{
    enum { POINTS = 4, ALL = 36, FEWER = 16, STRIDED = 25, STRIDED_INS = 2 * WIDE_TILE };
    const int64_t *y = request->input[1].shape.extent, *k = request->output[0].shape.extent;
    const pons_convolution *c = request->attributes;
    int64_t tiles = round_up_i64(y[0] * round_up_i64(y[2], 2) / 2, 2) * round_up_i64(y[3], 2) / 2;

    return k[4] >= WIDE_TILE && (c->stride[2] == 1 || k[1] * k[4] >= STRIDED_INS) &&
           (c->stride[2] == 1 ? FEWER : STRIDED) * tiles * POINTS <= ALL * y[0] * y[2] * y[3];
}

static pons_status by_winograd(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                               bool *supported, pons_error *err)
{
    bool weight = request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT;

    if (device->wide != &wide_dots ||
        !(weight ? fewer_products_win_by_weight : fewer_products_win)(request))
        return PONS_OK;
    return (weight ? winograd_prepare_weight : winograd_prepare)(device->wide, device->threads,
                                                                 request, kernel, supported, err);
}

static pons_status by_wide(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;

    if (device->wide == NULL || c->groups != 1 || !wide_wins(device, request))
        return PONS_OK;
    if (request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return wide_prepare_weight(device->wide, device->threads, request, kernel, supported, err);
    return wide_prepare_image(device->wide, device->threads, request, kernel, supported, err);
}

/*
 * In float, on the processors of wide_dots: the library takes 1.1 to 1.3 times as long as our
 * kernels for any channels for gradients by 8 or 16 channels of large images, and 1.05 to 1.7 times
 * for gradients by the weight with a stride.
 */
static bool direct_wins(const pons_request *request)
{
    enum { LARGE = 40 * 40 * 40, LONG = 3 << 19, DEEP = 16 * 16 };
    bool strided = is_strided(request->attributes);
    const int64_t *x, *k;

    switch (request->kind) {
    case PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT:
        x = request->input[0].shape.extent;
        k = request->output[0].shape.extent;
        return strided && k[4] >= 16 && k[0] >= 32 && product(k + 1, 4) >= DEEP &&
               product(x + 1, 4) >= LONG;
    case PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT:
        x = request->output[0].shape.extent;
        k = request->input[1].shape.extent;
        return !strided && product(k + 1, 3) == 27 && (k[4] == 8 || k[4] == 16) &&
               product(x + 1, 3) >= LARGE;
    default:
        return false;
    }
}

/* The library cuts its work when a kernel is made. */
static pons_status by_onednn(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    omp_set_num_threads(device->threads);
    return onednn_prepare_convolution(device->library, request, kernel, supported, err);
}

static pons_status by_direct(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return direct_prepare(device->direct, device->threads, request, kernel, supported, err);
}

static pons_status by_faster_direct(cpu_device *device, const pons_request *request,
                                    pons_kernel *kernel, bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;

    if (device->wide != &wide_dots || request->input[0].type != PONS_F32 || c->groups != 1 ||
        !direct_wins(request))
        return PONS_OK;
    return by_direct(device, request, kernel, supported, err);
}

static pons_status product_by_onednn(cpu_device *device, const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err)
{
    omp_set_num_threads(device->threads);
    return onednn_prepare_matmul(device->library, request, kernel, supported, err);
}

static pons_status product_by_direct(cpu_device *device, const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err)
{
    return direct_matmul_prepare(device->direct, device->threads, request, kernel, supported, err);
}

/* Wants more scratch memory than it may, where another family follows. */
static bool is_too_large(const cpu_device *device, const pons_kernel *kernel)
{
    size_t limit = device->settings.workspace_limit;

    return limit > 0 && kernel->scratch_size > limit;
}

static pons_status ask(const cpu_prepare *family, int count, cpu_device *device,
                       const pons_request *request, pons_kernel *kernel, bool *supported,
                       pons_error *err)
{
    pons_status status = PONS_OK;

    *supported = false;
    for (int i = 0; i < count && status == PONS_OK && !*supported; i++) {
        status = family[i](device, request, kernel, supported, err);
        if (i + 1 < count && *supported && is_too_large(device, kernel)) {
            if (kernel->free != NULL)
                kernel->free(kernel);
            *kernel = (pons_kernel){ .run = NULL };
            *supported = false;
        }
    }
    return status;
}

pons_status convolution_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    static const cpu_prepare families[] = { by_narrow_tile, by_narrow, by_winograd, by_wide,
                                            by_faster_direct, by_onednn, by_direct };

    return ask(families, sizeof families / sizeof *families, device, request, kernel, supported,
               err);
}

pons_status matmul_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    static const cpu_prepare families[] = { product_by_onednn, product_by_direct };

    return ask(families, sizeof families / sizeof *families, device, request, kernel, supported,
               err);
}
