/*
 * cpu_op.c - ops of plugins: the plugin's own function, on slices of the rows if the op allows
 * them.
 *
 * The element count alone decides the slices, so that bits do not depend on the threads (R4).
 */
#include "cpu/cpu.h"

#include <pons/op.h>
#include <stdlib.h>

#include "base/integer.h"

enum { SLICE = 16384 }; /* elements of a slice */

typedef struct op_kernel {
    const pons_request *request;
    const pons_op_attributes *op;
    int64_t rows, part; /* rows of the op; of a slice                                             */
    int threads;
} op_kernel;

typedef struct op_run {
    const op_kernel *k;
    pons_op_call call;
} op_run;

static void run_slice(void *context, int64_t i, int thread)
{
    const op_run *r = context;
    pons_op_call call = r->call;

    call.begin = i * r->k->part;
    call.end = min_i64(call.begin + r->k->part, r->k->rows);
    r->k->op->operations->run_float(&call);
}

static pons_status kernel_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const op_kernel *k = kernel->state;
    op_run r = { k, { .config = k->op->config, .input = k->request->input,
                      .from = (const void *const *)call->input,
                      .shape = k->request->output[0].shape, .to = call->output[0] } };

    cpu_parallel_for(k->threads, ceil_div_i64(k->rows, k->part), run_slice, &r);
    return PONS_OK;
}

static void kernel_free(pons_kernel *kernel)
{
    free(kernel->state);
}

/*
 * True if all floats are f32, as the precision pass leaves them; labels and indices are integers.
 */
static bool is_plain(const pons_request *r)
{
    bool plain = r->output[0].type == PONS_F32;

    for (int i = 0; i < r->input_count; i++)
        plain = plain && (r->input[i].type == PONS_F32 || r->input[i].type == PONS_U8
                          || r->input[i].type == PONS_I32);
    return plain;
}

pons_status op_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                       bool *supported, pons_error *err)
{
    const pons_op_attributes *op = request->attributes;
    pons_shape s = request->output[0].shape;
    int64_t last = s.rank > 0 ? s.extent[s.rank - 1] : 1, count = 1;
    op_kernel *k;

    *supported = is_plain(request);
    if (!*supported)
        return PONS_OK;
    k = malloc(sizeof *k);
    if (k == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < s.rank; i++)
        count *= s.extent[i];
    *k = (op_kernel){ .request = request, .op = op, .rows = count / last,
                      .threads = op->operations->sliced ? device->threads : 1 };
    k->part = op->operations->sliced ? ceil_div_i64(SLICE, last) : k->rows;
    *kernel = (pons_kernel){ .run = kernel_run, .free = kernel_free, .state = k,
                             .implementation = "plugin" };
    return PONS_OK;
}
