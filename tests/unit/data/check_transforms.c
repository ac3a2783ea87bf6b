/*
 * check_transforms.c - the pipelines of the golden set, from the INI text to voxels, against
 * MONAI's results. Further cases are a missing foreground, restricted channels and refused
 * options.
 */
#include "support/data/golden_file.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include "base/file/file.h"
#include "base/file/json.h"
#include "data/case/case_read.h"
#include "data/nifti/nifti_read.h"
#include "data/transform/pipeline.h"
#include "data/volume/volume.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static config *open_ini(const char *text)
{
    char path[] = "/tmp/pons-transforms-XXXXXX";
    int fd = mkstemp(path);
    pons_error err = PONS_ERROR_INIT;
    config *c = NULL;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ck_assert_msg(!config_open(path, 0, NULL, &c, &err), "%s", err.text);
    unlink(path);
    return c;
}

static void read_pair(const char *prefix, pons_case *out)
{
    char name[128];
    pons_error err = PONS_ERROR_INIT;
    volume ids;

    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->name = prefix;
    snprintf(name, sizeof name, "transforms/%s_image.nii.gz", prefix);
    ck_assert_msg(!nifti_read_image(golden_path(name), &out->image, NULL, &err), "%s", err.text);
    snprintf(name, sizeof name, "transforms/%s_label.nii.gz", prefix);
    ck_assert_msg(!nifti_read_label(golden_path(name), &ids, NULL, &err), "%s", err.text);
    ck_assert(!pons_volume_init(&out->label, PONS_U8, 1, ids.extent, &err));
    volume_copy_position(&out->label, &ids);
    for (int64_t n = 0; n < pons_volume_count(&ids); n++)
        ((uint8_t *)out->label.voxels)[n] = (uint8_t)((int32_t *)ids.voxels)[n];
    pons_volume_clear(&ids);
}

static void assert_images_equal(const volume *found, const volume *expected, const char *name)
{
    const float *f = found->voxels, *e = expected->voxels;
    float low = e[0], high = e[0], worst = 0;

    ck_assert_msg(!memcmp(found->extent, expected->extent, sizeof found->extent),
                  "%s: extent %d %d %d, expected %d %d %d", name, (int)found->extent[0],
                  (int)found->extent[1], (int)found->extent[2], (int)expected->extent[0],
                  (int)expected->extent[1], (int)expected->extent[2]);
    for (int64_t n = 0; n < pons_volume_count(expected); n++) {
        low = fminf(low, e[n]);
        high = fmaxf(high, e[n]);
        worst = fmaxf(worst, fabsf(f[n] - e[n]));
    }
    ck_assert_msg(worst <= IMAGE_OF_RANGE * (high - low), "%s: %g of a range of %g", name,
                  (double)worst, (double)(high - low));
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            ck_assert_msg(fabs(found->affine[r][c] - expected->affine[r][c]) <= GEOMETRY_MM,
                          "%s: affine %d %d is %.9g, expected %.9g", name, r, c,
                          found->affine[r][c], expected->affine[r][c]);
}

static void assert_labels_equal(const volume *found, const volume *expected, const char *name)
{
    const uint8_t *f = found->voxels, *e = expected->voxels;
    int64_t count = pons_volume_count(expected), other = 0;

    ck_assert(!memcmp(found->extent, expected->extent, sizeof found->extent));
    for (int64_t n = 0; n < count; n++)
        other += f[n] != e[n];
    ck_assert_msg((double)other <= LABEL_SHARE * (double)count, "%s: %d of %d labels differ", name,
                  (int)other, (int)count);
}

