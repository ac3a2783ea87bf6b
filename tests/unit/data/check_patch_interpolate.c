/*
 * check_patch_interpolate.c - patches between voxels, in the case and across its border, against
 * one voxel at a time.
 */
#include "data/loader/patch_interpolate.h"

#include "support/suite.h"

#include <math.h>
#include <string.h>

enum {
    D = 6, H = 5, W = 75, VOXELS = D * H * W, /* of the patch: two blocks and a part of one       */
    I = 18, J = 15, K = 90, CASE = I * J * K,
    CHANNELS_MAX = 3, CLASSES = 4
};

static float table[256], values[CASE * CHANNELS_MAX];
static uint8_t codes8[CASE * CHANNELS_MAX], target[CASE * CHANNELS_MAX];
static uint16_t codes16[CASE * CHANNELS_MAX];
static float image[VOXELS * CHANNELS_MAX], field[3 * VOXELS];
static uint8_t label[VOXELS * CHANNELS_MAX];

static int64_t case_extent[3] = { I, J, K };

static uint32_t state;

static uint32_t draw(void)
{
    state = state * UINT32_C(1664525) + UINT32_C(1013904223);
    return state >> 16;
}

static void fill_case(void)
{
    state = 1;
    for (int n = 0; n < 256; n++)
        table[n] = 0.37f * (float)n - 20;
    for (int n = 0; n < CASE * CHANNELS_MAX; n++) {
        codes8[n] = (uint8_t)(draw() % 256);
        codes16[n] = codes8[n];
        values[n] = table[codes8[n]];
        target[n] = (uint8_t)(draw() % 8 < 5 ? 0 : draw() % CLASSES);
    }
    for (int n = 0; n < 3 * VOXELS; n++)
        field[n] = 0.001f * (float)(draw() % 4000) - 2;
}

/* Ways to read a patch: bytes of a code, channels, a turn, displacement, start, pad, labels. */
static const struct patch_kind {
    int code_size, channels, label_channels;
    double cosine, sine;       /* numbers of no library of mathematics                            */
    bool displaced;
    int64_t start[3];
    loader_pad pad;
    bool linear;
    int flat;                  /* axes of one voxel, which the map leaves alone; the last ones     */
} kinds[] = {
    { 2, 1, 1, 0.955, 0.296, false, { 7, 6, 6 }, LOADER_PAD_ZERO, false, 0 },
    { 2, 1, 1, 0.955, 0.296, false, { 7, 6, 6 }, LOADER_PAD_ZERO, true, 0 },
    { 1, 1, 1, 0.995, 0.100, false, { -3, 12, 40 }, LOADER_PAD_ZERO, true, 0 },
    { 4, 1, 1, 0.765, 0.644, false, { 14, -2, -40 }, LOADER_PAD_EDGE, false, 0 },
    { 4, 3, 2, 0.995, 0.100, true, { 8, 7, 5 }, LOADER_PAD_ZERO, true, 0 },
    { 2, 2, 3, 0.980, 0.199, true, { 6, 5, 30 }, LOADER_PAD_EDGE, false, 0 },
    { 1, 3, 1, 0.921, 0.389, false, { 100, -300, 9 }, LOADER_PAD_ZERO, true, 0 },
    { 1, 3, 1, 1, 0, false, { -2, 6, 6 }, LOADER_PAD_ZERO, true, 1 },
    { 4, 3, 2, 1, 0, false, { -2, -3, -7 }, LOADER_PAD_EDGE, false, 1 },
    { 2, 1, 1, 1, 0, false, { -2, -2, 6 }, LOADER_PAD_ZERO, true, 2 },
};

static void read_patch(const struct patch_kind *q, pons_sample *s, packed_case *p)
{
    double c = q->cosine, d = q->sine;

    *p = (packed_case){ .code_size = q->code_size, .table = table, .target = target };
    p->codes = q->code_size == 1 ? (void *)codes8 : q->code_size == 2 ? (void *)codes16 : values;
    p->image.channels = q->channels;
    p->label.channels = q->label_channels;
    case_extent[0] = q->flat > 0 ? 1 : I;
    case_extent[1] = q->flat > 1 ? 1 : J;
    memcpy(p->image.extent, case_extent, sizeof p->image.extent);
    *s = (pons_sample){ .size = sizeof *s, .extent = { D, H, W },
                        .map = { { c, 0.101, -d, 0.317 }, { 0, 1.103, 0.0517, -0.21 },
                                 { d, 0, c, 0.4317 } },
                        .linear_labels = q->linear, .displaced = q->displaced,
                        .displacement = q->displaced ? field : NULL };
    for (int i = 0; i < q->flat; i++)
        for (int j = 0; j < 4; j++) {
            s->map[i][j] = i == j;
            s->map[j < 3 ? j : i][i] = i == j;
        }
    patch_interpolate(p, s, q->start, q->pad, 0, 2, image, label);
    patch_interpolate(p, s, q->start, q->pad, 2, D - 2, image, label);
}

