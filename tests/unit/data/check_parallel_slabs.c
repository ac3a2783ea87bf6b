/*
 * check_parallel_slabs.c - several threads give the same bytes of a case as one thread: reader,
 * every deterministic transform, inverse resampling, cache and written files, with extents of 1
 * and odd ones.
 */
#include "support/data/whole_resample.h"
#include "support/dataset_maker.h"
#include "support/root.h"
#include "support/suite.h"

#include "base/file/file.h"
#include "base/thread/parallel.h"
#include "cli/data/preprocess.h"
#include "data/case/case_read.h"
#include "data/loader/loader.h"
#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"
#include "data/phantom/phantom.h"
#include "data/reader/volume_read.h"
#include "data/transform/pipeline.h"
#include "data/volume/geometry.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/*
 * Each extent but the last has some hundred thousand voxels, which are several slabs with a ragged
 * end.
 */
static const int64_t extents[][3] = {
    { 67, 41, 53 }, { 131, 97, 3 }, { 1, 333, 421 }, { 333, 1, 421 }, { 333, 421, 1 }, { 5, 3, 7 }
};
enum { EXTENTS = sizeof extents / sizeof *extents };
static const int threads[] = { 1, 2, 3, 7 };
enum { THREADS = sizeof threads / sizeof *threads };

/* The grid is oblique and left-handed; its float32 entries are not integers. */
static const double affine[3][4] = { { -0.8, 0.1, 0, 21.5 }, { 0.08, 1.1, 0, -40 },
                                     { 0, 0, -2.9, 77.25 } };

static thread_budget spare;

static void lend_threads(int count)
{
    spare.threads = count - 1;
    thread_budget_set(&spare);
}

/* A value for an element, spread over -500 .. 499; a quarter of them are 0. */
static int number_at(int64_t n)
{
    uint32_t x = (uint32_t)n * UINT32_C(0x9e3779b1);

    x ^= x >> 15;
    return x % 4 == 0 ? 0 : (int)((x >> 8) % 1000) - 500;
}

static void make_volume(volume *v, pons_type type, int channels, const int64_t extent[3])
{
    pons_error err = PONS_ERROR_INIT;
    int64_t count;

    ck_assert(!pons_volume_init(v, type, channels, extent, &err));
    memcpy(v->affine, affine, sizeof affine);
    count = pons_volume_count(v) * channels;
    for (int64_t n = 0; n < count; n++)
        if (type == PONS_F32)
            ((float *)v->voxels)[n] = (float)number_at(n) + (n % 7 == 0 ? 0.25f : 0);
        else if (type == PONS_I32)
            ((int32_t *)v->voxels)[n] = abs(number_at(n));
        else
            ((uint8_t *)v->voxels)[n] = (uint8_t)(number_at(n) & 3);
}

