/*
 * check_choice.c - the table of convolution solvers (select.c), on random convolutions in all three
 * directions.
 *
 * Every instruction set selects a solver. Kernels of sets that this processor lacks are prepared
 * and never run. The result of a kernel that runs is compared with the reference kernel. Tensors
 * hold whole numbers from -2 to 2, so each product and sum is exact in float. Winograd kernels
 * round sums of up to 4 points and quarters of sums of 9 weights to bf16, and those are exact, too.
 * So all solvers have the same bits.
 */
#include "cpu/conv/conv_testing.h"
#include "cpu/cpu_testing.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "support/graph/convolutions.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>

enum { ROUNDS = 60 };

static uint64_t state;

static int random_below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static const pons_kernel_kind kinds[] = { PONS_KERNEL_CONVOLUTION,
                                          PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
                                          PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT };

/* ---- shapes ---------------------------------------------------------------------------------- */

static void random_axis(sliding *s, int i, bool same, int kernel, int stride)
{
    static const int extents[] = { 1, 2, 3, 4, 5, 6, 7, 9, 12 };

    s->kernel[i] = same ? kernel : 1 + random_below(3);
    s->stride[i] = same ? stride : 1 + random_below(3);
    s->dilation[i] = random_below(8) == 0 ? 2 : 1;
    s->low[i] = same ? (kernel - 1) / 2 : random_below(s->kernel[i]);
    s->high[i] = same ? s->low[i] : random_below(s->kernel[i] + 1);
    do {
        s->extent[i] = extents[random_below(9)];
    } while (sliding_extent(s, i) < 1);
}

/* Shapes for all families: few channels on a side, channels of networks, and odd numbers. */
static sliding random_sliding(pons_kernel_kind kind, pons_type type)
{
    static const int channels[] = { 1, 2, 3, 4, 5, 8, 12, 16, 16, 17, 32, 32, 33, 48 };
    sliding s = { .kind = kind, .cases = 1 + random_below(2), .type = type };
    bool same = random_below(3) > 0;
    int kernel = random_below(4) == 0 ? 1 : 3, stride = 1 + random_below(2);

    s.in = channels[random_below(14)];
    s.out = channels[random_below(14)];
    for (int i = 0; i < 3; i++)
        random_axis(&s, i, same, kernel, stride);
    return s;
}

/* ---- devices --------------------------------------------------------------------------------- */

static cpu_device *device_new(const pons_device_settings *settings, isa set)
{
    pons_error err = PONS_ERROR_INIT;
    void *device;

    ck_assert_msg(cpu_operations.open(settings, &device, &err) == PONS_OK, "%s", err.text);
    cpu_device_choose_isa(device, set);
    return device;
}

static const pons_device_settings two_threads = { .count = 1, .threads = 2 };

static bool is_listed(const char *name)
{
    for (int i = 0; conv_solver_at(i) != NULL; i++)
        if (strcmp(conv_solver_at(i)->name, name) == 0)
            return true;
    return false;
}

static pons_kernel select_kernel(cpu_device *d, const pons_request *r)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { .run = NULL };
    bool supported = false;

    ck_assert_msg(convolution_prepare(d, r, &k, &supported, &err) == PONS_OK, "%s", err.text);
    ck_assert(supported);
    ck_assert_msg(is_listed(k.implementation), "'%s' is in no table", k.implementation);
    return k;
}

static bool is_supported(const char *name, cpu_device *d, const pons_request *r)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { .run = NULL };
    bool supported = false;

    ck_assert_msg(conv_prepare_by(name, d, r, &k, &supported, &err) == PONS_OK, "%s", err.text);
    if (supported)
        k.free(&k);
    return supported;
}

/* ---- choices --------------------------------------------------------------------------------- */

