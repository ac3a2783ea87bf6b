/*
 * kernel_trial.c - run a request twice and compare, see kernel_trial.h.
 */
#include "support/graph/kernel_trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/ir/node.h"
#include "graph/ir/shape.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "support/asserts.h"
#include "support/guarded.h"
#include "support/tolerance.h"

static uint64_t trial_state;

void trial_seed(uint64_t seed) { trial_state = seed; }

int64_t trial_draw(int64_t n)
{
    uint64_t z = trial_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((z ^ z >> 31) % (uint64_t)n);
}

static size_t tensor_size(const pons_tensor *x)
{
    return (size_t)shape_count(x->shape) * map_type_size(x->type);
}

static void fill_tensor(const trial *t, const pons_tensor *x, void *memory)
{
    int64_t count = shape_count(x->shape);

    for (int64_t i = 0; i < count; i++)
        switch (x->type) {
        case PONS_U8: ((uint8_t *)memory)[i] = (uint8_t)trial_draw(256); break;
        case PONS_I32:
            ((int32_t *)memory)[i] = t->most > 0 ? (int32_t)(trial_draw(t->most + 2) - 1)
                                                 : (int32_t)trial_draw(1 << 24) - (1 << 23);
            break;
        default:
            map_number_store(x->type, memory, i,
                             t->whole ? (float)trial_draw(5) - 2
                                      : (float)trial_draw(1 << 20) * 0x1p-19f - 1);
        }
}

/* Run a kernel between guard pages, and copy its output. */
static void run(const pons_kernel *k, const trial *t, void *const *input, void *output, bool at_end)
{
    pons_error err = PONS_ERROR_INIT;
    guarded in[TRIAL_INPUTS], out = guarded_new(tensor_size(&t->output), at_end);
    guarded scratch = guarded_new((k->scratch_size + 63) / 64 * 64, at_end), packed;
    void *place[TRIAL_INPUTS];
    pons_call call = { place, &out.memory, scratch.memory, NULL };

    for (int i = 0; i < t->input_count; i++) {
        in[i] = guarded_new(tensor_size(&t->input[i]), at_end);
        memcpy(in[i].memory, input[i], tensor_size(&t->input[i]));
        place[i] = in[i].memory;
    }
    memset(out.memory, 0x5a, out.size);
    memset(scratch.memory, 0xff, scratch.size); /* NaN in every float */
    if (k->pack_size[1] > 0) {
        packed = guarded_new(k->pack_size[1], at_end);
        ck_assert_int_eq(k->pack(k, 1, place[1], packed.memory, &err), PONS_OK);
        place[1] = packed.memory;
    }
    ck_assert_msg(k->run(k, &call, &err) == PONS_OK, "%s", err.text);
    memcpy(output, out.memory, out.size);
    if (k->pack_size[1] > 0)
        guarded_free(&packed);
    for (int i = 0; i < t->input_count; i++)
        guarded_free(&in[i]);
    guarded_free(&scratch);
    guarded_free(&out);
}

/* Describe types and extents of inputs and output. */
static void describe_tensors(const trial *t, char *to, size_t size)
{
    size_t used = 0;

    to[0] = '\0';
    for (int i = 0; i <= t->input_count && used < size; i++) {
        const pons_tensor *x = i < t->input_count ? &t->input[i] : &t->output;

        used += (size_t)snprintf(to + used, size - used, "%stype %d", i > 0 ? ", " : "",
                                 (int)x->type);
        for (int k = 0; k < x->shape.rank && used < size; k++)
            used += (size_t)snprintf(to + used, size - used, " %lld",
                                     (long long)x->shape.extent[k]);
    }
}

static void outputs_agree(const trial *t, const void *expected, const void *found,
                          const char *where)
{
    int64_t count = shape_count(t->output.shape);
    double most = 1e-2, step = t->output.type == PONS_BF16 ? 0x1p-7 : 0; /* one step of bf16 */
    char shapes[400];

    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)map_number_load(t->output.type, expected, i)));
    for (int64_t i = 0; i < count; i++) {
        double a = (double)map_number_load(t->output.type, expected, i);
        double b = (double)map_number_load(t->output.type, found, i);
        if (fabs(a - b) <= FLOAT_OF_LARGEST * most + step * fabs(a))
            continue;
        describe_tensors(t, shapes, sizeof shapes);
        ck_abort_msg("%s: element %lld of kind %d is %.9g, expected %.9g (%s)", where, (long long)i,
                     (int)t->kind, b, a, shapes);
    }
}

