/*
 * check_loader.c - packed cases, sampling, and micro-batches that do not depend on the thread
 * count.
 *
 * The voxels of the test's volumes hold their own position, so that a patch shows its origin.
 */
#include "data/loader/loader.h"
#include "data/packed/packed_case.h"

#include "data/case/case_read.h"
#include "data/packed/sampling_index.h"
#include "data/loader/sampler.h"
#include "support/dataset_maker.h"
#include "support/process/process_state.h"
#include "support/suite.h"

#include <math.h>

enum { CASES = 5, SIDE = 12 };

static double position(int64_t i, int64_t j, int64_t k)
{
    return (double)(i * 400 + j * 20 + k);
}

static double minus_position(int64_t i, int64_t j, int64_t k)
{
    return -position(i, j, k) - 1;
}

static bool in_organ(int64_t i, int64_t j, int64_t k)
{
    return i >= 4 && i < 7 && j >= 5 && j < 8 && k >= 2 && k < 4;
}

static double organ_label(int64_t i, int64_t j, int64_t k)
{
    return in_organ(i, j, k);
}

/* ---- a dataset with two channels ------------------------------------------------------------- */

typedef struct bench {
    config *ini;
    pipeline *chain;
    dataset *data;
    cache *held;
} bench;

static void write_cases(void)
{
    for (int c = 0; c < CASES; c++) {
        char name[64];
        snprintf(name, sizeof name, "x/case%d_0.nii", c);
        maker_volume(name, SIDE, SIDE - 1, SIDE - 4 + c, position, 0, 16);
        snprintf(name, sizeof name, "x/case%d_1.nii", c);
        maker_volume(name, SIDE, SIDE - 1, SIDE - 4 + c, minus_position, 0, 16);
        snprintf(name, sizeof name, "y/case%d.nii", c);
        maker_volume(name, SIDE, SIDE - 1, SIDE - 4 + c, organ_label, 0, 2);
    }
}

static dataset *open_dataset(void)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    const char *image[] = { maker_path("x/*_0.nii"), maker_path("x/*_1.nii") };
    dataset_settings s = { .image = { 2, image }, .label = maker_path("y/*.nii"),
                           .labels = { 2, labels }, .validation = "none" };

    return maker_open(&s);
}

static void bench_open(bench *b, cache_mode mode, sampling_mode sampling, const char *augment)
{
    cache_settings s = { .mode = mode, .threads = 3, .sampling = sampling,
                         .background_above = 1000 };
    pons_error err = PONS_ERROR_INIT;

    write_cases();
    *b = (bench){ NULL };
    b->data = open_dataset();
    if (augment != NULL) {
        maker_text("a.ini", augment);
        ck_assert_msg(config_open(maker_path("a.ini"), 0, NULL, &b->ini, &err) == PONS_OK, "%s",
                      err.text);
        ck_assert_msg(pipeline_open(b->ini, "augment", true, 2, &b->chain, &err) == PONS_OK,
                      "%s", err.text);
    }
    ck_assert_msg(cache_open(b->data, NULL, b->data->training_count, b->data->training, &s, NULL,
                             &b->held, &err) == PONS_OK, "%s", err.text);
}

static void bench_close(bench *b)
{
    cache_close(b->held);
    dataset_close(b->data);
    if (b->chain != NULL)
        pipeline_close(b->chain);
    if (b->ini != NULL)
        config_close(b->ini);
}

static loader_settings settings_of(int batch, int micro_batches, int e0, int e1, int e2)
{
    return (loader_settings){
        .seed = 7, .extent = { e0, e1, e2 }, .per_case = 2, .batch = batch,
        .micro_batches = micro_batches, .count = micro_batches, .positive = 1, .negative = 1
    };
}

static loader *open_loader(const bench *b, const loader_settings *s)
{
    pons_error err = PONS_ERROR_INIT;
    loader *l = NULL;

    ck_assert_msg(loader_open(b->held, b->data->training_count, b->data->training, b->chain, s, &l,
                              &err) == PONS_OK, "%s", err.text);
    return l;
}

static const loader_batch *next_loader_batch(loader *l)
{
    pons_error err = PONS_ERROR_INIT;
    const loader_batch *batch = NULL;

    ck_assert_msg(loader_next(l, &batch, &err) == PONS_OK, "%s", err.text);
    return batch;
}