static void assert_chain(const char *volume_name, const char *chain_name, const char *ini)
{
    char prefix[128];
    pons_error err = PONS_ERROR_INIT;
    config *c = open_ini(ini);
    pipeline *chain;
    pons_case found, expected;

    snprintf(prefix, sizeof prefix, "%s_%s", volume_name, chain_name);
    ck_assert_msg(!pipeline_open(c, "preprocess", false, 1, &chain, &err), "%s: %s", prefix,
                  err.text);
    read_pair(volume_name, &found);
    read_pair(prefix, &expected);
    ck_assert_msg(!pipeline_apply(chain, PIPELINE_ALL, &found, NULL, &err), "%s: %s", prefix,
                  err.text);
    assert_images_equal(&found.image, &expected.image, prefix);
    assert_labels_equal(&found.label, &expected.label, prefix);
    case_clear(&found);
    case_clear(&expected);
    pipeline_close(chain);
    config_close(c);
}

START_TEST(golden_pipelines_give_the_volumes_of_monai)
{
    json_t *document = golden_json("transforms.json");
    int count = 0;

    for (size_t n = 0; n < json_array_size(document); n++) {
        const json_t *row = json_array_get(document, n);
        const char *ini = json_string_value(json_object_get(row, "ini"));

        if (!ini)
            continue;
        assert_chain(json_string_value(json_object_get(row, "volume")),
                     json_string_value(json_object_get(row, "chain")), ini);
        count++;
    }
    ck_assert_int_eq(count, 40);
    json_decref(document);
}
END_TEST

/* ---- cases beyond the golden set ------------------------------------------------------------- */

static void make_case(pons_case *c, int channels)
{
    static const int64_t extent[3] = { 3, 4, 5 };
    pons_error err = PONS_ERROR_INIT;

    memset(c, 0, sizeof *c);
    c->size = sizeof *c;
    c->name = "made";
    ck_assert(!pons_volume_init(&c->image, PONS_F32, channels, extent, &err));
    for (int n = 0; n < 60 * channels; n++)
        ((float *)c->image.voxels)[n] = (float)(n / channels + 1) * (n % channels ? 10 : 1);
}

static pons_status run_ini(const char *ini, pons_case *c, logger *l, pons_error *err)
{
    config *ini_config = open_ini(ini);
    pipeline *chain = NULL;
    pons_status status = pipeline_open(ini_config, "preprocess", false, c->image.channels, &chain,
                                       err);

    if (!status)
        status = pipeline_apply(chain, PIPELINE_ALL, c, l, err);
    pipeline_close(chain);
    config_close(ini_config);
    return status;
}

static void apply_ini(pons_case *c, const char *ini)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(!run_ini(ini, c, NULL, &err), "%s", err.text);
}

START_TEST(a_case_without_foreground_is_kept_with_a_warning)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    logger l = { .terminal = stream, .level = LOG_NORMAL };
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    make_case(&c, 1);
    memset(c.image.voxels, 0, pons_volume_size(&c.image));
    ck_assert(!run_ini("[preprocess]\nsteps = crop_foreground\n", &c, &l, &err));
    fclose(stream);
    ck_assert_int_eq(pons_volume_count(&c.image), 60);
    ck_assert_msg(strstr(text, "case 'made'") && strstr(text, "no voxel above 0"), "%s", text);
    free(text);
    case_clear(&c);
}
END_TEST

START_TEST(percentiles_of_no_voxel_change_nothing_and_warn)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    logger l = { .terminal = stream, .level = LOG_NORMAL };
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    make_case(&c, 1);
    ck_assert(!run_ini("[preprocess]\nsteps = scale_percentiles\n"
                       "[preprocess.scale_percentiles]\nfrom = 1 99\nabove = 60\n", &c, &l,
                       &err));
    fclose(stream);
    ck_assert_float_eq(((float *)c.image.voxels)[59], 60);
    ck_assert_msg(strstr(text, "no voxel above 60") != NULL, "%s", text);
    free(text);
    case_clear(&c);
}
END_TEST

START_TEST(a_transform_changes_only_its_channels)
{
    pons_case c;

    make_case(&c, 2);
    apply_ini(&c, "[preprocess]\nsteps = second\n[preprocess.second]\n"
                  "plugin = scale_range\nchannels = 1\nfrom = 10 600\nto = 0 1\n");
    ck_assert_float_eq(((float *)c.image.voxels)[118], 60);
    ck_assert_float_eq(((float *)c.image.voxels)[119], 1);
    ck_assert_float_eq(((float *)c.image.voxels)[1], 0);
    case_clear(&c);
}
END_TEST