static void assert_same(const volume *a, const volume *b, const char *what, int count)
{
    ck_assert_msg(a->type == b->type && a->channels == b->channels
                  && !memcmp(a->extent, b->extent, sizeof a->extent)
                  && !memcmp(a->inside_start, b->inside_start, sizeof a->inside_start)
                  && !memcmp(a->inside_extent, b->inside_extent, sizeof a->inside_extent)
                  && !memcmp(a->affine, b->affine, sizeof a->affine),
                  "%s: another grid by %d threads", what, count);
    ck_assert_msg(!a->voxels == !b->voxels, "%s: voxels by %d threads", what, count);
    ck_assert_msg(!a->voxels || !memcmp(a->voxels, b->voxels, pons_volume_size(a)),
                  "%s: other voxels by %d threads", what, count);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void assert_read(const char *path, const volume *expected)
{
    pons_error err = PONS_ERROR_INIT;

    for (int t = 0; t < THREADS; t++) {
        volume v;

        lend_threads(threads[t]);
        ck_assert_msg(!(expected->type == PONS_F32   ? nifti_read_image(path, &v, NULL, &err)
                        : expected->type == PONS_I32 ? nifti_read_label(path, &v, NULL, &err)
                                                     : nifti_read_label_compact(path, &v, NULL,
                                                                                &err)),
                      "%s", err.text);
        ck_assert_int_eq(v.type, expected->type);
        ck_assert_int_eq(v.channels, expected->channels);
        ck_assert(!memcmp(v.voxels, expected->voxels, pons_volume_size(&v)));
        pons_volume_clear(&v);
    }
}

START_TEST(nifti_files_do_not_depend_on_the_thread_count)
{
    static const struct { pons_type type; int channels; const char *name; } kinds[] = {
        { PONS_F32, 1, "f.nii" }, { PONS_F32, 3, "f3.nii" }, { PONS_I32, 1, "i.nii" },
        { PONS_U8, 1, "u.nii.gz" }
    };

    for (int e = 0; e < EXTENTS; e++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const char *path = in_root(kinds[k].name);
            char *first = NULL, *bytes;
            size_t first_size = 0, size;
            pons_error err = PONS_ERROR_INIT;
            volume v;

            make_volume(&v, kinds[k].type, kinds[k].channels, extents[e]);
            for (int t = 0; t < THREADS; t++) {
                lend_threads(threads[t]);
                ck_assert_msg(!nifti_write(path, &v, NULL, &err), "%s", err.text);
                ck_assert(!file_read(path, (size_t)1 << 30, &bytes, &size, PONS_FAILURE, &err));
                if (t == 0) {
                    first = bytes;
                    first_size = size;
                    continue;
                }
                ck_assert_uint_eq(size, first_size);
                ck_assert(!memcmp(bytes, first, size));
                free(bytes);
            }
            free(first);
            assert_read(path, &v);
            pons_volume_clear(&v);
        }
}
END_TEST

START_TEST(parallel_readers_name_the_first_bad_voxel)
{
    static const int64_t bad[][3] = { { 12, 40, 2 }, { 9, 0, 51 }, { 66, 20, 30 }, { 3, 2, 52 } };
    const char *path = in_root("bad.nii");
    pons_error err = PONS_ERROR_INIT;
    volume v;

    make_volume(&v, PONS_F32, 1, extents[0]);
    for (int n = 0; n < 4; n++)
        ((float *)v.voxels)[(bad[n][0] * 41 + bad[n][1]) * 53 + bad[n][2]] = (float)NAN;
    ck_assert_msg(!nifti_write(path, &v, NULL, &err), "%s", err.text);
    pons_volume_clear(&v);
    for (int t = 0; t < THREADS; t++) {
        pons_error problem = PONS_ERROR_INIT;

        lend_threads(threads[t]);
        ck_assert_int_eq(nifti_read_image(path, &v, NULL, &problem), PONS_DATA);
        ck_assert_msg(strstr(problem.text, "4 voxels are not finite, the first nan at 12 40 2,")
                      != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(channels_of_several_files_are_joined_in_order)
{
    const char *path[3] = { in_root("a.nii"), in_root("b.nii"), in_root("c.nii") };
    pons_error err = PONS_ERROR_INIT;

    for (int e = 0; e < EXTENTS; e++) {
        volume v[3];

        for (int n = 0; n < 3; n++) {
            make_volume(&v[n], PONS_F32, 1 + n % 2, extents[e]);
            ((float *)v[n].voxels)[0] = (float)(1000 + n);
            ck_assert(!nifti_write(path[n], &v[n], NULL, &err));
        }
        for (int t = 0; t < THREADS; t++) {
            volume all;
            int64_t count;

            lend_threads(threads[t]);
            ck_assert_msg(!volume_read_channels(3, path, &all, NULL, &err), "%s", err.text);
            ck_assert_int_eq(all.channels, 4);
            count = pons_volume_count(&all);
            for (int64_t i = 0; i < count; i++) {
                const float *x = (const float *)all.voxels + 4 * i;

                ck_assert(x[0] == ((float *)v[0].voxels)[i] && x[3] == ((float *)v[2].voxels)[i]);
                ck_assert(!memcmp(x + 1, (float *)v[1].voxels + 2 * i, 2 * sizeof *x));
            }
            pons_volume_clear(&all);
        }
        for (int n = 0; n < 3; n++)
            pons_volume_clear(&v[n]);
    }
    unlink(path[1]);
    unlink(path[2]);
    for (int t = 0; t < THREADS; t++) {
        pons_error problem = PONS_ERROR_INIT;
        volume all;

        lend_threads(threads[t]);
        ck_assert_int_eq(volume_read_channels(3, path, &all, NULL, &problem), PONS_DATA);
        ck_assert_msg(strstr(problem.text, "b.nii") != NULL, "%s", problem.text);
    }
}
END_TEST

/* ---- transforms ------------------------------------------------------------------------------ */

static const char *const chains[] = {
    "orient\n[preprocess.orient]\naxes = RAS\n",
    "orient\n[preprocess.orient]\naxes = LPS\n",
    "orient\n[preprocess.orient]\naxes = RPI\n",
    "orient\n[preprocess.orient]\naxes = SAL\n",
    "orient\n[preprocess.orient]\naxes = PIR\n",
    "orient\n[preprocess.orient]\naxes = ARI\n",
    "spacing\n[preprocess.spacing]\nmm = 1.3 0.7 1.9\n",
    "spacing\n[preprocess.spacing]\nmm = 0.37 1.7 4.1\n",
    "spacing\n[preprocess.spacing]\nmm = 1 1 3\ndiagonal = yes\n",
    "spacing\n[preprocess.spacing]\nmm = 1.3 0.7 1.9\nmethod = nnunet\n",
    "spacing\n[preprocess.spacing]\nmm = 1.6 0.5 0.5\nmethod = nnunet\n",
    "normalize\n",
    "normalize\n[preprocess.normalize]\nnonzero = yes\nchannel_wise = yes\n",
    "normalize\n[preprocess.normalize]\nchannels = 1\n",
    "normalize\n[preprocess.normalize]\nscheme = zscore\nuse_mask_for_norm = yes\n",
    "normalize\n[preprocess.normalize]\nscheme = rescale_to_0_1\n",
    "scale_range\n[preprocess.scale_range]\nfrom = -57 164\nto = 0 1\nclip = yes\n",
    "scale_range\n[preprocess.scale_range]\nfrom = -57 164\nchannels = 1\n",
    "scale_percentiles\n[preprocess.scale_percentiles]\nfrom = 0.5 99.5\n",
    "clip\n[preprocess.clip]\nlower = 20\nupper = 300 400\n",
    "resize\n[preprocess.resize]\nextent = 90 121 43\nmode = trilinear\n",
    "resize\n[preprocess.resize]\nextent = 21 33 17\nlabel_mode = nearest-exact\n",
    "resize\n[preprocess.resize]\nextent = 31 60 17\nmode = antialias\n",
    "scale_percentiles\n[preprocess.scale_percentiles]\nfrom = 3 61\nchannel_wise = yes\n"
    "clip = yes\n",
    "crop_foreground\n[preprocess.crop_foreground]\nabove = 498\nmargin = 1\n",
    "crop_foreground\n[preprocess.crop_foreground]\nsource = label\nabove = 2.5\n"
    "k_divisible = 5\nallow_smaller = no\n",
    "pad\n[preprocess.pad]\nextent = 70 70 70\nvalue = -3.5\n",
    "orient spacing scale_percentiles crop_foreground normalize pad\n[preprocess.spacing]\n"
    "mm = 0.9 1.4 2\n[preprocess.scale_percentiles]\nfrom = 5 95\n[preprocess.pad]\n"
    "extent = 0 90 0\nmethod = end\n",
};

static void make_case(pons_case *c, const int64_t extent[3])
{
    *c = (pons_case){ .size = sizeof *c, .name = "case" };
    make_volume(&c->image, PONS_F32, 2, extent);
    make_volume(&c->label, PONS_U8, 1, extent);
    make_volume(&c->valid, PONS_U8, 1, extent);
    memset(c->valid.voxels, 1, pons_volume_size(&c->valid) / 2);
}

static void open_chain(const char *text, config **c, pipeline **chain)
{
    pons_error err = PONS_ERROR_INIT;
    FILE *f = fopen(in_root("chain.ini"), "w");

    ck_assert_ptr_nonnull(f);
    fprintf(f, "[preprocess]\nsteps = %s", text);
    fclose(f);
    ck_assert_msg(!config_open(in_root("chain.ini"), 0, NULL, c, &err), "%s", err.text);
    ck_assert_msg(!pipeline_open(*c, "preprocess", false, 2, chain, &err), "%s", err.text);
}

START_TEST(every_transform_equals_its_result_on_one_thread)
{
    const char *text = chains[_i];
    pipeline *chain;
    config *c;

    open_chain(text, &c, &chain);
    for (int e = 0; e < EXTENTS; e++) {
        pons_case one, many;
        pons_error err = PONS_ERROR_INIT;

        make_case(&one, extents[e]);
        lend_threads(1);
        ck_assert_msg(!pipeline_apply(chain, PIPELINE_ALL, &one, NULL, &err), "%s", err.text);
        for (int t = 1; t < THREADS; t++) {
            make_case(&many, extents[e]);
            lend_threads(threads[t]);
            ck_assert_msg(!pipeline_apply(chain, PIPELINE_ALL, &many, NULL, &err), "%s", err.text);
            assert_same(&many.image, &one.image, text, threads[t]);
            assert_same(&many.label, &one.label, text, threads[t]);
            assert_same(&many.valid, &one.valid, text, threads[t]);
            case_clear(&many);
        }
        case_clear(&one);
    }
    pipeline_close(chain);
    config_close(c);
}
END_TEST

START_TEST(inverse_resampling_does_not_depend_on_the_thread_count)
{
    static const double turned[3][4] = { { 0, 1.3, 0.2, 3 }, { 0.9, 0, 0, -2 },
                                         { 0, 0.1, 2.2, 1 } };
    pons_error err = PONS_ERROR_INIT;

    for (int e = 0; e < EXTENTS; e++)
        for (int grid_number = 0; grid_number < 2; grid_number++)
            for (int kind = INVERSE_RESAMPLE_VALUES; kind <= INVERSE_RESAMPLE_REGIONS; kind++) {
                volume v, like, out[THREADS];
                volume_grid grid;

                make_volume(&v, PONS_F32, 3, extents[e]);
                make_volume(&like, PONS_U8, 1, extents[EXTENTS - 1 - e]);
                if (grid_number == 1)
                    memcpy(like.affine, turned, sizeof turned);
                volume_grid_of(&like, &grid);
                for (int t = 0; t < THREADS; t++) {
                    lend_threads(threads[t]);
                    ck_assert(!whole_resample(&v, &grid, (inverse_resample_kind)kind, 1, &out[t],
                                              &err));
                    assert_same(&out[t], &out[0], "way back", threads[t]);
                }
                for (int t = 0; t < THREADS; t++)
                    pons_volume_clear(&out[t]);
                pons_volume_clear(&v);
                pons_volume_clear(&like);
            }
}
END_TEST

/* ---- cases ----------------------------------------------------------------------------------- */

static const phantom_settings phantoms = { 3, { 67, 61, 53 }, 2, 4, 7 };

static dataset *open_phantoms(bool regions)
{
    static const char *const both[] = { "outer:1,2,3", "inner:2" };
    dataset_settings settings = { .source = in_root("data") };

    if (regions)
        settings.regions = (pons_texts){ 2, both };
    return maker_open(&settings);
}

static void assert_bytes(const void *a, const void *b, size_t size)
{
    ck_assert(!a == !b);
    ck_assert(!a || !memcmp(a, b, size));
}

static void assert_packed(const packed_case *a, const packed_case *b)
{
    size_t count = (size_t)pons_volume_count(&a->image);

    ck_assert_int_eq(a->code_size, b->code_size);
    ck_assert_int_eq(a->table_count, b->table_count);
    ck_assert_int_eq(a->block_count, b->block_count);
    ck_assert_uint_eq(a->size, b->size);
    assert_bytes(a->codes, b->codes, count * (size_t)(a->image.channels * a->code_size));
    assert_bytes(a->table, b->table, (size_t)a->table_count * sizeof *a->table);
    assert_bytes(a->target, b->target, count * (size_t)a->label.channels);
    assert_bytes(a->before, b->before,
                 (size_t)(a->block_count + 1) * (size_t)a->set_count * sizeof *a->before);
}

START_TEST(cached_cases_do_not_depend_on_the_thread_count)
{
    static const sampling_mode samplings[] = { SAMPLING_BALANCED, SAMPLING_CLASSES };
    pons_error err = PONS_ERROR_INIT;
    pipeline *chain;
    config *c;

    lend_threads(2);
    ck_assert_msg(!phantom_write(in_root("data"), &phantoms, NULL, &err), "%s", err.text);
    open_chain(chains[sizeof chains / sizeof *chains - 1], &c, &chain);
    for (int kind = 0; kind < 8; kind++) {
        cache *held[THREADS];
        dataset *d;
        const int ranks[] = { 0, 1, 2 };

        d = open_phantoms(kind & 1);
        for (int t = 0; t < THREADS; t++) {
            cache_settings s = { .mode = CACHE_MEMORY, .threads = threads[t],
                                 .sampling = samplings[kind >> 1 & 1], .background_above = 0.1 };

            ck_assert_msg(!cache_open(d, kind & 4 ? chain : NULL, 3, ranks, &s, NULL, &held[t],
                                      &err), "%s", err.text);
            for (int r = 0; r < 3; r++) {
                pons_case one, many;

                assert_packed(cache_packed(held[t], r), cache_packed(held[0], r));
                lend_threads(1);
                ck_assert(!cache_read(held[0], r, &one, &err));
                lend_threads(threads[t]);
                ck_assert(!cache_read(held[t], r, &many, &err));
                assert_same(&many.image, &one.image, "cache", threads[t]);
                assert_same(&many.label, &one.label, "cache", threads[t]);
                case_clear(&one);
                case_clear(&many);
            }
        }
        for (int t = 0; t < THREADS; t++)
            cache_close(held[t]);
        dataset_close(d);
    }
    pipeline_close(chain);
    config_close(c);
}
END_TEST

/* ---- pons data preprocess -------------------------------------------------------------------- */

static void preprocess(int count, char **said, size_t *said_size, pons_error *err)
{
    FILE *f = fopen(in_root("p.ini"), "w"), *stream = open_memstream(said, said_size);
    logger l = { .terminal = stream, .level = LOG_NORMAL };
    char folder[32];
    config *c;

    ck_assert(f != NULL && stream != NULL);
    fprintf(f, "[data]\nsource = %s\nloader_threads = %d\n[preprocess]\nsteps = %s",
            in_root("data"), count, chains[16]);
    fclose(f);
    ck_assert_msg(!config_open(in_root("p.ini"), 0, NULL, &c, err), "%s", err->text);
    snprintf(folder, sizeof folder, "out%d", count);
    preprocess_write(c, in_root(folder), &l, err);
    fclose(stream);
    config_close(c);
}

static void assert_files_equal(const char *a, const char *b)
{
    pons_error err = PONS_ERROR_INIT;
    char *bytes[2];
    size_t size[2];

    ck_assert_msg(!file_read(a, (size_t)1 << 30, &bytes[0], &size[0], PONS_FAILURE,
                              &err), "%s", err.text);
    ck_assert_msg(!file_read(b, (size_t)1 << 30, &bytes[1], &size[1], PONS_FAILURE,
                              &err), "%s", err.text);
    ck_assert_uint_eq(size[0], size[1]);
    ck_assert(!memcmp(bytes[0], bytes[1], size[0]));
    free(bytes[0]);
    free(bytes[1]);
}

START_TEST(preprocessed_files_do_not_depend_on_the_thread_count)
{
    char *said[THREADS], path[2][64];
    size_t size[THREADS];
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(!phantom_write(in_root("data"), &phantoms, NULL, &err), "%s", err.text);
    for (int t = 0; t < THREADS; t++) {
        preprocess(threads[t], &said[t], &size[t], &err);
        ck_assert_msg(err.status == PONS_OK, "%s", err.text);
        ck_assert_str_eq(said[t], said[0]);
        for (int n = 0; n < 6; n++) {
            static const char *const part[] = { "image", "label" };

            snprintf(path[0], sizeof path[0], "out1/phantom_%03d/%s.nii.gz", n / 2, part[n % 2]);
            snprintf(path[1], sizeof path[1], "out%d/phantom_%03d/%s.nii.gz", threads[t], n / 2,
                     part[n % 2]);
            assert_files_equal(in_root(path[0]), in_root(path[1]));
        }
    }
    ck_assert_msg(strstr(said[0], "phantom_000") < strstr(said[0], "phantom_002"), "%s", said[0]);
    for (int t = 0; t < THREADS; t++)
        free(said[t]);
}
END_TEST

START_TEST(only_the_first_failed_case_is_reported)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(!phantom_write(in_root("data"), &phantoms, NULL, &err), "%s", err.text);
    ck_assert_int_eq(truncate(in_root("data/imagesTr/phantom_001.nii.gz"), 300), 0);
    ck_assert_int_eq(truncate(in_root("data/imagesTr/phantom_002.nii.gz"), 300), 0);
    for (int t = 0; t < THREADS; t++) {
        pons_error problem = PONS_ERROR_INIT;
        char *said;
        size_t size;

        preprocess(threads[t], &said, &size, &problem);
        ck_assert_int_eq(problem.status, PONS_DATA);
        ck_assert_msg(strstr(problem.text, "phantom_001") != NULL, "%s", problem.text);
        ck_assert_msg(strstr(said, "phantom_000") != NULL && strstr(said, "phantom_002") == NULL,
                      "%s", said);
        free(said);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("slabs");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, nifti_files_do_not_depend_on_the_thread_count);
    tcase_add_test(c, parallel_readers_name_the_first_bad_voxel);
    tcase_add_test(c, channels_of_several_files_are_joined_in_order);
    tcase_add_loop_test(c, every_transform_equals_its_result_on_one_thread, 0,
                        (int)(sizeof chains / sizeof *chains));
    tcase_add_test(c, inverse_resampling_does_not_depend_on_the_thread_count);
    tcase_add_test(c, cached_cases_do_not_depend_on_the_thread_count);
    tcase_add_test(c, preprocessed_files_do_not_depend_on_the_thread_count);
    tcase_add_test(c, only_the_first_failed_case_is_reported);
    return suite_run();
}