/* A hash over every bit of a micro-batch. */
static uint64_t hash_of(const loader_batch *b, const loader_settings *s)
{
    size_t voxels = (size_t)s->batch * (size_t)s->per_case * (size_t)s->extent[0] *
                    (size_t)s->extent[1] * (size_t)s->extent[2];
    const unsigned char *image = (const unsigned char *)b->image;
    uint64_t hash = (uint64_t)b->step * 1000 + (uint64_t)b->micro_batch;

    for (size_t i = 0; i < voxels * 2 * sizeof(float); i++)
        hash = (hash ^ image[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < voxels; i++)
        hash = (hash ^ b->label[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < b->case_count; i++)
        hash = (hash ^ (unsigned char)b->case_id[i][4]) * UINT64_C(0x100000001b3);
    return hash;
}

static const char all_steps[] =
    "[augment]\nsteps = flip rotate90 scale_intensity shift_intensity gaussian_noise brightness "
    "contrast adjust_contrast gaussian_smooth gaussian_sharpen low_resolution bias_field "
    "coarse_dropout channel_dropout affine zoom elastic\n"
    "[augment.affine]\nrotate_range = 0.5\nprobability = 0.5\n"
    "[augment.zoom]\nprobability = 0.5\nlabel_mode = linear\n"
    "[augment.elastic]\nprobability = 0.5\nsigma_range = 1 3\nmagnitude_range = 5 9\n"
    "[augment.flip]\naxes = 0 1 2\nprobability = 0.5\n"
    "[augment.rotate90]\naxes = 0 2\nprobability = 0.5\n"
    "[augment.scale_intensity]\nfactors = 0.2\nprobability = 0.5\n"
    "[augment.shift_intensity]\noffsets = 0.2\nprobability = 0.5\nchannel_wise = yes\n"
    "[augment.gaussian_noise]\nstd = 0.3\nprobability = 0.5\nchannels = 1\n"
    "[augment.brightness]\nprobability = 0.5\nsigma = 1\n"
    "[augment.contrast]\nprobability = 0.5\n"
    "[augment.adjust_contrast]\nprobability = 0.5\nretain_stats = yes\n"
    "[augment.gaussian_smooth]\nprobability = 0.5\nchannel_probability = 0.5\n"
    "[augment.gaussian_sharpen]\nprobability = 0.5\n"
    "[augment.low_resolution]\nprobability = 0.5\nchannel_wise = yes\n"
    "[augment.bias_field]\nprobability = 0.5\n"
    "[augment.coarse_dropout]\nspatial_size = 2\nmax_spatial_size = 3\nprobability = 0.5\n"
    "[augment.channel_dropout]\nprobability = 0.2\n";

/* ---- epoch order ----------------------------------------------------------------------------- */

START_TEST(each_case_occurs_once_an_epoch_for_any_batch)
{
    static const int shapes[][2] = { { 1, 1 }, { 2, 1 }, { 3, 2 }, { 4, 3 }, { 7, 1 } };
    char stream[5][60];
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_UNIFORM, NULL);
    for (int n = 0; n < 5; n++) {
        loader_settings s = settings_of(shapes[n][0], shapes[n][1], 3, 3, 3);
        loader *l = open_loader(&b, &s);
        for (int at = 0; at < 60; ) {
            const loader_batch *batch = next_loader_batch(l);
            for (int i = 0; i < batch->case_count && at < 60; i++)
                stream[n][at++] = batch->case_id[i][4];
        }
        loader_close(l);
        ck_assert_int_eq(memcmp(stream[n], stream[0], 60), 0);
    }
    for (int epoch = 0; epoch < 60 / CASES; epoch++)
        for (char c = '0'; c < '0' + CASES; c++)
            ck_assert_ptr_nonnull(memchr(stream[0] + epoch * CASES, c, CASES));
    bench_close(&b);
}
END_TEST

START_TEST(micro_batches_do_not_depend_on_the_thread_count)
{
    static const int threads[] = { 0, 1, 4 };
    uint64_t hash[3][24];
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_BALANCED, all_steps);
    for (int t = 0; t < 3; t++) {
        loader_settings s = settings_of(2, 2, 6, 5, 4);
        s.sampling = SAMPLING_BALANCED;
        s.threads = threads[t];
        loader *l = open_loader(&b, &s);
        for (int n = 0; n < 24; n++)
            hash[t][n] = hash_of(next_loader_batch(l), &s);
        loader_close(l);
        ck_assert_int_eq(memcmp(hash[t], hash[0], sizeof hash[0]), 0);
    }
    for (int n = 1; n < 24; n++)
        ck_assert(hash[0][n] != hash[0][n - 1]);
    bench_close(&b);
}
END_TEST

