/*
 * reference_op.c - the function of an op plugin on the reference device (R13), on one thread.
 *
 * The plugin computes in float or double. Tensors of another float type (as in tests that keep
 * everything in 16 bits) are copied before and after. Integers are passed on unchanged.
 */
#include <pons/op.h>

#include "base/integer.h"
#include "graph/reference/reference_internal.h"

static bool is_real(pons_type type)
{
    return type == PONS_F64 || type == PONS_F32 || type == PONS_BF16 || type == PONS_F16;
}

static size_t copy_size(const reference_kernels *k, const pons_tensor *t)
{
    if (t->type == k->real_type || !is_real(t->type))
        return 0;
    return round_up_size((size_t)shape_count(t->shape) * k->real_size, 64);
}

size_t reference_op_scratch(const reference_kernels *k, const pons_request *r)
{
    size_t size = copy_size(k, &r->output[0]);

    for (int i = 0; i < r->input_count; i++)
        size += copy_size(k, &r->input[i]);
    return size;
}

static void convert_tensor(pons_type from_type, const void *from, pons_type to_type, void *to,
                           int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        number_store(to_type, to, i, number_load(from_type, from, i));
}

void reference_op_run(const reference_kernels *k, const pons_request *r, const pons_call *call)
{
    const pons_op_attributes *op = r->attributes;
    char *scratch = call->scratch;
    const void *from[PONS_OP_INPUTS_MAX];
    size_t size = copy_size(k, &r->output[0]);
    pons_shape s = r->output[0].shape;
    int64_t count = shape_count(s);
    pons_op_call c = { .config = op->config, .input = r->input, .from = from, .shape = s,
                       .to = size > 0 ? scratch : call->output[0],
                       .end = s.rank > 0 ? count / s.extent[s.rank - 1] : 1 };

    scratch += size;
    for (int i = 0; i < r->input_count; i++) {
        size = copy_size(k, &r->input[i]);
        from[i] = size > 0 ? scratch : call->input[i];
        if (size > 0)
            convert_tensor(r->input[i].type, call->input[i], k->real_type, scratch,
                           shape_count(r->input[i].shape));
        scratch += size;
    }
    (k->real_type == PONS_F64 ? op->operations->run_double : op->operations->run_float)(&c);
    if (c.to != call->output[0])
        convert_tensor(k->real_type, c.to, r->output[0].type, call->output[0], count);
}