START_TEST(each_isa_selects_a_solver_that_fits_its_workspace)
{
    static const size_t limits[] = { 0, 1, 1 << 16, 1 << 20 };
    static const char last[] = "direct"; /* the fallback, selected whatever its workspace */

    for (isa set = ISA_BASELINE; set <= ISA_AMX; set++) {
        cpu_device *d = device_new(&two_threads, set);

        state = 1;
        for (int round = 0; round < 200; round++) {
            sliding s = random_sliding(kinds[round % 3], random_below(2) == 0 ? PONS_F32
                                       : PONS_BF16);
            sliding_request r;
            pons_kernel k;

            sliding_make(&s, &r);
            r.request.packable = s.kind == kinds[2] ? 0 : 2;
            d->settings.workspace_limit = limits[random_below(4)];
            k = select_kernel(d, &r.request);
            ck_assert_msg(is_supported(k.implementation, d, &r.request), "set %d: %s", (int)set,
                          k.implementation);
            ck_assert(d->settings.workspace_limit == 0 || strcmp(k.implementation, last) == 0 ||
                      k.scratch_size <= d->settings.workspace_limit);
            k.free(&k);
        }
        cpu_operations.close(d);
    }
}
END_TEST

/* ---- results --------------------------------------------------------------------------------- */

static void *tensor_new(const pons_tensor *t)
{
    size_t size = (size_t)tensor_count(t) * map_type_size(t->type);
    void *memory = malloc(size);

    ck_assert_ptr_nonnull(memory);
    memset(memory, 0xff, size); /* NaN */
    return memory;
}

static void *random_whole_numbers(const pons_tensor *t)
{
    void *memory = tensor_new(t);

    for (int64_t i = 0; i < tensor_count(t); i++)
        map_number_store(t->type, memory, i, (float)(random_below(5) - 2));
    return memory;
}

/* Run the kernel and free it. */
static void run(pons_kernel *k, void *const in[2], void *out)
{
    pons_error err = PONS_ERROR_INIT;
    size_t size = (k->scratch_size + 63) / 64 * 64, packed_size = (k->pack_size[1] + 63) / 64 * 64;
    void *scratch = aligned_alloc(256, (size + 255) / 256 * 256 + 256);
    void *packed = aligned_alloc(256, (packed_size + 255) / 256 * 256 + 256);
    void *input[2] = { in[0], k->pack_size[1] > 0 ? packed : in[1] };
    pons_call call = { input, &out, scratch, NULL };

    memset(scratch, 0xff, size);
    if (k->pack_size[1] > 0)
        ck_assert(k->pack(k, 1, in[1], packed, &err) == PONS_OK);
    ck_assert_msg(k->run(k, &call, &err) == PONS_OK, "%s", err.text);
    if (k->free != NULL)
        k->free(k);
    free(scratch);
    free(packed);
}

static void *reference_result(const pons_request *r, void *const in[2])
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { .run = NULL };
    void *out = tensor_new(r->output);
    bool supported;
    device d;

    device_reference(&d, false);
    ck_assert(d.operations->prepare(d.handle, r, &k, &supported, &err) == PONS_OK && supported);
    run(&k, in, out);
    return out;
}

static void expect_exact_result(const sliding *s, const pons_tensor *t, const void *found,
                                const void *truth, const char *name)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        float is = map_number_load(t->type, found, i), should = map_number_load(t->type, truth, i);

        ck_assert_msg(is == should, "%s, kind %d, type %d, %d x %d %d %d, %d to %d channels, "
                      "kernel %d %d %d, stride %d %d %d: element %ld is %g, not %g", name,
                      (int)s->kind, (int)s->type, s->cases, s->extent[0], s->extent[1],
                      s->extent[2], s->in, s->out, s->kernel[0], s->kernel[1], s->kernel[2],
                      s->stride[0], s->stride[1], s->stride[2], (long)i, (double)is,
                      (double)should);
    }
}

/* A shape with its tensors and the reference's result. */
typedef struct sample {
    sliding s;
    sliding_request r;
    void *in[2], *truth;
} sample;

static void sample_init(sample *p, pons_kernel_kind kind, pons_type type)
{
    p->s = random_sliding(kind, type);
    sliding_make(&p->s, &p->r);
    for (int i = 0; i < 2; i++)
        p->in[i] = random_whole_numbers(&p->r.input[i]);
    p->truth = reference_result(&p->r.request, p->in);
    p->r.request.packable = kind == kinds[2] || random_below(2) == 0 ? 0 : 2;
}

static void sample_clear(sample *p)
{
    free(p->in[0]);
    free(p->in[1]);
    free(p->truth);
}