START_TEST(micro_batches_do_not_depend_on_the_cache)
{
    uint64_t kept[12];
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_BALANCED, all_steps);
    loader_settings s = settings_of(2, 1, 6, 5, 4);
    s.sampling = SAMPLING_BALANCED;
    loader *l = open_loader(&b, &s);
    for (int n = 0; n < 12; n++)
        kept[n] = hash_of(next_loader_batch(l), &s);
    loader_close(l);
    ck_assert_int_eq(maker_cases_held(b.held), CASES);
    bench_close(&b);

    bench_open(&b, CACHE_NONE, SAMPLING_BALANCED, all_steps);
    l = open_loader(&b, &s);
    for (int n = 0; n < 12; n++)
        ck_assert(hash_of(next_loader_batch(l), &s) == kept[n]);
    loader_close(l);
    ck_assert_int_eq(maker_cases_held(b.held), 0);
    bench_close(&b);
}
END_TEST

/* Bytes of files that an epoch of the loader reads where no case is cached. */
static int64_t epoch_bytes(const bench *b, int per_case)
{
    loader_settings s = settings_of(1, 1, 6, 5, 4);
    int64_t before;

    s.per_case = per_case;
    loader *l = open_loader(b, &s);
    before = process_number("/proc/self/io", "rchar:");
    for (int n = 0; n < CASES; n++)
        next_loader_batch(l);
    loader_close(l);
    return process_number("/proc/self/io", "rchar:") - before;
}

/* The few bytes beside the volumes are those of /proc itself. */
START_TEST(all_patches_of_a_case_come_from_one_read)
{
    int64_t voxels = 0, one, many;
    bench b;

    bench_open(&b, CACHE_NONE, SAMPLING_UNIFORM, NULL);
    for (int c = 0; c < CASES; c++)
        voxels += SIDE * (SIDE - 1) * (SIDE - 4 + c);
    one = epoch_bytes(&b, 1);
    many = epoch_bytes(&b, 7);
    ck_assert_int_ge(one, 5 * voxels); /* two channels of 2 bytes and a label of 1 */
    ck_assert_msg(llabs(many - one) < 512, "%lld bytes for 7 patches a case, %lld for one",
                  (long long)many, (long long)one);
    bench_close(&b);
}
END_TEST

START_TEST(the_memory_cache_keeps_its_limit)
{
    pons_error err = PONS_ERROR_INIT;
    cache *all, *some;
    cache_settings s = { .mode = CACHE_MEMORY, .threads = 1 };

    write_cases();
    dataset *d = open_dataset();
    ck_assert_int_eq(cache_open(d, NULL, CASES, d->training, &s, NULL, &all, &err), PONS_OK);
    s.limit = cache_size(all) / 2;
    ck_assert_int_eq(cache_open(d, NULL, CASES, d->training, &s, NULL, &some, &err), PONS_OK);
    ck_assert_int_gt(maker_cases_held(some), 0);
    ck_assert_int_lt(maker_cases_held(some), CASES);
    ck_assert_int_le(cache_size(some), s.limit);
    cache_close(all);
    cache_close(some);
    dataset_close(d);
}
END_TEST

START_TEST(seeking_gives_the_micro_batches_of_that_step)
{
    uint64_t hash[20];
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_UNIFORM, all_steps);
    loader_settings s = settings_of(2, 2, 4, 4, 4);
    s.threads = 2;
    loader *l = open_loader(&b, &s);
    for (int n = 0; n < 20; n++)
        hash[n] = hash_of(next_loader_batch(l), &s);
    for (int64_t step = 9; step >= 0; step -= 3) {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(loader_seek(l, step, &err), PONS_OK);
        const loader_batch *batch = next_loader_batch(l);
        ck_assert_int_eq(batch->step, step);
        ck_assert_int_eq(batch->micro_batch, 0);
        ck_assert(hash_of(batch, &s) == hash[2 * step]);
        ck_assert(hash_of(next_loader_batch(l), &s) == hash[2 * step + 1]);
    }
    loader_close(l);
    bench_close(&b);
}
END_TEST

START_TEST(each_replica_loads_its_own_micro_batches)
{
    uint64_t whole[12];
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_UNIFORM, all_steps);
    loader_settings s = settings_of(2, 4, 4, 4, 4);
    loader *l = open_loader(&b, &s);
    for (int n = 0; n < 12; n++)
        whole[n] = hash_of(next_loader_batch(l), &s);
    loader_close(l);
    s.first = 2;
    s.count = 2;
    l = open_loader(&b, &s);
    for (int step = 0; step < 3; step++)
        for (int m = 2; m < 4; m++)
            ck_assert(hash_of(next_loader_batch(l), &s) == whole[4 * step + m]);
    loader_close(l);
    bench_close(&b);
}
END_TEST