START_TEST(channels_are_clipped_at_their_own_limits)
{
    pons_case c;

    make_case(&c, 2);
    apply_ini(&c, "[preprocess]\nsteps = clip\n[preprocess.clip]\nlower = 7\nupper = 50 500\n");
    for (int n = 0; n < 60; n++) {
        const float *x = (const float *)c.image.voxels + 2 * n;

        ck_assert_float_eq(x[0], fminf(fmaxf((float)(n + 1), 7), 50));
        ck_assert_float_eq(x[1], fminf(fmaxf((float)(10 * n + 10), 7), 500));
    }
    case_clear(&c);
}
END_TEST

START_TEST(channels_are_normalised_together_or_separately)
{
    pons_case c;

    make_case(&c, 2);
    apply_ini(&c, "[preprocess]\nsteps = normalize\n[preprocess.normalize]\n"
                  "channel_wise = yes\n");
    ck_assert_float_eq_tol(((float *)c.image.voxels)[0], ((float *)c.image.voxels)[1], 1e-6f);
    case_clear(&c);
    make_case(&c, 2);
    apply_ini(&c, "[preprocess]\nsteps = normalize\n");
    ck_assert(((float *)c.image.voxels)[0] < ((float *)c.image.voxels)[1]);
    case_clear(&c);
}
END_TEST

/* ---- nnU-Net's schemes ----------------------------------------------------------------------- */

enum { SIDE = 7, CUBE = SIDE * SIDE * SIDE };

/* Two channels in a cube; a third of the voxels are 0 in both, and a few of these are labelled. */
static void make_sparse_case(pons_case *c, uint64_t seed)
{
    const int64_t extent[3] = { SIDE, SIDE, SIDE };
    pons_error err = PONS_ERROR_INIT;

    memset(c, 0, sizeof *c);
    c->size = sizeof *c;
    ck_assert(!pons_volume_init(&c->image, PONS_F32, 2, extent, &err));
    ck_assert(!pons_volume_init(&c->label, PONS_U8, 1, extent, &err));
    for (int n = 0; n < CUBE; n++) {
        float *x = (float *)c->image.voxels + 2 * n;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        x[0] = seed >> 60 < 8 ? (float)(seed >> 50 & 255) + 1 : 0;
        x[1] = seed >> 60 > 5 && seed >> 60 < 11 ? 3 - (float)(seed >> 40 & 3) : 0;
        ((uint8_t *)c->label.voxels)[n] = seed >> 60 > 7 && (seed >> 30 & 31) == 0;
    }
}

/* Spread 'outside' from voxel n to its neighbours until nothing changes; true: it changed. */
static bool spread_once(const bool *zero, bool *outside)
{
    bool changed = false;

    for (int n = 0; n < CUBE; n++) {
        int i = n / SIDE / SIDE, j = n / SIDE % SIDE, k = n % SIDE;
        bool side = i == 0 || j == 0 || k == 0 || i == SIDE - 1 || j == SIDE - 1 || k == SIDE - 1;
        bool reached = zero[n]
                       && (side || outside[n - 1] || outside[n + 1] || outside[n - SIDE]
                           || outside[n + SIDE] || outside[n - SIDE * SIDE]
                           || outside[n + SIDE * SIDE]);

        changed = changed || reached != outside[n];
        outside[n] = reached;
    }
    return changed;
}

