/*
 * phantom.c - synthetic heads: a shell around a brain (class 1) with smaller structures (classes 2
 * and up).
 *
 * Each structure has its own intensity in each channel. A linear drift over the head and noise are
 * added. Position, size and brightness of all ellipsoids vary from case to case; air is exactly 0.
 * No function of libm that rounds differently between systems is used, so a seed gives the same
 * files on every machine.
 */
#include "data/phantom/phantom.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/progress.h"
#include "base/random.h"
#include "data/nifti/nifti_write.h"

enum { CHANNELS_MOST = 16, CLASSES_MOST = 64, MANIFEST_MOST = 1 << 26 };

/* An ellipsoid in coordinates from -1 to 1 along each axis of the volume. */
typedef struct ellipsoid {
    float centre[3], radius[3];
    float intensity[CHANNELS_MOST];
} ellipsoid;

typedef struct head {
    ellipsoid outer, skull;
    ellipsoid part[CLASSES_MOST];  /* [1]: the brain; [2] and up: structures in it */
    float drift[3];
    uint64_t noise;
} head;

/* ---- random heads ---------------------------------------------------------------------------- */

static float draw_between(pons_rng *d, float low, float high)
{
    return low + (high - low) * pons_draw_uniform(d);
}

static void draw_position(ellipsoid *e, pons_rng *d, const float centre[3], float spread,
                          float smallest, float largest)
{
    for (int a = 0; a < 3; a++) {
        e->centre[a] = centre[a] + draw_between(d, -spread, spread);
        e->radius[a] = draw_between(d, smallest, largest);
    }
}

/* Intensities by channel; the order of brightness differs between channels. */
static void draw_intensities(ellipsoid *e, pons_rng *d, int channels, int number)
{
    for (int c = 0; c < channels; c++) {
        float base = 300.0f + 150.0f * (float)((number * (c + 1) + c) % 5);

        e->intensity[c] = base * draw_between(d, 0.95f, 1.05f);
    }
}

static void draw_head(head *h, const phantom_settings *s, int64_t number)
{
    static const float middle[3] = { 0, 0, 0 };
    static const float seat[6][3] = { { 0.3f, 0, 0 }, { -0.3f, 0, 0 }, { 0, 0.3f, 0 },
                                      { 0, -0.3f, 0 }, { 0, 0, 0.3f }, { 0, 0, -0.3f } };
    pons_rng d = { .seed = s->seed, .stream = random_stream_hash("phantom"),
                   .case_rank = (uint64_t)number };

    memset(h, 0, sizeof *h);
    draw_position(&h->part[1], &d, middle, 0.06f, 0.56f, 0.66f);
    draw_intensities(&h->part[1], &d, s->channels, 2);
    h->outer = h->skull = h->part[1];
    for (int a = 0; a < 3; a++) {
        h->skull.radius[a] += 0.08f;
        h->outer.radius[a] += 0.2f;
        h->drift[a] = draw_between(&d, -0.1f, 0.1f);
    }
    for (int c = 0; c < s->channels; c++) {
        h->skull.intensity[c] = 60;
        h->outer.intensity[c] = 330;
    }
    for (int n = 2; n < s->classes; n++) {
        float radius = s->classes <= 8 ? 0.22f : 0.12f;
        float centre[3];

        for (int a = 0; a < 3; a++)
            centre[a] = h->part[1].centre[a] +
                        (n < 8 ? seat[n - 2][a] : draw_between(&d, -0.35f, 0.35f));
        draw_position(&h->part[n], &d, centre, 0.04f, 0.7f * radius, radius);
        draw_intensities(&h->part[n], &d, s->channels, n + 1);
    }
    h->noise = pons_draw_key(&d);
}

/* ---- voxels ---------------------------------------------------------------------------------- */

/* Squared distance from the centre in units of the radius; below 1 is inside. */
static float radius_squared(const ellipsoid *e, const float at[3])
{
    float sum = 0;

    for (int a = 0; a < 3; a++) {
        float x = (at[a] - e->centre[a]) / e->radius[a];
        sum += x * x;
    }
    return sum;
}

/* Coverage: 1 inside, 0 outside, smooth over a tenth of the radius, as for partial volumes. */
static float coverage_at(float distance)
{
    float t = (1.1f - distance) / 0.2f;

    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return t * t * (3 - 2 * t);
}

static void blend_in(const ellipsoid *e, float distance, int channels, float *value)
{
    float share = coverage_at(distance);

    for (int c = 0; c < channels; c++)
        value[c] += share * (e->intensity[c] - value[c]);
}