/* ---- sampling -------------------------------------------------------------------------------- */

/*
 * For a foreground share of 3/4 in 4000 draws the deviation is 0.0068; the bounds are five of
 * them.
 */
START_TEST(balanced_sampling_draws_the_foreground_share)
{
    int organ_count = 0, seen[18] = { 0 };
    double chi = 0;
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_BALANCED, NULL);
    loader_settings s = settings_of(5, 1, 1, 1, 1);
    s.sampling = SAMPLING_BALANCED;
    s.positive = 3;
    s.per_case = 8;
    loader *l = open_loader(&b, &s);
    for (int step = 0; step < 100; step++) {
        const loader_batch *batch = next_loader_batch(l);
        for (int n = 0; n < 40; n++) {
            int at = (int)batch->image[2 * n], i = at / 400, j = at / 20 % 20, k = at % 20;
            ck_assert_int_eq(batch->label[n], in_organ(i, j, k));
            if (batch->label[n] == 0)
                ck_assert_int_gt(at, 1000);
            else
                seen[(i - 4) * 6 + (j - 5) * 2 + k - 2]++;
            organ_count += batch->label[n];
        }
    }
    loader_close(l);
    ck_assert_int_gt(organ_count, 2864);
    ck_assert_int_lt(organ_count, 3136);
    for (int v = 0; v < 18; v++) /* 17 degrees of freedom: the 99.99 % quantile is 49 */
        chi += (seen[v] - organ_count / 18.0) * (seen[v] - organ_count / 18.0) * 18 / organ_count;
    ck_assert_double_lt(chi, 49);
    bench_close(&b);
}
END_TEST

START_TEST(an_empty_sampling_set_is_replaced_by_the_other)
{
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_BALANCED, NULL);
    loader_settings s = settings_of(5, 1, 3, 3, 3);
    s.sampling = SAMPLING_BALANCED;
    s.positive = 0;
    loader *l = open_loader(&b, &s);
    for (int n = 0; n < 10; n++) {
        const loader_batch *batch = next_loader_batch(l);
        for (int p = 0; p < 10; p++)
            ck_assert_float_ge(batch->image[(p * 27 + 13) * 2], 0);
    }
    loader_close(l);
    bench_close(&b);
}
END_TEST

START_TEST(class_weights_are_the_probabilities_of_centre_classes)
{
    static const double weights[] = { 0, 2 };
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_CLASSES, NULL);
    loader_settings s = settings_of(5, 1, 1, 1, 1);
    s.sampling = SAMPLING_CLASSES;
    s.class_weight_count = 2;
    s.class_weights = weights;
    loader *l = open_loader(&b, &s);
    for (int n = 0; n < 20; n++) {
        const loader_batch *batch = next_loader_batch(l);
        for (int p = 0; p < 10; p++)
            ck_assert_int_eq(batch->label[p], 1);
    }
    loader_close(l);
    s.class_weight_count = 1;
    pons_error err = PONS_ERROR_INIT;
    ck_assert_int_eq(loader_open(b.held, CASES, b.data->training, NULL, &s, &l, &err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "'class_weights' has 1 number, expected 2"));
    bench_close(&b);
}
END_TEST

/* nnU-Net's counts: a sample j of n is forced if not j < round(0.67 n), half to even. */
static const struct { int batch, per_case, micro_batches, forced; } forced_rows[] = {
    { 2, 1, 1, 1 }, { 3, 1, 1, 1 }, { 2, 2, 1, 1 }, { 3, 3, 1, 3 }, { 2, 2, 2, 3 }
};

START_TEST(the_last_samples_of_a_step_are_foreground)
{
    int count, organ = 0;
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_FOREGROUND, NULL);
    loader_settings s = settings_of(forced_rows[_i].batch, forced_rows[_i].micro_batches, 1, 1, 1);
    s.sampling = SAMPLING_FOREGROUND;
    s.foreground_share = 0.33;
    s.per_case = forced_rows[_i].per_case;
    count = s.batch * s.per_case;
    loader *l = open_loader(&b, &s);
    for (int step = 0; step < 50; step++)
        for (int m = 0; m < s.micro_batches; m++) {
            const loader_batch *batch = next_loader_batch(l);

            for (int n = 0; n < count; n++) {
                if (m * count + n >= s.micro_batches * count - forced_rows[_i].forced)
                    ck_assert_int_eq(batch->label[n], 1);
                else
                    organ += batch->label[n];
            }
        }
    ck_assert_int_lt(organ, 20); /* of 300 at most; one voxel in 73 is in the organ */
    loader_close(l);
    bench_close(&b);
}
END_TEST