START_TEST(masked_scores_change_what_is_not_0_holes_and_labels)
{
    int holes = 0, kept = 0, labelled = 0;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        bool zero[CUBE], outside[CUBE] = { false };
        double sum = 0, squares = 0, mean;
        int count = 0;
        pons_case before, c;

        make_sparse_case(&before, seed);
        make_sparse_case(&c, seed);
        const float *x = before.image.voxels;
        const uint8_t *label = before.label.voxels;
        for (int n = 0; n < CUBE; n++)
            zero[n] = x[2 * n] == 0 && x[2 * n + 1] == 0;
        while (spread_once(zero, outside))
            continue;
        for (int n = 0; n < CUBE; n++) {
            bool taken = !outside[n] || label[n];

            holes += zero[n] && !outside[n];
            labelled += outside[n] && label[n];
            kept += !taken;
            count += taken;
            sum += taken ? x[2 * n] : 0;
            squares += taken ? (double)x[2 * n] * x[2 * n] : 0;
        }
        mean = sum / count;
        apply_ini(&c, "[preprocess]\nsteps = normalize\n[preprocess.normalize]\n"
                      "scheme = zscore\nuse_mask_for_norm = yes\n");
        for (int n = 0; n < CUBE; n++) {
            bool taken = !outside[n] || label[n];
            double wanted = (x[2 * n] - mean) / sqrt(squares / count - mean * mean);

            ck_assert_double_eq_tol(((float *)c.image.voxels)[2 * n], taken ? wanted : 0, 1e-5);
        }
        case_clear(&before);
        case_clear(&c);
    }
    ck_assert_int_gt(holes, 0);
    ck_assert_int_gt(kept, 0);
    ck_assert_int_gt(labelled, 0);
}
END_TEST

START_TEST(colours_are_divided_by_255_or_refused)
{
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    make_case(&c, 1);
    apply_ini(&c, "[preprocess]\nsteps = normalize\n[preprocess.normalize]\n"
                  "scheme = rgb_to_0_1\n");
    for (int n = 0; n < 60; n++)
        ck_assert_float_eq(((float *)c.image.voxels)[n], (float)(n + 1) / 255);
    ((float *)c.image.voxels)[7] = 255.5f;
    ck_assert_int_eq(run_ini("[preprocess]\nsteps = normalize\n[preprocess.normalize]\n"
                             "scheme = rgb_to_0_1\n", &c, NULL, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "expected 0 to 255") != NULL, "%s", err.text);
    case_clear(&c);
}
END_TEST

START_TEST(a_channel_without_scheme_stays)
{
    pons_case c;

    make_case(&c, 1);
    apply_ini(&c, "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nscheme = nonorm\n");
    for (int n = 0; n < 60; n++)
        ck_assert_float_eq(((float *)c.image.voxels)[n], (float)(n + 1));
    case_clear(&c);
}
END_TEST

/* ---- extents --------------------------------------------------------------------------------- */

START_TEST(a_crop_is_padded_to_a_multiple)
{
    pons_case c;

    make_case(&c, 1);
    apply_ini(&c, "[preprocess]\nsteps = crop_foreground\n[preprocess.crop_foreground]\n"
                  "k_divisible = 4\n");
    ck_assert_int_eq(c.image.extent[0], 4);
    ck_assert_int_eq(c.image.extent[1], 4);
    ck_assert_int_eq(c.image.extent[2], 8);
    ck_assert_int_eq(c.image.inside_start[2], 1); /* three voxels are added, one of them in front */
    ck_assert_int_eq(c.image.inside_extent[2], 5);
    case_clear(&c);
}
END_TEST

START_TEST(a_crop_to_voxels_other_than_0_keeps_negative_ones)
{
    pons_case c;
    float *x;

    make_case(&c, 1);
    x = c.image.voxels;
    memset(x, 0, pons_volume_size(&c.image));
    x[(1 * 4 + 1) * 5 + 2] = -1;
    x[(1 * 4 + 2) * 5 + 2] = 1;
    apply_ini(&c, "[preprocess]\nsteps = crop_foreground\n[preprocess.crop_foreground]\n"
                  "select = nonzero\n");
    ck_assert_int_eq(pons_volume_count(&c.image), 2);
    ck_assert(((float *)c.image.voxels)[0] == -1 && ((float *)c.image.voxels)[1] == 1);
    case_clear(&c);
}
END_TEST