static void sample_agrees(const sample *p, pons_kernel *k)
{
    void *out = tensor_new(p->r.output);
    const char *name = k->implementation;

    run(k, p->in, out);
    expect_exact_result(&p->s, p->r.output, out, p->truth, name);
    free(out);
}

START_TEST(the_selected_solver_equals_the_reference)
{
    for (isa set = ISA_BASELINE; set <= isa_best(); set++) {
        cpu_device *d = device_new(&two_threads, set);

        state = 2;
        for (int round = 0; round < ROUNDS; round++) {
            sample p;
            pons_kernel k;

            sample_init(&p, kinds[round % 3], random_below(2) == 0 ? PONS_F32 : PONS_BF16);
            k = select_kernel(d, &p.r.request);
            sample_agrees(&p, &k);
            sample_clear(&p);
        }
        cpu_operations.close(d);
    }
}
END_TEST

/* Number of shapes that the solver supports. */
static int solver_agrees(const char *name, cpu_device *d)
{
    int taken = 0;

    state = 3;
    for (int round = 0; round < ROUNDS; round++) {
        pons_error err = PONS_ERROR_INIT;
        pons_kernel k = { .run = NULL };
        bool supported = false;
        sample p;

        sample_init(&p, kinds[round % 3], random_below(3) == 0 ? PONS_F32 : PONS_BF16);
        ck_assert_msg(conv_prepare_by(name, d, &p.r.request, &k, &supported, &err) == PONS_OK,
                      "%s", err.text);
        if (supported)
            sample_agrees(&p, &k);
        taken += supported;
        sample_clear(&p);
    }
    return taken;
}

/* Solvers are compared on shapes where another one is faster, too. */
START_TEST(every_solver_of_this_processor_equals_the_reference)
{
    cpu_device *d = device_new(&two_threads, isa_best());

    for (int i = 0; conv_solver_at(i) != NULL; i++) {
        const conv_solver *s = conv_solver_at(i);

        if (s->isa > isa_best() || (i > 0 && strcmp(s->name, conv_solver_at(i - 1)->name) == 0) ||
            (strcmp(s->name, "onednn") == 0 && d->library == NULL))
            continue;
        ck_assert_msg(solver_agrees(s->name, d) > 0, "%s supports no shape", s->name);
    }
    cpu_operations.close(d);
}
END_TEST

/* oneDNN 2.6.3 divides by 0 when it plans these for tile registers: patches of many values. */
START_TEST(convolutions_of_many_values_are_planned)
{
    cpu_device *d = device_new(&two_threads, isa_best());

    for (int i = 0; i < 2; i++) {
        sliding s = { .kind = kinds[i], .cases = 1, .extent = { 64, 512, 32 }, .in = 160,
                      .out = 256, .kernel = { 3, 3, 3 }, .stride = { 1, 1, 1 },
                      .dilation = { 1, 1, 1 }, .low = { 1, 1, 1 }, .high = { 1, 1, 1 },
                      .type = PONS_BF16 };
        sliding_request r;

        sliding_make(&s, &r);
        ck_assert(d->library == NULL || isa_best() < ISA_AVX512BF16 ||
                  is_supported("onednn", d, &r.request));
    }
    cpu_operations.close(d);
}
END_TEST

/* A shape that Winograd is selected for. */
static const sliding good_for_winograd = { .cases = 1, .extent = { 8, 24, 24 }, .in = 32,
                                           .out = 32, .kernel = { 3, 3, 3 },
                                           .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 },
                                           .low = { 1, 1, 1 }, .high = { 1, 1, 1 },
                                           .type = PONS_BF16 };

static bool is_winograd_of(pons_type type, const pons_device_settings *settings, isa set,
                           pons_kernel_kind kind)
{
    cpu_device *d = device_new(settings, set);
    sliding s = good_for_winograd;
    sliding_request r;
    pons_kernel k;
    bool is;

    s.kind = kind;
    s.type = type;
    sliding_make(&s, &r);
    k = select_kernel(d, &r.request);
    is = strcmp(k.implementation, "winograd") == 0;
    k.free(&k);
    cpu_operations.close(d);
    return is;
}