START_TEST(a_step_of_one_sample_draws_the_foreground_share)
{
    int organ = 0;
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_FOREGROUND, NULL);
    loader_settings s = settings_of(1, 1, 1, 1, 1);
    s.sampling = SAMPLING_FOREGROUND;
    s.foreground_share = 0.33;
    s.per_case = 1;
    loader *l = open_loader(&b, &s);
    for (int step = 0; step < 2000; step++)
        organ += next_loader_batch(l)->label[0];
    ck_assert_int_gt(organ, 660 - 84); /* four standard deviations */
    ck_assert_int_lt(organ, 660 + 84);
    loader_close(l);
    bench_close(&b);
}
END_TEST

START_TEST(uniform_patches_lie_anywhere_inside)
{
    bool first[SIDE - 8] = { false };
    bench b;

    bench_open(&b, CACHE_MEMORY, SAMPLING_UNIFORM, NULL);
    loader_settings s = settings_of(5, 1, 9, 9, 5);
    loader *l = open_loader(&b, &s);
    for (int n = 0; n < 40; n++) {
        const loader_batch *batch = next_loader_batch(l);
        for (int p = 0; p < 10; p++) {
            const float *x = batch->image + p * 9 * 9 * 5 * 2;
            int at = (int)x[0];
            first[at / 400] = true;
            for (int v = 0; v < 9 * 9 * 5; v++) {
                ck_assert_float_eq(x[2 * v], (float)(at + v / 45 * 400 + v / 5 % 9 * 20 + v % 5));
                ck_assert_float_eq(x[2 * v + 1], -x[2 * v] - 1);
            }
        }
    }
    for (int i = 0; i < SIDE - 8; i++)
        ck_assert(first[i]);
    loader_close(l);
    bench_close(&b);
}
END_TEST

/*
 * Case 0 is 12 x 11 x 8, so that a patch of 12 x 16 x 8 has 2 voxels of padding before j and 3
 * after it.
 */
START_TEST(small_volumes_are_padded_with_the_odd_voxel_last)
{
    for (int pad = 0; pad < 4; pad++) {
        bool edge = (pad & LOADER_PAD_EDGE) != 0;
        int outside = (pad & LOADER_PAD_UNCOUNTED) != 0 ? TARGET_IGNORED : 0;
        bench b;
        bench_open(&b, CACHE_MEMORY, SAMPLING_WHOLE, NULL);
        loader_settings s = settings_of(5, 1, 12, 16, 8);
        s.sampling = SAMPLING_WHOLE;
        s.per_case = 1;
        s.pad = (loader_pad)pad;
        loader *l = open_loader(&b, &s);
        const loader_batch *batch = next_loader_batch(l);
        for (int p = 0; p < 5; p++) {
            int extra = batch->case_id[p][4] - '0', start = (8 + extra) / 2 - 4;
            for (int v = 0; v < 12 * 16 * 8; v++) {
                int i = v / 128, j = v / 8 % 16 - 2, k = v % 8 + start;
                int near = j < 0 ? 0 : j > 10 ? 10 : j;
                bool inside = j == near;
                float expected = inside || edge ? (float)position(i, near, k) : 0;
                ck_assert_float_eq(batch->image[(p * 1536 + v) * 2], expected);
                ck_assert_int_eq(batch->label[p * 1536 + v],
                                 inside ? in_organ(i, j, k) : outside);
            }
        }
        loader_close(l);
        bench_close(&b);
    }
}
END_TEST

