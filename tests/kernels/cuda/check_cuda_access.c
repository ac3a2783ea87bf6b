/*
 * check_cuda_access.c - map kernels with enough channels read and write the channels of a voxel in
 * accesses of 16 bytes. The PTX that NVRTC compiles from their text is searched for them.
 */
#include "cuda/cuda.h"
#include "support/must.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { VOXELS = 1 << 18, SUMS = 2 };

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * MAP: y = x scale, over voxels and channels. REDUCTION: sums of y over voxels. CHANNELS: y less
 * the largest channel, for each voxel.
 */
typedef enum form { MAP, REDUCTION, CHANNELS } form;

typedef struct asked {
    pons_operand load[2];
    pons_value value[4];
    pons_store store;
    pons_reduction reduction;
    pons_map map;
    pons_tensor input[2], output;
    pons_request request;
} asked;

static pons_operand operand(int tensor, pons_type type, int64_t row)
{
    return (pons_operand){ .tensor = tensor, .type = type, .stride = { row, 1 } };
}

static void make_request(asked *a, form form, pons_type type, int channels)
{
    *a = (asked){
        .load = { operand(0, type, channels), operand(1, PONS_F32, 0) },
        .value = { { .operation = PONS_VALUE_LOAD, .operand = 0 },
                   { .operation = PONS_VALUE_LOAD, .operand = 1 },
                   { .operation = PONS_MAP_MUL, .argument_count = 2, .argument = { 0, 1 } } },
        .store = { 2, operand(0, type, channels) },
        .reduction = { .kind = PONS_REDUCE_SUM, .value = 2, .to = { operand(0, PONS_F32, 0) } },
        .input = { { type, { 2, { VOXELS, channels } } }, { PONS_F32, { 1, { channels } } } },
        .output = { form == REDUCTION ? PONS_F32 : type, { 2, { VOXELS, channels } } },
    };
    if (form == REDUCTION)
        a->output.shape = (pons_shape){ 1, { channels } };
    if (form == CHANNELS) {
        a->value[1] = (pons_value){ .operation = PONS_VALUE_CHANNEL_MAX, .per_point = 1,
                                    .argument_count = 1, .argument = { 0 } };
        a->value[2].operation = PONS_MAP_SUB;
    }
    a->map = (pons_map){ .axis_count = 2, .extent = { VOXELS, channels },
                         .channels = form == CHANNELS ? channels : 0,
                         .load_count = form == CHANNELS ? 1 : 2, .load = a->load, .value_count = 3,
                         .value = a->value, .store_count = form != REDUCTION, .store = &a->store,
                         .reduction_count = form == REDUCTION, .reduction = &a->reduction };
    a->request = (pons_request){ .kind = PONS_KERNEL_MAP, .name = "y",
                                 .input_count = form == CHANNELS ? 1 : 2, .output_count = 1,
                                 .input = a->input, .output = &a->output, .attributes = &a->map };
}

/* ---- accesses in the PTX --------------------------------------------------------------------- */

typedef struct accesses {
    int loads, wide_loads, stores, wide_stores; /* wide: of four words                            */
} accesses;

static void count_accesses(const char *ptx, accesses *out)
{
    *out = (accesses){ 0 };
    for (const char *line = ptx; line != NULL; line = strchr(line, '\n'), line += line != NULL) {
        const char *end = line + strcspn(line, "\n");
        const char *load = strstr(line, "ld.global"), *store = strstr(line, "st.global");
        const char *wide = strstr(line, ".v4.");
        bool is_wide = wide != NULL && wide < end;

        out->loads += load != NULL && load < end;
        out->wide_loads += load != NULL && load < end && is_wide;
        out->stores += store != NULL && store < end;
        out->wide_stores += store != NULL && store < end && is_wide;
    }
}

/* PTX of the newest architecture that the compiler knows, as for a newer GPU. */
static char *compile(const char *text)
{
    cuda_compiler c;
    size_t size = 0;
    char *ptx;

    MUST(cuda_compiler_open(&c, TOOLKIT_LATER - 1, 0, 999, &error));
    ck_assert(c.translated);
    MUST(cuda_compile(&c, text, c.target, &ptx, &size, NULL, &error));
    ck_assert_ptr_nonnull(memchr(ptx, '\0', size));
    cuda_compiler_close(&c);
    return ptx;
}

/* Accesses of the request's first kernel. A second one, for partial sums, reads words. */
static accesses accesses_of(form form, pons_type type, int channels)
{
    codegen source;
    text unit = { .at = NULL };
    accesses found;
    asked a;
    char *ptx;

    make_request(&a, form, type, channels);
    ck_assert(codegen_make(&source, &a.request));
    ck_assert_int_eq(source.launch_count, form == REDUCTION ? SUMS : 1);
    text_add(&unit, "%sKERNEL %s%s\n", text_preamble, source.launch[0].name,
             source.launch[0].body.at);
    ptx = compile(unit.at);
    count_accesses(ptx, &found);
    free(ptx);
    text_free(&unit);
    codegen_free(&source);
    return found;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct { form form; pons_type type; } cases[] = {
    { MAP, PONS_F32 }, { MAP, PONS_BF16 }, { MAP, PONS_F16 },
    { REDUCTION, PONS_F32 }, { REDUCTION, PONS_BF16 }, { REDUCTION, PONS_F16 },
    { CHANNELS, PONS_F32 }, { CHANNELS, PONS_BF16 }, { CHANNELS, PONS_F16 },
};
enum { CASES = sizeof cases / sizeof *cases };

START_TEST(multiples_of_8_channels_use_accesses_of_16_bytes)
{
    const form form = cases[_i].form;
    const accesses a = accesses_of(form, cases[_i].type, 16);

    ck_assert_int_gt(a.loads, 0);
    ck_assert_int_eq(a.wide_loads, a.loads);
    if (form == REDUCTION)
        return;
    ck_assert_int_gt(a.stores, 0);
    ck_assert_int_eq(a.wide_stores, a.stores);
}
END_TEST

/* The control: three channels are not aligned to 16 bytes. */
START_TEST(three_channels_use_single_accesses)
{
    const accesses a = accesses_of(cases[_i].form, cases[_i].type, 3);

    ck_assert_int_gt(a.loads, 0);
    ck_assert_int_eq(a.wide_loads, 0);
    ck_assert_int_eq(a.wide_stores, 0);
}
END_TEST

/* Options that AddressSanitizer reads. NVRTC does not free all of its memory when it is closed. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    TCase *c = suite_new("cuda access");

    tcase_add_loop_test(c, multiples_of_8_channels_use_accesses_of_16_bytes, 0, CASES);
    tcase_add_loop_test(c, three_channels_use_single_accesses, 0, CASES);
    return suite_run();
}