/* torchvision's CenterCrop: 7 to 4 begins at round(1.5) = 2, 5 to 4 at round(0.5) = 0. */
START_TEST(the_middle_is_cut_as_by_torchvision)
{
    pons_error err = PONS_ERROR_INIT;
    pons_case c = { .size = sizeof c, .name = "c" };

    ck_assert(!pons_volume_init(&c.image, PONS_F32, 1, (const int64_t[]){ 1, 7, 5 }, &err));
    for (int n = 0; n < 35; n++)
        ((float *)c.image.voxels)[n] = (float)n;
    apply_ini(&c, "[preprocess]\nsteps = center_crop\n[preprocess.center_crop]\n"
                  "extent = 0 4 8\nvalue = -1\n");
    ck_assert(c.image.extent[0] == 1 && c.image.extent[1] == 4 && c.image.extent[2] == 8);
    ck_assert(((float *)c.image.voxels)[0] == -1 && ((float *)c.image.voxels)[1] == 10);
    ck_assert(((float *)c.image.voxels)[5] == 14 && ((float *)c.image.voxels)[6] == -1);
    ck_assert(((float *)c.image.voxels)[8 + 1] == 15 && ((float *)c.image.voxels)[3 * 8 + 5] == 29);
    case_clear(&c);
}
END_TEST

/* The corners of the first and the last voxel stay where they are. */
START_TEST(a_resized_case_fills_the_same_box)
{
    pons_case c;
    volume was;

    make_case(&c, 1);
    c.image.affine[0][0] = -2;
    c.image.affine[1][2] = 0.5;
    was = c.image;
    was.voxels = NULL;
    apply_ini(&c, "[preprocess]\nsteps = resize\n[preprocess.resize]\nextent = 7 2 0\n");
    ck_assert_int_eq(c.image.extent[0] * 100 + c.image.extent[1] * 10 + c.image.extent[2], 725);
    ck_assert_int_eq(c.image.inside_extent[0] * 100 + c.image.inside_extent[1] * 10, 720);
    for (int r = 0; r < 3; r++) {
        double first = 0, last = 0;

        for (int a = 0; a < 3; a++) {
            first += (c.image.affine[r][a] - was.affine[r][a]) * -0.5;
            last += c.image.affine[r][a] * ((double)c.image.extent[a] - 0.5) -
                    was.affine[r][a] * ((double)was.extent[a] - 0.5);
        }
        ck_assert_double_eq_tol(first + c.image.affine[r][3] - was.affine[r][3], 0, 1e-12);
        ck_assert_double_eq_tol(last + c.image.affine[r][3] - was.affine[r][3], 0, 1e-12);
    }
    case_clear(&c);
}
END_TEST

/*
 * Decreasing and empty ranges, computed by MONAI 1.6.1: ScaleIntensityRange and
 * ScaleIntensityRangePercentiles of seven values.
 */
static const struct falling {
    const char *step, *options;
    float value[7], expected[7];
} fallings[] = {
    { "scale_range", "from = 10 0\nto = 0 1\nclip = yes\n", { -3, 0, 2, 5, 10, 12, 20 },
      { 1, 1, 0.800000012f, 0.5f, 0, 0, 0 } },
    { "scale_range", "from = 600 10\nto = -1 1\nclip = yes\n",
      { -150, 0, 100, 250, 500, 600, 1000 },
      { 1, 1, 0.694915295f, 0.186440706f, -0.661016941f, -1, -1 } },
    { "scale_range", "from = 10 0\n", { -3, 0, 2, 5, 10, 12, 20 },
      { 1.29999995f, 1, 0.800000012f, 0.5f, 0, -0.200000003f, -1 } },
    { "scale_range", "from = 0 10\nto = 1 0\n", { -3, 0, 2, 5, 10, 12, 20 },
      { 1.29999995f, 1, 0.800000012f, 0.5f, 0, -0.200000048f, -1 } },
    { "scale_range", "from = 5 5\nto = 2 3\nclip = yes\n", { -3, 0, 2, 5, 10, 12, 20 },
      { -6, -3, -1, 2, 7, 9, 17 } },
    { "scale_percentiles", "from = 30 70\nto = 2 3\nclip = yes\n", { 7, 7, 7, 7, 7, 9, -1 },
      { 2, 2, 2, 2, 2, 4, -6 } },
    { "scale_percentiles", "from = 90 10\nto = 0 1\nclip = yes\n", { -3, 0, 2, 5, 10, 12, 20 },
      { 1, 0.926829219f, 0.804877996f, 0.621951163f, 0.317073107f, 0.195121884f, 0 } },
    { "scale_percentiles", "from = 10 90\nto = 1 0\n", { -3, 0, 2, 5, 10, 12, 20 },
      { 1.10975611f, 0.926829278f, 0.804878056f, 0.621951222f, 0.317073166f, 0.195121944f,
        -0.292683005f } },
};