START_TEST(a_flat_patch_axis_is_moved_to_the_front)
{
    int dhw[3], axis;

    loader_patch_shape((const int[]){ 32, 48, 1 }, dhw, &axis);
    ck_assert_int_eq(axis, 2);
    ck_assert_int_eq(dhw[0], 1);
    ck_assert_int_eq(dhw[1], 32);
    ck_assert_int_eq(dhw[2], 48);
    loader_patch_shape((const int[]){ 1, 48, 1 }, dhw, &axis);
    ck_assert_int_eq(axis, -1);
    ck_assert_int_eq(dhw[1], 48);
    loader_patch_shape((const int[]){ 8, 1, 4 }, dhw, &axis);
    ck_assert_int_eq(axis, 1);
    ck_assert_int_eq(dhw[2], 4);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

START_TEST(a_failure_in_a_thread_names_the_case)
{
    for (int threads = 0; threads < 3; threads++) {
        pons_error err = PONS_ERROR_INIT;
        const loader_batch *batch;
        bench b;

        bench_open(&b, CACHE_NONE, SAMPLING_UNIFORM, NULL);
        maker_text("y/case3.nii", "damaged");
        loader_settings s = settings_of(5, 1, 3, 3, 3);
        s.threads = threads;
        loader *l = open_loader(&b, &s);
        ck_assert_int_eq(loader_next(l, &batch, &err), PONS_DATA);
        ck_assert_msg(strstr(err.text, "case 'case3'") != NULL, "%s", err.text);
        loader_close(l);
        bench_close(&b);
    }
}
END_TEST

START_TEST(opening_the_cache_reports_the_first_bad_case)
{
    pons_error err = PONS_ERROR_INIT;
    cache_settings s = { .mode = _i == 0 ? CACHE_NONE : CACHE_MEMORY, .threads = 4,
                         .limit = _i == 2 ? 1 : 0 };
    cache *held = NULL;

    write_cases();
    maker_text("y/case4.nii", "damaged");
    maker_text("y/case1.nii", "damaged");
    dataset *d = open_dataset();
    ck_assert_int_eq(cache_open(d, NULL, CASES, d->training, &s, NULL, &held, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "case 'case1'") != NULL, "%s", err.text);
    ck_assert_ptr_null(held);
    dataset_close(d);
}
END_TEST

START_TEST(a_case_without_a_label_cannot_be_trained_on)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    const char *image[] = { maker_path("x/*_0.nii") };
    dataset_settings s = { .image = { 1, image }, .labels = { 2, labels }, .validation = "none" };
    cache_settings keep = { .mode = CACHE_MEMORY };
    loader_settings load = settings_of(1, 1, 3, 3, 3);
    pons_error err = PONS_ERROR_INIT;
    cache *held;
    dataset *d;
    loader *l;

    write_cases();
    d = maker_open(&s);
    ck_assert_int_eq(cache_open(d, NULL, CASES, d->training, &keep, NULL, &held, &err), PONS_OK);
    ck_assert_int_eq(loader_open(held, CASES, d->training, NULL, &load, &l, &err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "case 'case0' has no label to learn from"));
    cache_close(held);
    dataset_close(d);
}
END_TEST

/* ---- packed cases ---------------------------------------------------------------------------- */

/* A case of n voxels along i, whose values repeat after 'values' of them. */
static void make_case(pons_case *c, int64_t n, int values)
{
    const int64_t extent[3] = { n, 3, 5 };
    pons_error err = PONS_ERROR_INIT;

    *c = (pons_case){ .size = sizeof *c };
    ck_assert_int_eq(pons_volume_init(&c->image, PONS_F32, 2, extent, &err), PONS_OK);
    ck_assert_int_eq(pons_volume_init(&c->label, PONS_U8, 1, extent, &err), PONS_OK);
    for (int64_t i = 0; i < n * 30; i++)
        ((float *)c->image.voxels)[i] = (float)((i * 7919) % values) / 3 - 5;
    for (int64_t i = 0; i < n * 15; i++)
        ((uint8_t *)c->label.voxels)[i] = (i * 31) % 97 < 3;
}

static const struct { int values, code_size; } packings[] = {
    { 256, 1 }, { 257, 2 }, { 65536, 2 }, { 65537, 4 }
};

START_TEST(packed_cases_restore_every_value)
{
    sampling_spec wish = { SAMPLING_SETS_NONE, 0, 0 };
    pons_error err = PONS_ERROR_INIT;
    pons_case c, same, again;
    packed_case p;

    make_case(&c, 5000, packings[_i].values);
    make_case(&same, 5000, packings[_i].values);
    ck_assert_int_eq(packed_case_init(&p, &c, &wish, &err), PONS_OK);
    ck_assert_int_eq(p.code_size, packings[_i].code_size);
    ck_assert_int_eq(packed_case_unpack(&p, &again, &err), PONS_OK);
    ck_assert_int_eq(memcmp(same.image.voxels, again.image.voxels, 150000 * sizeof(float)), 0);
    ck_assert_int_eq(memcmp(same.label.voxels, again.label.voxels, 75000), 0);
    packed_case_clear(&p);
    case_clear(&again);
    case_clear(&same);
}
END_TEST

START_TEST(sampling_sets_list_voxels_in_order)
{
    sampling_spec wish = { SAMPLING_SETS_BALANCED, 0, 3 };
    pons_error err = PONS_ERROR_INIT;
    int64_t found[2] = { 0, 0 };
    packed_case p;
    pons_case c;

    make_case(&c, 5000, 60);
    ck_assert_int_eq(packed_case_init(&p, &c, &wish, &err), PONS_OK);
    for (int64_t v = 0; v < 75000; v++) {
        bool above = packed_case_value(&p, 2 * v) > 3 || packed_case_value(&p, 2 * v + 1) > 3;
        int set = p.target[v] != 0 ? 0 : above ? 1 : -1;
        if (set >= 0)
            ck_assert_int_eq(sampling_index_voxel(&p, set, found[set]++), v);
    }
    ck_assert_int_eq(sampling_index_count(&p, 0), found[0]);
    ck_assert_int_eq(sampling_index_count(&p, 1), found[1]);
    packed_case_clear(&p);
}
END_TEST