/* The voxel at whole coordinates; outside the nearest one and *inside = false. */
static int64_t voxel_of(const double at[3], bool *inside)
{
    const int64_t *extent = case_extent;
    int64_t voxel = 0;

    *inside = true;
    for (int i = 0; i < 3; i++) {
        double near = fmin(fmax(at[i], 0), (double)(extent[i] - 1));

        *inside &= near == at[i];
        voxel = voxel * extent[i] + (int64_t)near;
    }
    return voxel;
}

static void position_of(const struct patch_kind *q, const pons_sample *s, int voxel, double out[3])
{
    const double index[3] = { voxel / (H * W), voxel / W % H, voxel % W }, e[3] = { D, H, W };

    for (int i = 0; i < 3; i++) {
        out[i] = (double)q->start[i] + (e[i] - 1) / 2 + s->map[i][3];
        for (int j = 0; j < 3; j++)
            out[i] += s->map[i][j] * (index[j] - (e[j] - 1) / 2);
        out[i] += q->displaced ? (double)field[i * VOXELS + voxel] : 0;
    }
}

static double corner_weight(const double at[3], int corner, double out[3])
{
    double weight = 1;

    for (int i = 0; i < 3; i++) {
        int up = corner >> i & 1;

        out[i] = floor(at[i]) + up;
        weight *= up ? at[i] - floor(at[i]) : 1 - (at[i] - floor(at[i]));
    }
    return weight;
}

static double expected_value(const struct patch_kind *q, const double at[3], int channel)
{
    double sum = 0;

    for (int corner = 0; corner < 8; corner++) {
        double x[3], weight = corner_weight(at, corner, x);
        bool inside;
        int64_t voxel = voxel_of(x, &inside);

        if (inside || q->pad == LOADER_PAD_EDGE)
            sum += weight * (double)values[voxel * q->channels + channel];
    }
    return sum;
}

/* The weight of a class around a position; class -1 is outside of the case. */
static double class_weight(const struct patch_kind *q, const double at[3], int channel, int class)
{
    double sum = 0;

    for (int corner = 0; corner < 8; corner++) {
        double x[3], weight = corner_weight(at, corner, x);
        bool inside;
        int64_t voxel = voxel_of(x, &inside);
        int found = inside ? target[voxel * q->label_channels + channel] : -1;

        sum += found == class ? weight : 0;
    }
    return sum;
}

static int expected_label(const struct patch_kind *q, const double at[3], int channel)
{
    const double nearest[3] = { rint(at[0]), rint(at[1]), rint(at[2]) };
    bool inside;
    int64_t voxel = voxel_of(nearest, &inside);
    int found = -1;

    if (!q->linear)
        return inside ? target[voxel * q->label_channels + channel] : 0;
    for (int class = 0; class < CLASSES; class++)
        if (class_weight(q, at, channel, class) > class_weight(q, at, channel, found))
            found = class;
    return found < 0 ? 0 : found;
}

START_TEST(voxels_are_those_of_one_at_a_time)
{
    const struct patch_kind *q = &kinds[_i];
    packed_case p;
    pons_sample s;

    fill_case();
    read_patch(q, &s, &p);
    for (int n = 0; n < VOXELS; n++) {
        double at[3];

        position_of(q, &s, n, at);
        for (int k = 0; k < q->channels; k++)
            ck_assert_double_eq_tol((double)image[n * q->channels + k], expected_value(q, at, k),
                                    4e-5);
        for (int k = 0; k < q->label_channels; k++)
            ck_assert_int_eq(label[n * q->label_channels + k], expected_label(q, at, k));
    }
}
END_TEST

/* The number is that of a loop over single voxels without vectors. */
START_TEST(bits_do_not_depend_on_the_instruction_set)
{
    uint32_t hash = 0;
    packed_case p;
    pons_sample s;

    fill_case();
    for (size_t i = 0; kinds[i].flat == 0; i++) {
        read_patch(&kinds[i], &s, &p);
        for (int n = 0; n < VOXELS * kinds[i].channels; n++) {
            uint32_t bits;

            memcpy(&bits, &image[n], sizeof bits);
            hash = hash * 31 + (bits == UINT32_C(0x80000000) ? 0 : bits);
        }
    }
    ck_assert_uint_eq(hash, UINT32_C(660012263));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("patch_interpolate");

    tcase_add_loop_test(c, voxels_are_those_of_one_at_a_time, 0, sizeof kinds / sizeof kinds[0]);
    tcase_add_test(c, bits_do_not_depend_on_the_instruction_set);
    return suite_run();
}