START_TEST(falling_and_empty_ranges_are_scaled_as_by_monai)
{
    static const int64_t extent[3] = { 1, 1, 7 };
    const struct falling *f = &fallings[_i];
    pons_error err = PONS_ERROR_INIT;
    char ini[256];
    pons_case c = { .size = sizeof c, .name = "made" };

    ck_assert(!pons_volume_init(&c.image, PONS_F32, 1, extent, &err));
    memcpy(c.image.voxels, f->value, sizeof f->value);
    snprintf(ini, sizeof ini, "[preprocess]\nsteps = %s\n[preprocess.%s]\n%s", f->step, f->step,
             f->options);
    apply_ini(&c, ini);
    for (int n = 0; n < 7; n++)
        ck_assert_float_eq_tol(((float *)c.image.voxels)[n], f->expected[n],
                               (float)SCALED_VALUE * fmaxf(1, fabsf(f->expected[n])));
    case_clear(&c);
}
END_TEST

static const struct refusal { const char *ini, *phrase; } refusals[] = {
    { "[preprocess]\nsteps = nosuch\n", "nosuch" },
    { "[preprocess]\nsteps = orient\n[preprocess.orient]\naxes = RAX\n", "RAX" },
    { "[preprocess]\nsteps = spacing\n", "mm" },
    { "[preprocess]\nsteps = spacing\n[preprocess.spacing]\nmm = 1\norder = 1\n",
      "order: found 1, expected 3 unless" },
    { "[preprocess]\nsteps = spacing\n[preprocess.spacing]\nmm = 1\norder_z = 3\n",
      "order_z: found 3, expected 0 unless" },
    { "[preprocess]\nsteps = spacing\n[preprocess.spacing]\nmm = 1\nforce_separate_z = yes\n",
      "force_separate_z: found yes, expected auto unless" },
    { "[preprocess]\nsteps = spacing\n[preprocess.spacing]\nmm = 1\nmethod = nnunet\n"
      "diagonal = yes\n",
      "diagonal: found yes, expected no with" },
    { "[preprocess]\nsteps = spacing\n[preprocess.spacing]\nmm = 1\norder = 2\n",
      "order" },
    { "[preprocess]\nsteps = scale_range\n[preprocess.scale_range]\nfrom = 1\n",
      "from = '1': found 1, expected 2 numbers" },
    { "[preprocess]\nsteps = scale_percentiles\n[preprocess.scale_percentiles]\nfrom = 1 101\n",
      "101" },
    { "[preprocess]\nsteps = scale_percentiles\n[preprocess.scale_percentiles]\nfrom = 1 99\n"
      "above = 0 1\n", "above = '0 1': found 2, expected" },
    { "[preprocess]\nsteps = scale_range\n[preprocess.scale_range]\nfrom = 0 9\nto = 1 0\n"
      "clip = yes\n", "to: it falls from 1 to 0, expected it to rise" },
    { "[preprocess]\nsteps = scale_percentiles\n[preprocess.scale_percentiles]\nfrom = 0 9\n"
      "to = 1 0\nclip = yes\n", "to: it falls from 1 to 0, expected it to rise" },
    { "[preprocess]\nsteps = pad\n[preprocess.pad]\nextent = 4\nchannels = 0\n", "moves voxels" },
    { "[preprocess]\nsteps = clip\n", "lower: neither lower nor upper is given" },
    { "[preprocess]\nsteps = clip\n[preprocess.clip]\nlower = 2\nupper = 1\n",
      "upper: found 1, expected at least lower, 2" },
    { "[preprocess]\nsteps = clip\n[preprocess.clip]\nlower = 1 2\n",
      "lower: found 2 numbers, expected 1 or one for each of 1 channels" },
    { "[preprocess]\nsteps = clip\n[preprocess.clip]\nlower = 1 2\nupper = 3 4 5\n",
      "upper: found 3 numbers, expected 1 or 2 as in lower" },
    { "[preprocess]\nsteps = resize\n[preprocess.resize]\nextent = -1\n", "extent" },
    { "[preprocess]\nsteps = resize\n[preprocess.resize]\nextent = 4 4 5\nsize_mode = longest\n",
      "extent: found 4 4 5, expected one number" },
    { "[preprocess]\nsteps = resize\n[preprocess.resize]\nextent = 4\nmode = cubic\n", "cubic" },
    { "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nuse_mask_for_norm = yes\n",
      "use_mask_for_norm: is given, but scheme = monai does not use it" },
    { "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nscheme = ct\nlower = 1\n"
      "upper = 2\nsubtrahend = 1\n", "divisor: is missing, expected a number for scheme = ct" },
    { "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nscheme = ct\nlower = 1 4\n"
      "upper = 2\nsubtrahend = 1\ndivisor = 1\n", "upper: found 2, expected at least lower, 4" },
    { "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nscheme = zscore\nnonzero = yes\n",
      "nonzero: is given, but scheme = zscore does not use it" },
    { "[preprocess]\nsteps = normalize\n[preprocess.normalize]\nchannels = 1\n",
      "found channel 1, expected 0 to 0" },
};