/* Classes: 0 in most voxels, 1 in 10, 2 in 1000; every other row of 15 voxels is ignored. */
static void make_sparse_case(packed_case *p)
{
    sampling_spec spec = { SAMPLING_SETS_CLASSES_VALID, 3 + 1, 0 };
    pons_error err = PONS_ERROR_INIT;
    pons_case c;
    uint8_t *label;

    make_case(&c, 500, 60);
    label = c.label.voxels;
    for (int v = 0; v < 7500; v++)
        label[v] = v / 15 % 2 != 0 ? TARGET_IGNORED : v < 300 && v % 15 == 0 ? 1
                   : v >= 3000 && v < 5000 ? 2 : 0;
    ck_assert_int_eq(packed_case_init(p, &c, &spec, &err), PONS_OK);
}

START_TEST(each_class_is_drawn_alike_and_no_ignored_voxel)
{
    const int64_t one[3] = { 1, 1, 1 };
    pons_error err = PONS_ERROR_INIT;
    int drawn[2][256] = { { 0 } };
    loader_settings s = settings_of(2, 1, 1, 1, 1);
    packed_case p;

    make_sparse_case(&p);
    s.per_case = 1;
    s.foreground_share = 0.33;
    s.sampling = SAMPLING_FOREGROUND;
    for (uint64_t i = 0; i < 4000; i++) {
        sampler_input in = { &s, (int64_t)(i % 2), { .seed = 3, .epoch = i } };
        int64_t at[3];

        ck_assert_int_eq(sampler_choose(&p, &in, one, at, &err), PONS_OK);
        drawn[i % 2][p.target[(at[0] * 3 + at[1]) * 5 + at[2]]]++;
    }
    ck_assert_int_eq(drawn[1][0], 0);
    ck_assert_int_gt(drawn[1][1], 1000 - 90); /* four standard deviations */
    ck_assert_int_lt(drawn[1][1], 1000 + 90);
    ck_assert_int_eq(drawn[1][1] + drawn[1][2], 2000);
    ck_assert_int_gt(drawn[0][0], 1000);
    ck_assert_int_eq(drawn[0][0] + drawn[0][1] + drawn[0][2], 2000);
    packed_case_clear(&p);
}
END_TEST

/* Boxes of 4 x 9 x 3 in a case of 500 x 3 x 5; a class has voxels in all places of a slice. */
START_TEST(boxes_on_foreground_may_end_beyond_the_case)
{
    const int64_t extent[3] = { 4, 9, 3 };
    pons_error err = PONS_ERROR_INIT;
    loader_settings s = settings_of(1, 1, 1, 1, 1);
    int64_t most[2][3] = { { -9, -9, -9 }, { -9, -9, -9 } };
    packed_case p;

    make_sparse_case(&p);
    s.per_case = 1;
    s.foreground_share = 1;
    s.sampling = SAMPLING_FOREGROUND;
    for (uint64_t i = 0; i < 4000; i++) {
        sampler_input in = { &s, 0, { .seed = 3, .epoch = i / 2 } };
        int64_t at[3];
        s.far_beyond = i % 2 != 0;
        ck_assert_int_eq(sampler_choose(&p, &in, extent, at, &err), PONS_OK);
        for (int a = 0; a < 3; a++)
            most[i % 2][a] = at[a] > most[i % 2][a] ? at[a] : most[i % 2][a];
        ck_assert(at[0] >= 0 && at[1] >= -3 && at[2] >= 0);
    }
    ck_assert_int_eq(most[0][1], -3);
    ck_assert_int_eq(most[1][1], -2);
    ck_assert_int_eq(most[0][2], 2);
    ck_assert_int_eq(most[1][2], 3);
    packed_case_clear(&p);
}
END_TEST

/* The case of make_case with background alone, of which no voxel is above the bound. */
static void make_empty_case(packed_case *p, sampling_sets sets)
{
    sampling_spec spec = { sets, 2, 1000 };
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    make_case(&c, 7, 60);
    memset(c.label.voxels, 0, pons_volume_size(&c.label));
    ck_assert_int_eq(packed_case_init(p, &c, &spec, &err), PONS_OK);
}