/* The same answer for both types. */
static bool is_winograd(const pons_device_settings *settings, isa set, pons_kernel_kind kind)
{
    bool is = is_winograd_of(PONS_BF16, settings, set, kind);

    ck_assert_int_eq(is_winograd_of(PONS_F32, settings, set, kind), is);
    return is;
}

START_TEST(winograd_needs_avx512_bf16_and_a_workspace)
{
    pons_device_settings small = two_threads;

    small.workspace_limit = 1;
    for (int i = 0; i < 3; i++) {
        ck_assert(is_winograd(&two_threads, ISA_AVX512BF16, kinds[i]));
        ck_assert(!is_winograd(&small, ISA_AVX512BF16, kinds[i]));
        ck_assert(!is_winograd(&two_threads, ISA_AVX512, kinds[i]));
        ck_assert(!is_winograd(&two_threads, ISA_AMX, kinds[i]));
    }
}
END_TEST

static const pons_device_settings no_winograd = { .count = 1, .threads = 2, .no_winograd = true };

START_TEST(winograd_can_be_switched_off)
{
    for (int i = 0; i < 3; i++)
        ck_assert(!is_winograd(&no_winograd, ISA_AVX512BF16, kinds[i]));
}
END_TEST

/* A tensor of numbers between -1 and 1 with 8 bits. */
static void *random_fractions(const pons_tensor *t)
{
    void *memory = tensor_new(t);

    for (int64_t i = 0; i < tensor_count(t); i++)
        map_number_store(t->type, memory, i, (float)(random_below(255) - 127) / 128);
    return memory;
}

static void *chosen_result(const pons_device_settings *settings, const pons_request *r,
                           void *const in[2])
{
    cpu_device *d = device_new(settings, isa_best());
    void *out = tensor_new(r->output);
    pons_kernel k = select_kernel(d, r);

    run(&k, in, out);
    cpu_operations.close(d);
    return out;
}

/*
 * Tolerance for the order of sums in float, plus one step of bf16 for results between two bf16
 * values.
 */
static bool is_near(const pons_tensor *t, const void *found, const void *truth)
{
    float step = t->type == PONS_BF16 ? 0x1p-7f : 0, largest = 0;
    bool near = true;

    for (int64_t i = 0; i < tensor_count(t); i++)
        largest = fmaxf(largest, fabsf(map_number_load(t->type, truth, i)));
    for (int64_t i = 0; i < tensor_count(t); i++) {
        float a = map_number_load(t->type, truth, i), b = map_number_load(t->type, found, i);
        near = near && fabsf(a - b) <= (float)FLOAT_OF_LARGEST * largest + step * fabsf(a);
    }
    return near;
}

START_TEST(without_winograd_results_equal_direct_sums)
{
    for (int i = 0; i < 3; i++) {
        sliding s = good_for_winograd;
        sliding_request r;
        void *in[2], *truth, *found;

        s.kind = kinds[i];
        sliding_make(&s, &r);
        state = 4;
        in[0] = random_fractions(&r.input[0]);
        in[1] = random_fractions(&r.input[1]);
        truth = reference_result(&r.request, in);
        found = chosen_result(&no_winograd, &r.request, in);
        ck_assert(is_near(r.output, found, truth));
        free(found);
        found = chosen_result(&two_threads, &r.request, in);
        if (i == 2 && isa_best() == ISA_AVX512BF16)
            ck_assert(!is_near(r.output, found, truth)); /* the control: Winograd rounds */
        free(found);
        free(truth);
        free(in[0]);
        free(in[1]);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("choice");

    tcase_add_test(c, the_selected_solver_equals_the_reference);
    tcase_add_test(c, convolutions_of_many_values_are_planned);
    tcase_add_test(c, every_solver_of_this_processor_equals_the_reference);
    tcase_add_test(c, without_winograd_results_equal_direct_sums);
    if (isa_rows_built() == 1)  /* not x86: the solvers of other sets are absent */
        return suite_run();
    tcase_add_test(c, each_isa_selects_a_solver_that_fits_its_workspace);
    tcase_add_test(c, winograd_needs_avx512_bf16_and_a_workspace);
    tcase_add_test(c, winograd_can_be_switched_off);
    return suite_run();
}