/* The class at a position and the intensities without drift and noise; false: air. */
static bool tissue_at(const head *h, const phantom_settings *s, const float at[3], float *value,
                      uint8_t *label)
{
    float brain;

    *label = 0;
    if (radius_squared(&h->outer, at) >= 1)
        return false;
    memcpy(value, h->outer.intensity, (size_t)s->channels * sizeof *value);
    blend_in(&h->skull, radius_squared(&h->skull, at), s->channels, value);
    brain = radius_squared(&h->part[1], at);
    blend_in(&h->part[1], brain, s->channels, value);
    if (brain >= 1)
        return true;
    *label = 1;
    for (int n = 2; n < s->classes; n++) {
        float inside = radius_squared(&h->part[n], at);

        if (inside >= 1.1f)
            continue;
        blend_in(&h->part[n], inside, s->channels, value);
        if (inside < 1)
            *label = (uint8_t)n;
    }
    return true;
}

static void fill_row(const head *h, const phantom_settings *s, int64_t row, float at[3],
                     float *image, uint8_t *label)
{
    int64_t count = s->extent[2];
    float normal[4];

    for (int64_t k = 0; k < count; k++) {
        float *value = image + k * s->channels, drift = 1;

        at[2] = (2 * (float)k + 1) / (float)count - 1;
        if (!tissue_at(h, s, at, value, &label[k]))
            continue;
        for (int a = 0; a < 3; a++)
            drift += h->drift[a] * at[a];
        for (int c = 0; c < s->channels; c++) {
            uint64_t element = (uint64_t)((row * count + k) * s->channels + c);

            pons_voxel_normal(h->noise, element / 4, normal);
            value[c] = fmaxf(1, rintf(value[c] * drift + 20 * normal[element % 4]));
        }
    }
}

pons_status phantom_make(const phantom_settings *settings, int64_t number, volume *image,
                         volume *label, pons_error *err)
{
    const phantom_settings *s = settings;
    int64_t extent[3] = { s->extent[0], s->extent[1], s->extent[2] };
    head *h = malloc(sizeof *h);
    pons_status status;

    if (!h)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    status = pons_volume_init(image, PONS_F32, s->channels, extent, err);
    if (!status) {
        status = pons_volume_init(label, PONS_U8, 1, extent, err);
        if (status)
            pons_volume_clear(image);
    }
    if (status) {
        free(h);
        return status;
    }
    for (int a = 0; a < 3; a++)
        image->affine[a][3] = -0.5 * (double)(extent[a] - 1);
    volume_copy_position(label, image);
    draw_head(h, s, number);
    for (int64_t row = 0; row < extent[0] * extent[1]; row++) {
        float at[3] = { (2 * (float)(row / extent[1]) + 1) / (float)extent[0] - 1,
                        (2 * (float)(row % extent[1]) + 1) / (float)extent[1] - 1, 0 };

        fill_row(h, s, row, at, (float *)image->voxels + row * extent[2] * s->channels,
                 (uint8_t *)label->voxels + row * extent[2]);
    }
    free(h);
    return PONS_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void put_manifest(FILE *f, const phantom_settings *s)
{
    fprintf(f, "{\n  \"name\": \"phantom\",\n  \"description\": \"synthetic heads, seed %" PRIu64
            "\",\n  \"tensorImageSize\": \"%s\",\n  \"modality\": {", s->seed,
            s->channels > 1 ? "4D" : "3D");
    for (int c = 0; c < s->channels; c++)
        fprintf(f, "%s\"%d\": \"contrast%d\"", c ? ", " : "", c, c);
    fprintf(f, "},\n  \"labels\": {\"0\": \"background\", \"1\": \"brain\"");
    for (int n = 2; n < s->classes; n++)
        fprintf(f, ", \"%d\": \"structure%d\"", n, n - 1);
    fprintf(f, "},\n  \"numTraining\": %" PRId64 ",\n  \"numTest\": 0,\n  \"training\": [",
            s->cases);
    for (int64_t n = 0; n < s->cases; n++)
        fprintf(f, "%s\n    {\"image\": \"./imagesTr/phantom_%03" PRId64 ".nii.gz\", "
                "\"label\": \"./labelsTr/phantom_%03" PRId64 ".nii.gz\"}", n ? "," : "", n, n);
    fprintf(f, "\n  ],\n  \"test\": []\n}\n");
}

static pons_status write_manifest(const char *folder, const phantom_settings *s, pons_error *err)
{
    char path[4096];
    safe_file f;
    pons_status status;

    snprintf(path, sizeof path, "%s/dataset.json", folder);
    status = safe_file_open(&f, path, err);
    if (status)
        return status;
    put_manifest(f.file, s);
    return safe_file_commit(&f, err);
}

static pons_status write_case(const char *folder, const phantom_settings *s, int64_t number,
                              pons_error *err)
{
    char path[4096];
    volume image, label;
    pons_status status = phantom_make(s, number, &image, &label, err);

    if (status)
        return status;
    snprintf(path, sizeof path, "%s/imagesTr/phantom_%03" PRId64 ".nii.gz", folder, number);
    status = nifti_write_unsynced(path, &image, 4, err);
    snprintf(path, sizeof path, "%s/labelsTr/phantom_%03" PRId64 ".nii.gz", folder, number);
    if (!status)
        status = nifti_write_unsynced(path, &label, 2, err);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
    return status;
}

static pons_status check_settings(const phantom_settings *s, pons_error *err)
{
    if (s->cases < 1 || s->cases > 100000)
        return pons_fail(err, PONS_USAGE, "'--cases' is %" PRId64 ", expected 1 to 100000",
                         s->cases);
    if (s->channels < 1 || s->channels > CHANNELS_MOST)
        return pons_fail(err, PONS_USAGE, "'--channels' is %d, expected 1 to %d", s->channels,
                         CHANNELS_MOST);
    if (s->classes < 2 || s->classes > CLASSES_MOST)
        return pons_fail(err, PONS_USAGE, "'--classes' is %d, expected 2 to %d (background "
                         "counted)", s->classes, CLASSES_MOST);
    for (int a = 0; a < 3; a++)
        if (s->extent[a] < 1 || s->extent[a] > 4096)
            return pons_fail(err, PONS_USAGE, "'--extent' is %d,%d,%d, expected 1 to 4096 each",
                             s->extent[0], s->extent[1], s->extent[2]);
    return PONS_OK;
}

/* Remove what killed programs left in the folders of images and labels. */
static void sweep_folders(const char *folder)
{
    static const char *const names[] = { "imagesTr", "labelsTr" };
    char path[4096];

    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[n]);
        safe_file_sweep(path);
    }
}