static const struct { sampling_mode mode; sampling_sets sets; } set_rows[] = {
    { SAMPLING_CLASSES, SAMPLING_SETS_CLASSES }, { SAMPLING_BALANCED, SAMPLING_SETS_BALANCED }
};

START_TEST(validation_cases_without_a_wanted_voxel_are_uniform)
{
    static const double weights[] = { 0, 1 };
    const int64_t extent[3] = { 4, 2, 4 };
    loader_settings s = settings_of(1, 1, 4, 2, 4);
    int64_t most[3] = { 0 };
    int64_t at[3];
    packed_case p;

    make_empty_case(&p, set_rows[_i].sets);
    s.sampling = set_rows[_i].mode;
    s.class_weight_count = 2;
    s.class_weights = weights;
    pons_error err = PONS_ERROR_INIT;
    sampler_input in = { &s, 0, { .seed = 3 } };
    ck_assert_int_eq(sampler_choose(&p, &in, extent, at, &err), PONS_DATA);
    s.validation = true;
    err = (pons_error)PONS_ERROR_INIT;
    for (uint64_t i = 0; i < 200; i++) {
        in = (sampler_input){ &s, 0, { .seed = 3, .epoch = i } };
        ck_assert_int_eq(sampler_choose(&p, &in, extent, at, &err), PONS_OK);
        for (int a = 0; a < 3; a++) {
            ck_assert(at[a] >= 0);
            most[a] = at[a] > most[a] ? at[a] : most[a];
        }
    }
    ck_assert(most[0] == 3 && most[1] == 1 && most[2] == 1);
    packed_case_clear(&p);
}
END_TEST

START_TEST(an_index_takes_little_memory_for_any_set)
{
    sampling_spec none = { SAMPLING_SETS_NONE, 0, 0 }, all = { SAMPLING_SETS_CLASSES, 5, 0 };
    pons_error err = PONS_ERROR_INIT;
    packed_case p, q;
    pons_case c;

    make_case(&c, 50000, 60);
    ck_assert_int_eq(packed_case_init(&p, &c, &none, &err), PONS_OK);
    make_case(&c, 50000, 60);
    ck_assert_int_eq(packed_case_init(&q, &c, &all, &err), PONS_OK);
    ck_assert_int_le(q.size - p.size, 5 * (750000 / 4096 + 2) * 8);
    packed_case_clear(&p);
    packed_case_clear(&q);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("loader");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, each_case_occurs_once_an_epoch_for_any_batch);
    tcase_add_test(c, micro_batches_do_not_depend_on_the_thread_count);
    tcase_add_test(c, micro_batches_do_not_depend_on_the_cache);
    suite_add_test_if(c, process_number("/proc/self/io", "rchar:") > 0,
                      "counts of what a process reads", all_patches_of_a_case_come_from_one_read);
    tcase_add_test(c, the_memory_cache_keeps_its_limit);
    tcase_add_test(c, seeking_gives_the_micro_batches_of_that_step);
    tcase_add_test(c, each_replica_loads_its_own_micro_batches);
    tcase_add_test(c, balanced_sampling_draws_the_foreground_share);
    tcase_add_test(c, an_empty_sampling_set_is_replaced_by_the_other);
    tcase_add_test(c, class_weights_are_the_probabilities_of_centre_classes);
    tcase_add_loop_test(c, the_last_samples_of_a_step_are_foreground, 0,
                        sizeof forced_rows / sizeof *forced_rows);
    tcase_add_test(c, a_step_of_one_sample_draws_the_foreground_share);
    tcase_add_test(c, uniform_patches_lie_anywhere_inside);
    tcase_add_test(c, small_volumes_are_padded_with_the_odd_voxel_last);
    tcase_add_test(c, a_flat_patch_axis_is_moved_to_the_front);
    tcase_add_test(c, a_failure_in_a_thread_names_the_case);
    tcase_add_loop_test(c, opening_the_cache_reports_the_first_bad_case, 0, 3);
    tcase_add_test(c, a_case_without_a_label_cannot_be_trained_on);
    tcase_add_loop_test(c, packed_cases_restore_every_value, 0,
                        sizeof packings / sizeof packings[0]);
    tcase_add_test(c, sampling_sets_list_voxels_in_order);
    tcase_add_test(c, each_class_is_drawn_alike_and_no_ignored_voxel);
    tcase_add_test(c, boxes_on_foreground_may_end_beyond_the_case);
    tcase_add_loop_test(c, validation_cases_without_a_wanted_voxel_are_uniform, 0, 2);
    tcase_add_test(c, an_index_takes_little_memory_for_any_set);
    return suite_run();
}
