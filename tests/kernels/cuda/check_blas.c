/*
 * check_blas.c - matrix products of the cuda device by cuBLASLt, whose library is that of
 * tests/fake: their values, the selected algorithm, and errors. If the library's headers are
 * installed, its constants are compared with ours. If the library is installed, it is given
 * descriptors of products, for which it needs no GPU. On a real GPU the library selects its
 * algorithms itself.
 */
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/reference/reference.h"
#include "graph/storage/staging.h"
#include "support/graph/card_trial.h"
#include "support/graph/fakes.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)
SAME(BLAS_F32, CUDA_R_32F);
SAME(BLAS_F16, CUDA_R_16F);
SAME(BLAS_BF16, CUDA_R_16BF);
SAME(BLAS_SUMS_F32, CUBLAS_COMPUTE_32F);
SAME(BLAS_SUMS_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(BLAS_TRANSPOSE_FIRST, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(BLAS_TRANSPOSE_SECOND, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(false, CUBLAS_OP_N);
SAME(true, CUBLAS_OP_T);
SAME(BLAS_BATCH, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(BLAS_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(BLAS_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(BLAS_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(BLAS_ALIGNMENT_FIRST, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(BLAS_ALIGNMENT_SECOND, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(BLAS_ALIGNMENT_ADDED, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(BLAS_ALIGNMENT_RESULT, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(BLAS_REDUCTION_IN_PLACE, CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME(BLAS_REDUCTION_AS_FLOAT, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(BLAS_REDUCTION_AS_RESULT, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
SAME(BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(sizeof(cublaslt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(cublaslt_choice), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(cublaslt_choice, workspace), offsetof(cublasLtMatmulHeuristicResult_t,
                                                    workspaceSize));
SAME(offsetof(cublaslt_choice, status), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(offsetof(cublaslt_choice, waves), offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
#endif

/*
 * Algorithms in the made-up library's order. Partial sums are stored as the result's type, in
 * place, or as float (4096 bytes); the last algorithm has none (256 bytes).
 */
enum { AS_RESULT = 0, IN_PLACE, AS_FLOAT, NO_PARTS };

static long execution_count(int algorithm)
{
    long (*count)(int) = NULL;

    *(void **)&count = fakes_function("fake_blas_executed");
    ck_assert_ptr_nonnull(count);
    return count(algorithm);
}

static device gpu; /* open during each test, with the settings that most of them need */

static void open_gpu(void) { gpu = gpu_open(&(pons_device_settings){ .count = 1 }); }
static void close_gpu(void) { cuda_operations.close(gpu.handle); }

/* ---- numbers --------------------------------------------------------------------------------- */

static const struct {
    pons_shape a, b;
    bool transpose_a, transpose_b;
} products[] = {
    { { 2, { 8, 16 } }, { 2, { 16, 24 } }, false, false },
    { { 2, { 16, 8 } }, { 2, { 16, 24 } }, true, false },
    { { 2, { 8, 16 } }, { 2, { 24, 16 } }, false, true },
    { { 2, { 16, 8 } }, { 2, { 24, 16 } }, true, true },
    { { 2, { 1, 7 } }, { 2, { 7, 1 } }, false, false },
    { { 2, { 5, 1 } }, { 2, { 3, 1 } }, false, true },
    { { 3, { 4, 3, 5 } }, { 3, { 4, 5, 7 } }, false, false },
    { { 4, { 2, 3, 5, 3 } }, { 4, { 2, 3, 7, 5 } }, true, true },
};
enum { PRODUCTS = sizeof products / sizeof *products };

typedef struct trio {
    pons_graph *g;
    pons_node *a, *b, *y;
} trio;

static trio build_products(int i)
{
    trio t = { .g = graph_new(true) };

    t.a = node_input(t.g, "a", PONS_F32, products[i].a);
    t.b = node_input(t.g, "b", PONS_F32, products[i].b);
    t.y = pons_matmul(t.g, t.a, t.b, products[i].transpose_a, products[i].transpose_b);
    return t;
}

static evaluation *filled_evaluation(const trio *t, const device *d, pons_type storage)
{
    return evaluation_filled(t->g, d, storage, 2, (pons_node *[]){ t->a, t->b });
}

static void products_agree(int i, const device *d, pons_type storage, const char *by,
                           double tolerance)
{
    evaluation *expected, *found;
    char name[32];
    device wide;
    trio t = build_products(i);

    device_reference(&wide, true);
    expected = filled_evaluation(&t, &wide, storage);
    found = filled_evaluation(&t, d, storage);
    ck_assert_str_eq(evaluation_implementation(found, t.y), by);
    expect_run(expected);
    expect_run(found);
    snprintf(name, sizeof name, "product %d", i);
    expect_near(name, t.y, expected, found, tolerance);
    evaluation_free(expected);
    evaluation_free(found);
    graph_free(t.g);
}

START_TEST(matrix_products_are_computed_by_cublaslt)
{
    static const struct { pons_type type; double tolerance; } storage[] = {
        { PONS_F32, FLOAT_OF_LARGEST }, { PONS_BF16, BF16_OF_LARGEST },
        { PONS_F16, BF16_OF_LARGEST }
    };

    for (int i = 0; i < PRODUCTS; i++)
        products_agree(i, &gpu, storage[_i].type, "cublas", storage[_i].tolerance);
}
END_TEST

/* ---- a request of its own -------------------------------------------------------------------- */

/* A product of the transpose of a and b, each 16 x 8. */
enum { DEPTH = 16, WIDTH = 8, FACTOR = DEPTH * WIDTH, RESULT = WIDTH * WIDTH };

typedef struct asked {
    pons_tensor factor[2], result;
    pons_matmul_attributes attributes;
    pons_request request;
} asked;

static void make_request(asked *q, pons_type factors, pons_type result)
{
    for (int i = 0; i < 2; i++)
        q->factor[i] = (pons_tensor){ factors, { 2, { DEPTH, WIDTH } } };
    q->result = (pons_tensor){ result, { 2, { WIDTH, WIDTH } } };
    q->attributes = (pons_matmul_attributes){ true, false };
    q->request = (pons_request){ .kind = PONS_KERNEL_MATMUL, .name = "y", .input_count = 2,
                                 .output_count = 1, .input = q->factor, .output = &q->result,
                                 .attributes = &q->attributes };
}

static bool is_supported(const device *d, const asked *q, pons_kernel *k)
{
    pons_error err = PONS_ERROR_INIT;
    bool supported = false;

    ck_assert_msg(cublaslt_prepare(d->handle, &q->request, k, &supported, &err) == PONS_OK, "%s",
                  err.text);
    return supported;
}

/* The bf16 of a value, which is the upper half of the float. */
static uint16_t bf16_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

START_TEST(gradients_of_bf16_factors_may_be_float)
{
    uint16_t a[FACTOR], b[FACTOR];
    float expected[RESULT] = { 0 }, found[RESULT];
    pons_kernel k = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    void *in[2], *out;
    asked q;

    make_request(&q, PONS_BF16, PONS_F32);
    ck_assert(is_supported(&gpu, &q, &k));
    for (int i = 0; i < FACTOR; i++) {
        a[i] = bf16_of((float)(i % 7));
        b[i] = bf16_of((float)(i % 5 - 2));
        for (int column = 0; column < WIDTH; column++)
            expected[i % WIDTH * WIDTH + column]
                += (float)(i % 7) * (float)((i / WIDTH * WIDTH + column) % 5 - 2);
    }
    in[0] = cuda_operations.memory.allocate(gpu.handle, sizeof a, &err);
    in[1] = cuda_operations.memory.allocate(gpu.handle, sizeof b, &err);
    out = cuda_operations.memory.allocate(gpu.handle, sizeof found, &err);
    void *scratch = cuda_operations.memory.allocate(gpu.handle, k.scratch_size, &err);
    ck_assert_int_eq(staging_write(&gpu, in[0], a, sizeof a, &err), PONS_OK);
    ck_assert_int_eq(staging_write(&gpu, in[1], b, sizeof b, &err), PONS_OK);
    const pons_call call = { .input = in, .output = &out, .scratch = scratch };
    ck_assert_msg(k.run(&k, &call, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(staging_read(&gpu, found, out, sizeof found, &err), PONS_OK);
    ck_assert_mem_eq(found, expected, sizeof found);
    cuda_operations.memory.release(gpu.handle, scratch, k.scratch_size);
    cuda_operations.memory.release(gpu.handle, out, sizeof found);
    cuda_operations.memory.release(gpu.handle, in[1], sizeof b);
    cuda_operations.memory.release(gpu.handle, in[0], sizeof a);
    k.free(&k);
}
END_TEST

START_TEST(factors_of_two_types_use_the_generated_kernel)
{
    pons_kernel k = { .run = NULL };
    asked q;

    make_request(&q, PONS_F32, PONS_F32);
    q.factor[1].type = PONS_BF16;
    ck_assert(!is_supported(&gpu, &q, &k));
    make_request(&q, PONS_F32, PONS_BF16);
    ck_assert(!is_supported(&gpu, &q, &k));
}
END_TEST

/* ---- algorithms ------------------------------------------------------------------------------ */

static void expect_algorithm(size_t workspace_limit, int algorithm)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .workspace_limit = workspace_limit });
    long before = execution_count(algorithm);

    products_agree(0, &d, PONS_F32, "cublas", FLOAT_OF_LARGEST);
    ck_assert_int_eq(execution_count(algorithm) - before, 1);
    cuda_operations.close(d.handle);
}

START_TEST(partial_sums_are_float_in_a_bounded_workspace)
{
    expect_algorithm(0, AS_FLOAT);
    expect_algorithm(4096, AS_FLOAT);
    expect_algorithm(4095, NO_PARTS);
    ck_assert_int_eq(execution_count(AS_RESULT) + execution_count(IN_PLACE), 0);
}
END_TEST

START_TEST(a_product_without_algorithm_uses_the_generated_kernel)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .workspace_limit = 255 });

    products_agree(0, &d, PONS_F32, "nvrtc", FLOAT_OF_LARGEST);
    cuda_operations.close(d.handle);
}
END_TEST

static int sums_asked;
static int (*real_operation_new)(cublaslt_operation *, int, int);

static int note_sum_type(cublaslt_operation *out, int sums, int scale)
{
    sums_asked = sums;
    return real_operation_new(out, sums, scale);
}

START_TEST(only_tf32_rounds_float_factors)
{
    cublaslt_library *blas = &((cuda_device *)gpu.handle)->blas;
    asked q;

    make_request(&q, PONS_F32, PONS_F32);
    ck_assert(cublaslt_is_available(blas, ((cuda_device *)gpu.handle)->toolkit));
    real_operation_new = blas->operation_new;
    blas->operation_new = note_sum_type;
    for (int tf32 = 0; tf32 < 2; tf32++)
        for (int low = 0; low < 2; low++) {
            pons_kernel k = { .run = NULL };
            make_request(&q, low ? PONS_BF16 : PONS_F32, PONS_F32);
            q.request.tf32 = tf32;
            ck_assert(is_supported(&gpu, &q, &k));
            ck_assert_int_eq(sums_asked, tf32 && !low ? BLAS_SUMS_TF32 : BLAS_SUMS_F32);
            k.free(&k);
        }
}
END_TEST

/* ---- autotuning ------------------------------------------------------------------------------ */

/* Select an algorithm for a product; check its workspace and how often each algorithm ran. */
static void expect_choice(const device *d, notes *n, size_t workspace, int by_float,
                          int without_parts)
{
    const pons_autotune_cache tuning = { n, find_note, keep_note };
    long before[2] = { execution_count(AS_FLOAT), execution_count(NO_PARTS) };
    int left = fakes_left_over();
    pons_kernel k = { .run = NULL };
    asked q;

    make_request(&q, PONS_BF16, PONS_F32);
    cuda_operations.autotune(d->handle, &tuning);
    ck_assert(is_supported(d, &q, &k));
    ck_assert_uint_eq(k.scratch_size, workspace);
    ck_assert_int_eq(execution_count(AS_FLOAT) - before[0], by_float);
    ck_assert_int_eq(execution_count(NO_PARTS) - before[1], without_parts);
    k.free(&k);
    ck_assert_int_le(fakes_left_over(), left + 2); /* the device keeps two events */
    cuda_operations.autotune(d->handle, NULL);
}

/*
 * Runs of each algorithm: one, and three rounds of four. An algorithm that takes twice as long as
 * another one has a single round.
 */
enum { ALL = 1 + 3 * 4, HOPELESS = 1 + 4 };

START_TEST(the_fastest_algorithm_is_selected_and_reused)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUBLAS", "takes-2=3000 takes-3=1000", 1);
    expect_choice(&gpu, &n, 256, HOPELESS, ALL);
    ck_assert_str_eq(n.note[0].key,
                     "product cuBLASLt 130002 bf16 to fp32 transposed a 16 8 b 16 8");
    ck_assert_double_eq_tol(n.note[0].seconds, 1, 0.5);
    setenv("FAKE_CUBLAS", "takes-3=9000", 1);
    expect_choice(&gpu, &n, 256, 0, 0);
    ck_assert_int_eq(n.kept, 1);
}
END_TEST

START_TEST(a_stored_algorithm_that_is_not_proposed_is_replaced)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUBLAS", "takes-2=1000 takes-3=1900", 1);
    expect_choice(&gpu, &n, 4096, ALL, ALL);
    ((cuda_device *)gpu.handle)->workspace_limit = 4095;
    expect_choice(&gpu, &n, 256, 0, 0);
    ck_assert_int_eq(n.kept, 2);
    ck_assert(isnan(n.note[0].seconds));
}
END_TEST

START_TEST(an_algorithm_of_a_smaller_workspace_is_replaced)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .workspace_limit = 4095 });
    notes n = { .count = 0 };

    setenv("FAKE_CUBLAS", "takes-2=1000 takes-3=1900", 1);
    expect_choice(&d, &n, 256, 0, 0);
    ((cuda_device *)d.handle)->workspace_limit = 4096;
    expect_choice(&d, &n, 4096, ALL, ALL);
    ck_assert_int_eq(n.kept, 2);
    ((cuda_device *)d.handle)->workspace_limit = 5000;
    expect_choice(&d, &n, 4096, ALL, ALL);
    ck_assert_int_eq(n.kept, 3);
    ((cuda_device *)d.handle)->workspace_limit = 4096;
    expect_choice(&d, &n, 4096, 0, 0);
    ck_assert_int_eq(n.kept, 3);
    ck_assert_ptr_nonnull(strstr(n.note[0].choice, " within 5000"));
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(if_no_algorithm_runs_the_first_is_selected)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUBLAS", "refuses-2 refuses-3", 1);
    expect_choice(&gpu, &n, 4096, 0, 0);
    ck_assert_str_eq(n.note[0].choice, "");
    expect_choice(&gpu, &n, 4096, 0, 0);
    ck_assert_int_eq(n.kept, 1);
}
END_TEST

START_TEST(a_replica_without_cache_times_no_algorithm)
{
    notes n = { .count = 0 };
    const pons_autotune_cache tuning = { &n, find_note, NULL };
    long before = execution_count(AS_FLOAT) + execution_count(NO_PARTS);
    pons_kernel k = { .run = NULL };
    asked q;

    make_request(&q, PONS_F32, PONS_F32);
    cuda_operations.autotune(gpu.handle, &tuning);
    ck_assert(is_supported(&gpu, &q, &k));
    ck_assert_uint_eq(k.scratch_size, 4096);
    ck_assert_int_eq(execution_count(AS_FLOAT) + execution_count(NO_PARTS), before);
    k.free(&k);
}
END_TEST

enum { KINDS = 8 };

/* Requests that differ in each property on which the time of a product depends. */
static void make_request_of_kind(asked *q, int kind)
{
    static const pons_shape wide = { 2, { WIDTH, DEPTH } }, square = { 2, { WIDTH, WIDTH } };

    make_request(q, kind == 1 || kind == 2 ? PONS_BF16 : PONS_F32, kind == 2 ? PONS_BF16
                 : PONS_F32);
    q->request.tf32 = kind == 3;
    q->attributes.transpose_a = kind != 4;
    q->attributes.transpose_b = kind == 5 || kind == 7;
    if (kind == 4)
        q->factor[0].shape = wide;
    if (kind == 5)
        q->factor[1].shape = wide;
    if (kind > 5)
        q->factor[0].shape = q->factor[1].shape = square;
}

START_TEST(each_product_has_an_autotune_entry)
{
    notes n = { .count = 0 };
    const pons_autotune_cache tuning = { &n, find_note, keep_note };

    cuda_operations.autotune(gpu.handle, &tuning);
    for (int i = 0; i < 2 * KINDS; i++) {
        pons_kernel k = { .run = NULL };
        asked q;
        make_request_of_kind(&q, i % KINDS);
        ck_assert(is_supported(&gpu, &q, &k));
        k.free(&k);
    }
    ck_assert_int_eq(n.count, KINDS);
    ck_assert_int_eq(n.kept, KINDS);
}
END_TEST

/* ---- what goes wrong ------------------------------------------------------------------------- */

START_TEST(a_cublaslt_that_fails_to_start_is_not_used)
{
    char said[512];
    device d;

    setenv("FAKE_CUBLAS", "start", 1);
    d = gpu_open(&(pons_device_settings){ .count = 1 });
    for (int i = 0; i < PRODUCTS; i++)
        products_agree(i, &d, PONS_F32, "nvrtc", FLOAT_OF_LARGEST);
    cuda_operations.describe(d.handle, said, sizeof said);
    ck_assert_msg(strstr(said, ", no cuBLASLt (it does not start: the card does not answer)")
                  != NULL, "%s", said);
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(a_failing_product_ends_with_one_line)
{
    trio t = build_products(0);
    evaluation *e;
    device d;

    setenv("FAKE_CUBLAS", "run=1", 1);
    d = gpu_open(&(pons_device_settings){ .count = 1 });
    e = filled_evaluation(&t, &d, PONS_F32);
    expect_run_fails(e, "on device 'cuda:0': cuBLASLt says 13 (a kernel of the library ended)");
    evaluation_free(e);
    graph_free(t.g);
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(matrices_with_wrong_extents_are_refused)
{
    pons_kernel k = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    bool supported;
    asked q;

    make_request(&q, PONS_F32, PONS_F32);
    q.result.shape.extent[1] = WIDTH + 1;
    ck_assert_int_eq(cublaslt_prepare(gpu.handle, &q.request, &k, &supported, &err), PONS_DEVICE);
    ck_assert_str_eq(err.text, "cannot plan 'y' on device 'cuda:0': cuBLASLt says 7 (an argument "
                               "is wrong)");
}
END_TEST

/* ---- the installed library ------------------------------------------------------------------- */

#define INSTALLED "/usr/local/cuda/lib64/libcublasLt.so.13"

#define BLAS_SYMBOL(result, member, symbol, parameters)                                           \
    { symbol, offsetof(cublaslt_library, member) },
static const toolkit_symbol symbols[] = { BLAS_FUNCTIONS(BLAS_SYMBOL) { NULL, 0 } };

START_TEST(installed_cublaslt_accepts_products)
{
    static const pons_type types[] = { PONS_F32, PONS_BF16, PONS_F16 };
    cublaslt_library blas = { .library = dlopen(INSTALLED, RTLD_NOW | RTLD_LOCAL) };
    cublaslt_product product;
    cublaslt_choice choice;
    int count, status;
    asked q;

    if (!suite_has("installed_cublaslt_accepts_products", blas.library != NULL,
                   "libcublasLt"))
        return;
    ck_assert_ptr_null(toolkit_find_symbols(blas.library, symbols, &blas));
    for (int i = 0; i < 3; i++)
        for (int low = 0; low < 2; low++) {
            make_request(&q, types[i], low ? types[i] : PONS_F32);
            ck_assert_int_eq(cublaslt_product_new(&blas, &q.request, &product), 0);
            /*
             * The library accepts everything but the handle. Without a GPU the status is 1, not
             * initialized.
             */
            status = cublaslt_product_choose(&blas, &product, 1 << 20, 1, &choice, &count);
            ck_assert_int_ne(status, 0);
            ck_assert(status == 1 || fakes_are_away());
            ck_assert_int_eq(count, 0);
            cublaslt_product_free(&blas, &product);
        }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("blas");

    if (!fakes_open())
        return 1;
    tcase_add_checked_fixture(c, open_gpu, close_gpu);
    tcase_add_loop_test(c, matrix_products_are_computed_by_cublaslt, 0, 3);
    tcase_add_test(c, gradients_of_bf16_factors_may_be_float);
    tcase_add_test(c, factors_of_two_types_use_the_generated_kernel);
    fakes_add_test(c, partial_sums_are_float_in_a_bounded_workspace);
    fakes_add_test(c, a_product_without_algorithm_uses_the_generated_kernel);
    tcase_add_test(c, only_tf32_rounds_float_factors);
    fakes_add_test(c, the_fastest_algorithm_is_selected_and_reused);
    fakes_add_test(c, a_stored_algorithm_that_is_not_proposed_is_replaced);
    fakes_add_test(c, an_algorithm_of_a_smaller_workspace_is_replaced);
    fakes_add_test(c, if_no_algorithm_runs_the_first_is_selected);
    fakes_add_test(c, a_replica_without_cache_times_no_algorithm);
    tcase_add_test(c, each_product_has_an_autotune_entry);
    fakes_add_test(c, a_cublaslt_that_fails_to_start_is_not_used);
    fakes_add_test(c, a_failing_product_ends_with_one_line);
    fakes_add_test(c, matrices_with_wrong_extents_are_refused);
    tcase_add_test(c, installed_cublaslt_accepts_products);
    return suite_run();
}
