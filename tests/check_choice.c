/*
 * check_choice.c - who makes a convolution on which processor (select.c): shapes on both
 * sides of each rule, for tile registers, vectors of pairs and builds without the library. Kernels
 * are prepared and never run, so that any processor can stand for all. Where products are fewer is
 * check_wide's.
 */
#include "cpu/cpu.h"
#include "cpu/conv/direct/direct.h"
#include "cpu/conv/few_channels_amx/few_channels_amx.h"
#include "cpu/conv/onednn/onednn.h"
#include "cpu/conv/winograd/winograd.h"
#include "convolutions.h"
#include "suite.h"

/* A processor by what multiplies pairs there. */
typedef struct machine {
    const wide_unit *unit;
    bool alone;               /* without the library */
} machine;

static const machine tiles = { &wide_tiles, false }, tiles_alone = { &wide_tiles, true };
static const machine dots = { &wide_dots, false }, dots_alone = { &wide_dots, true };
static const machine neither = { NULL, false };

typedef struct row {
    int in, out, extent, kernel, stride;
    int dilation, groups;     /* 0: 1 */
    const char *by;           /* who makes it: forward, by the input, by the weight */
} row;

/* ---- families -------------------------------------------------------------------------------- */

static pons_status by_tile(cpu_device *d, const pons_request *r, pons_kernel *k, bool *supported,
                           pons_error *err)
{
    if (r->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return narrow_tile_prepare_weight(d->threads, r, k, supported, err);
    return narrow_tile_prepare(d->narrow, d->threads, r, k, supported, err);
}

static pons_status by_narrow(cpu_device *d, const pons_request *r, pons_kernel *k, bool *supported,
                             pons_error *err)
{
    return narrow_prepare(d->narrow, d->threads, r, k, supported, err);
}

static pons_status by_wide(cpu_device *d, const pons_request *r, pons_kernel *k, bool *supported,
                           pons_error *err)
{
    if (d->wide == NULL)
        return PONS_OK;
    if (r->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return wide_prepare_weight(d->wide, d->threads, r, k, supported, err);
    return wide_prepare_image(d->wide, d->threads, r, k, supported, err);
}

static pons_status by_direct(cpu_device *d, const pons_request *r, pons_kernel *k, bool *supported,
                             pons_error *err)
{
    return direct_prepare(d->direct, d->threads, r, k, supported, err);
}

static bool is_made_by(cpu_prepare family, cpu_device *d, const pons_request *r,
                       const pons_kernel *kernel)
{
    pons_kernel k = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    bool supported = false, same;

    ck_assert_msg(family(d, r, &k, &supported, &err) == PONS_OK, "%s", err.text);
    same = supported && k.run == kernel->run;
    if (supported && k.free != NULL)
        k.free(&k);
    return same;
}

/* All of our own families say "own": the one whose function the kernel runs. */
static const char *family_of(cpu_device *d, const pons_request *r, const pons_kernel *kernel)
{
    static const struct { const char *name; cpu_prepare prepare; } families[] = {
        { "tile", by_tile }, { "narrow", by_narrow }, { "wide", by_wide }, { "direct", by_direct },
    };

    if (strcmp(kernel->implementation, "own") != 0)
        return kernel->implementation;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (is_made_by(families[i].prepare, d, r, kernel))
            return families[i].name;
    return "nobody";
}

/* Whether the library declines it, or there is none: what it is left goes to the direct kernels. */
static bool library_declines(cpu_device *d, const pons_request *r)
{
    pons_kernel k = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    bool supported = false;

    ck_assert(onednn_prepare_convolution(d->library, r, &k, &supported, &err) == PONS_OK);
    if (supported)
        k.free(&k);
    return !supported;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void row_request(const row *w, pons_type type, pons_kernel_kind kind, sliding_request *r)
{
    int k = w->kernel, s = w->stride, d = w->dilation > 0 ? w->dilation : 1, n = w->extent;
    int p = (k - 1) / 2 * d;
    sliding all = { kind, 1, { n, n, n }, w->in, w->out, { k, k, k }, { s, s, s }, { d, d, d },
                    { p, p, p }, { p, p, p }, type };

    sliding_make(&all, r);
    if (w->groups > 1) {
        pons_tensor *weight = kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT ? &r->output[0]
                                                                              : &r->input[1];
        weight->shape.extent[4] /= w->groups;
        r->attributes.groups = w->groups;
    }
}

static void row_chooses(const machine *m, pons_type type, const row *w, pons_kernel_kind kind,
                        const char *expected)
{
    static char stand_in; /* for the library, in a build without it */
    const pons_device_settings settings = { .count = 1, .threads = 2 };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { .run = NULL };
    bool supported = false;
    sliding_request r;
    struct onednn *library;
    const char *maker;
    cpu_device *d;
    void *device;

    ck_assert(cpu_operations.open(&settings, &device, &err) == PONS_OK);
    d = device;
    library = d->library;
    d->wide = m->unit;
    d->library = m->alone ? NULL : library != NULL ? library : (struct onednn *)(void *)&stand_in;
    row_request(w, type, kind, &r);
    if (strcmp(expected, "onednn") == 0 && library_declines(d, &r.request))
        expected = "direct";
    ck_assert_msg(convolution_prepare(d, &r.request, &kernel, &supported, &err) == PONS_OK, "%s",
                  err.text);
    ck_assert(supported);
    maker = family_of(d, &r.request, &kernel);
    ck_assert_msg(strcmp(maker, expected) == 0, "%d to %d channels, %d voxels by %d, kind %d: %s, "
                  "not %s", w->in, w->out, w->extent, w->kernel, (int)kind, maker, expected);
    kernel.free(&kernel);
    d->library = library;
    cpu_operations.close(device);
}

static void rows_choose(const machine *m, pons_type type, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char maker[3][8];

        ck_assert_int_eq(sscanf(rows[i].by, "%7s %7s %7s", maker[0], maker[1], maker[2]), 3);
        for (int k = 0; k < 3; k++)
            row_chooses(m, type, &rows[i], (pons_kernel_kind)(PONS_KERNEL_CONVOLUTION + k),
                        maker[k]);
    }
}
#define CHOOSES(machine, type, ...)                                                               \
    rows_choose(&machine, type, (const row[]){ __VA_ARGS__ },                                     \
                sizeof (const row[]){ __VA_ARGS__ } / sizeof(row))

#define LIBRARY "onednn onednn onednn"

START_TEST(tile_registers_take_gradients_and_long_sums)
{
    CHOOSES(tiles, PONS_BF16,
            { 16, 128, 6, 3, 1, .by = "onednn wide wide" },
            { 16, 112, 6, 3, 1, .by = "onednn onednn wide" },
            { 16, 128, 6, 1, 1, .by = "onednn onednn wide" },
            { 32, 64, 8, 3, 2, .by = "onednn wide wide" },
            { 64, 32, 8, 3, 2, .by = "onednn wide wide" },
            { 48, 48, 8, 3, 2, .by = "onednn onednn wide" },
            { 64, 64, 8, 3, 1, .by = "onednn onednn wide" },
            { 256, 16, 6, 3, 1, .by = "wide onednn wide" },
            { 240, 16, 6, 3, 1, .by = "onednn onednn wide" },
            { 256, 16, 6, 1, 1, .by = "onednn onednn wide" },
            { 512, 256, 6, 3, 1, .by = LIBRARY, .groups = 2 });
    CHOOSES(tiles, PONS_F32, { 256, 128, 6, 3, 1, .by = LIBRARY });
}
END_TEST

/* By 2 x 2 x 2: fewer products are those of 3 x 3. */
START_TEST(vectors_of_pairs_take_gradients_by_the_weight_that_fill_them)
{
    CHOOSES(dots, PONS_BF16,
            { 16, 16, 6, 2, 1, .by = "onednn onednn wide" },
            { 16, 16, 6, 1, 1, .by = LIBRARY },
            { 16, 16, 6, 2, 1, .by = LIBRARY, .dilation = 2 },
            { 14, 16, 6, 2, 1, .by = LIBRARY },
            { 16, 14, 6, 2, 1, .by = LIBRARY },
            { 17, 16, 6, 2, 1, .by = LIBRARY },
            { 30, 32, 6, 2, 1, .by = "onednn onednn wide" },
            { 256, 128, 6, 2, 1, .by = "onednn onednn wide" },
            { 32, 32, 6, 2, 1, .by = LIBRARY, .groups = 2 });
    CHOOSES(neither, PONS_BF16, { 16, 16, 6, 2, 1, .by = LIBRARY });
}
END_TEST

START_TEST(without_the_library_both_take_all)
{
    CHOOSES(dots_alone, PONS_BF16,
            { 16, 16, 6, 1, 1, .by = "wide wide wide" },
            { 14, 16, 6, 2, 1, .by = "wide wide wide", .dilation = 2 });
    CHOOSES(tiles_alone, PONS_BF16, { 16, 16, 6, 1, 1, .by = "wide wide wide" });
}
END_TEST

START_TEST(direct_kernels_take_some_gradients_of_large_images_in_float)
{
    CHOOSES(dots, PONS_F32,
            { 16, 32, 48, 3, 2, .by = "onednn onednn direct" },
            { 16, 32, 44, 3, 2, .by = LIBRARY },
            { 15, 32, 50, 3, 2, .by = LIBRARY },
            { 16, 31, 48, 3, 2, .by = LIBRARY },
            { 16, 32, 48, 3, 1, .by = "onednn direct onednn" },
            { 32, 32, 40, 2, 2, .by = "onednn onednn direct" },
            { 31, 32, 40, 2, 2, .by = LIBRARY },
            { 8, 32, 40, 3, 1, .by = "onednn direct onednn" },
            { 8, 32, 39, 3, 1, .by = LIBRARY },
            { 12, 32, 40, 3, 1, .by = LIBRARY },
            { 8, 32, 40, 2, 1, .by = LIBRARY },
            { 32, 32, 40, 3, 1, .by = LIBRARY, .groups = 2 });
    CHOOSES(tiles, PONS_F32, { 8, 32, 40, 3, 1, .by = LIBRARY });
    CHOOSES(neither, PONS_F32, { 8, 32, 40, 3, 1, .by = LIBRARY });
}
END_TEST

START_TEST(few_channels_are_asked_for_first)
{
    CHOOSES(tiles, PONS_BF16, { 4, 4, 96, 3, 1, .by = "tile tile tile" });
    CHOOSES(dots, PONS_BF16, { 4, 4, 96, 3, 1, .by = "narrow narrow narrow" });
    CHOOSES(tiles, PONS_F32, { 4, 4, 96, 3, 1, .by = "narrow narrow narrow" });
    CHOOSES(neither, PONS_BF16,
            { 4, 32, 48, 3, 1, .by = "narrow narrow narrow" },
            { 5, 32, 48, 3, 1, .by = LIBRARY });
}
END_TEST

int main(void)
{
    TCase *c = suite_new("choice");

    if (wide_dots.multiply == NULL)
        return 77; /* not that kind of processor */
    tcase_add_test(c, tile_registers_take_gradients_and_long_sums);
    tcase_add_test(c, vectors_of_pairs_take_gradients_by_the_weight_that_fill_them);
    tcase_add_test(c, without_the_library_both_take_all);
    tcase_add_test(c, direct_kernels_take_some_gradients_of_large_images_in_float);
    tcase_add_test(c, few_channels_are_asked_for_first);
    return suite_run();
}