/* The error of random sums is that of short chains. */
static void rounding_is_small(const trial *t, const float *expected, const float *found,
                              const char *where)
{
    double most = CHAIN_ROUNDING * sqrt((t->chain + (double)t->products / t->chain) / 2);
    const int64_t *x = t->input[0].shape.extent, *y = t->output.shape.extent;
    double error = 0, size = 0;

    for (int64_t i = 0; i < shape_count(t->output.shape); i++) {
        double away = (double)found[i] - (double)expected[i];
        error += away * away;
        size += (double)expected[i] * (double)expected[i];
    }
    printf("%s, kind %d, %lld channels to %lld: away by %.2f of 2^-24 of their size, at most "
           "%.2f\n", where, (int)t->kind, (long long)x[4], (long long)y[4],
           0x1p24 * sqrt(error / size), 0x1p24 * most);
    ck_assert_msg(sqrt(error / size) <= most, "%s: sums of kind %d are away by %.3g of their size, "
                  "not %.3g", where, (int)t->kind, sqrt(error / size), most);
}

static void reference_run(const trial *t, const pons_request *r, void *const *input, void *output)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { 0 };
    bool supported;
    device reference;

    device_reference(&reference, false);
    ck_assert_int_eq(reference.operations->prepare(reference.handle, r, &k, &supported, &err),
                     PONS_OK);
    ck_assert(supported);
    run(&k, t, input, output, true);
    k.free(&k);
}

/* Prepare and run the kernel of one row; false: it is declined. */
static bool kernel_run(const trial *t, const pons_request *r, trial_prepare prepare, int row,
                       int threads, void *const *input, void *output)
{
    const pons_device_settings settings = { .count = 1, .threads = threads };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { 0 };
    bool supported;
    void *device;

    ck_assert_int_eq(cpu_operations.open(&settings, &device, &err), PONS_OK);
    cpu_device_choose_row(device, row);
    ck_assert_msg(prepare(device, r, &k, &supported, &err) == PONS_OK, "%s", err.text);
    ck_assert_msg(supported || t->library, "kind %d is declined", (int)t->kind);
    if (supported) {
        ck_assert_int_eq(strcmp(k.implementation, "onednn") == 0, t->library);
        run(&k, t, input, output, threads == 1);
        k.free(&k);
    }
    cpu_operations.close(device);
    return supported;
}

bool trial_agrees(const trial *t, trial_prepare prepare)
{
    const pons_request request = { .kind = t->kind, .name = "trial", .input_count = t->input_count,
                                   .output_count = 1, .input = t->input, .output = &t->output,
                                   .attributes = t->attributes,
                                   .packable = t->packs ? 2u : 0 };
    size_t size = tensor_size(&t->output);
    char *expected = malloc(size + 1), *one = malloc(size + 1), *two = malloc(size + 1);
    void *input[TRIAL_INPUTS] = { NULL };
    bool supported = true;
    char where[64];

    for (int i = 0; i < t->input_count; i++) {
        input[i] = malloc(tensor_size(&t->input[i]) + 1);
        fill_tensor(t, &t->input[i], input[i]);
    }
    reference_run(t, &request, input, expected);
    for (int row = t->library ? isa_rows_count() - 1 : 0; row < isa_rows_count(); row++) {
        snprintf(where, sizeof where, "row %d", row);
        supported = kernel_run(t, &request, prepare, row, 1, input, one) &&
                    kernel_run(t, &request, prepare, row, 2, input, two);
        if (!supported)
            break;
        if (t->library)
            outputs_agree(t, expected, two, where);
        else
            ck_assert_msg(memcmp(one, two, size) == 0, "%s: bits depend on threads", where);
        if (t->exact)
            ck_assert_msg(memcmp(one, expected, size) == 0, "%s: kind %d is not exact", where,
                          (int)t->kind);
        else
            outputs_agree(t, expected, one, where);
        if (t->products > 0)
            rounding_is_small(t, (float *)expected, (float *)one, where);
    }
    for (int i = 0; i < t->input_count; i++)
        free(input[i]);
    free(expected);
    free(one);
    free(two);
    return supported;
}