START_TEST(an_option_that_cannot_work_is_refused_and_named)
{
    const struct refusal *r = &refusals[_i];
    pons_error err = PONS_ERROR_INIT;
    pons_case c;
    pons_status status;

    make_case(&c, 1);
    status = run_ini(r->ini, &c, NULL, &err);
    ck_assert_msg(status == PONS_CONFIG, "status %d: %s", status, err.text);
    ck_assert_msg(strstr(err.text, r->phrase) != NULL, "%s", err.text);
    case_clear(&c);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("transforms");

    tcase_add_test(c, golden_pipelines_give_the_volumes_of_monai);
    tcase_add_test(c, a_case_without_foreground_is_kept_with_a_warning);
    tcase_add_test(c, percentiles_of_no_voxel_change_nothing_and_warn);
    tcase_add_test(c, a_transform_changes_only_its_channels);
    tcase_add_test(c, channels_are_clipped_at_their_own_limits);
    tcase_add_test(c, channels_are_normalised_together_or_separately);
    tcase_add_test(c, masked_scores_change_what_is_not_0_holes_and_labels);
    tcase_add_test(c, colours_are_divided_by_255_or_refused);
    tcase_add_test(c, a_channel_without_scheme_stays);
    tcase_add_test(c, a_crop_is_padded_to_a_multiple);
    tcase_add_test(c, a_crop_to_voxels_other_than_0_keeps_negative_ones);
    tcase_add_test(c, the_middle_is_cut_as_by_torchvision);
    tcase_add_test(c, a_resized_case_fills_the_same_box);
    tcase_add_loop_test(c, falling_and_empty_ranges_are_scaled_as_by_monai, 0,
                        sizeof fallings / sizeof fallings[0]);
    tcase_add_loop_test(c, an_option_that_cannot_work_is_refused_and_named, 0,
                        sizeof refusals / sizeof refusals[0]);
    return suite_run();
}