/* Remove the cases that a larger phantom left in the folder. */
static void remove_other_cases(const char *folder, int64_t first)
{
    char image[4096], label[4096];
    bool found = true;

    for (int64_t n = first; found; n++) {
        snprintf(image, sizeof image, "%s/imagesTr/phantom_%03" PRId64 ".nii.gz", folder, n);
        snprintf(label, sizeof label, "%s/labelsTr/phantom_%03" PRId64 ".nii.gz", folder, n);
        found = unlink(image) == 0;
        found = unlink(label) == 0 || found;
    }
}

/* Refuse a folder whose dataset.json is not a phantom's, since it would be lost. */
static pons_status check_folder(const char *folder, pons_error *err)
{
    char path[4096], *text;
    size_t size;
    bool ours;

    snprintf(path, sizeof path, "%s/dataset.json", folder);
    if (access(path, F_OK) != 0)
        return PONS_OK;
    if (file_read(path, MANIFEST_MOST, &text, &size, PONS_USAGE, err) != PONS_OK)
        return PONS_USAGE;
    ours = strstr(text, "\"name\": \"phantom\"") != NULL;
    free(text);
    if (!ours)
        return pons_fail(err, PONS_USAGE, "-o '%s' holds another dataset ('%s'), expected a new "
                         "folder", folder, path);
    return PONS_OK;
}

pons_status phantom_write(const char *folder, const phantom_settings *settings, logger *l,
                          pons_error *err)
{
    case_progress progress = { "making", (int)settings->cases, seconds_now(), 0, 0 };
    pons_status status = check_settings(settings, err);

    if (!status)
        status = check_folder(folder, err);
    if (!status)
        status = folder_make(folder, err);
    if (!status)
        sweep_folders(folder);
    for (int64_t n = 0; n < settings->cases && !status; n++) {
        status = write_case(folder, settings, n, err);
        if (!status && l)
            case_progress_show(&progress, l, (int)n + 1, 0);
    }
    if (!status)
        status = folder_sync_files(folder, err);
    if (!status)
        status = write_manifest(folder, settings, err);
    if (!status)
        remove_other_cases(folder, settings->cases);
    if (!status && l)
        log_line(l, "wrote %" PRId64 " case%s of %d x %d x %d voxels, %d channel%s, %d classes to "
                 "%.1000s", settings->cases, settings->cases == 1 ? "" : "s", settings->extent[0],
                 settings->extent[1], settings->extent[2],
                 settings->channels, settings->channels == 1 ? "" : "s", settings->classes, folder);
    return status;
}
