/*
 * check_volume.c - the convention of axes with three different extents and spacings: voxels keep
 * their position in space under any change of the grid, and a prediction is mapped back to its
 * file.
 */
#include "support/data/whole_resample.h"
#include "support/suite.h"

#include "data/volume/axis_resize.h"
#include "data/volume/geometry.h"
#include "data/volume/volume.h"

#include <math.h>
#include <string.h>

enum { I = 7, J = 11, K = 5 };
static const int64_t extent[3] = { I, J, K };

/*
 * The spacing is 0.8 1.7 2.9; i points left, j to the feet, k to the front, turned by 10 degrees.
 */
static const double affine[3][4] = { { -0.8 * 0.98480775, 1.7 * 0.17364818, 0, 21.5 },
                                     { 0, 0, 2.9, -40 },
                                     { -0.8 * 0.17364818, -1.7 * 0.98480775, 0, 77.25 } };

static float plane_at(double x, double y, double z)
{
    return (float)(0.5 * x - 0.25 * y + 0.125 * z + 3);
}

static void position(const volume *v, double i, double j, double k, double out[3])
{
    for (int r = 0; r < 3; r++)
        out[r] = v->affine[r][0] * i + v->affine[r][1] * j + v->affine[r][2] * k + v->affine[r][3];
}

/*
 * Make a volume whose values are a linear function of the position in space, which gives the
 * expected result of any resampling. Channel c is the function plus c.
 */
static void make_plane(volume *v, int channels)
{
    pons_error err = PONS_ERROR_INIT;
    float *to;

    ck_assert(!pons_volume_init(v, PONS_F32, channels, extent, &err));
    memcpy(v->affine, affine, sizeof affine);
    to = v->voxels;
    for (int i = 0; i < I; i++)
        for (int j = 0; j < J; j++)
            for (int k = 0; k < K; k++)
                for (int c = 0; c < channels; c++) {
                    double p[3];

                    position(v, i, j, k, p);
                    *to++ = plane_at(p[0], p[1], p[2]) + (float)c;
                }
}

static void assert_plane(const volume *v, const int64_t from[3], const int64_t to[3],
                         double tolerance)
{
    for (int64_t i = from[0]; i < to[0]; i++)
        for (int64_t j = from[1]; j < to[1]; j++)
            for (int64_t k = from[2]; k < to[2]; k++)
                for (int c = 0; c < v->channels; c++) {
                    int64_t at = ((i * v->extent[1] + j) * v->extent[2] + k) * v->channels + c;
                    double p[3];

                    position(v, (double)i, (double)j, (double)k, p);
                    ck_assert_double_eq_tol(((float *)v->voxels)[at],
                                            plane_at(p[0], p[1], p[2]) + (float)c, tolerance);
                }
}

static const int64_t zero[3] = { 0, 0, 0 };

START_TEST(orientation_codes_name_the_directions_of_axes)
{
    static const double small[3][4] = { { 0, 0, 1.5, 0 }, { -1.2, 0, 0, 0 }, { 0, 0.7, 0, 0 } };
    char codes[4];

    volume_orientation_codes(affine, codes);
    ck_assert_str_eq(codes, "LIA");
    volume_orientation_codes(small, codes);
    ck_assert_str_eq(codes, "PSR");
}
END_TEST

START_TEST(reorienting_keeps_the_position_of_every_voxel)
{
    static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    pons_error err = PONS_ERROR_INIT;

    for (int n = 0; n < 48; n++) {
        const int *order = orders[n / 8];
        bool flip[3] = { n & 1, n & 2, n & 4 };
        volume v;

        make_plane(&v, 1 + n % 3);
        ck_assert(!pons_volume_reorient(&v, order, flip, &err));
        for (int a = 0; a < 3; a++)
            ck_assert_int_eq(v.extent[a], extent[order[a]]);
        assert_plane(&v, zero, v.extent, 1e-5);
        pons_volume_clear(&v);
    }
}
END_TEST

/*
 * Bytes and 32-bit words hold their own index. The extents exceed a square of 16 voxels, and some
 * are flat.
 */
START_TEST(reorienting_moves_bytes_and_words_alike)
{
    static const int64_t extents[][3] = { { 19, 33, 17 }, { 1, 21, 18 }, { 20, 1, 37 },
                                          { 16, 18, 1 }, { 1, 1, 40 } };
    static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    pons_error err = PONS_ERROR_INIT;

    for (int n = 0; n < 5 * 48; n++) {
        const int64_t *e = extents[n / 48];
        const int *order = orders[n % 48 / 8];
        bool flip[3] = { n & 1, n & 2, n & 4 };
        volume bytes, words;

        ck_assert(!pons_volume_init(&bytes, PONS_U8, 1, e, &err));
        ck_assert(!pons_volume_init(&words, PONS_I32, 1, e, &err));
        for (int64_t v = 0; v < e[0] * e[1] * e[2]; v++) {
            ((int32_t *)words.voxels)[v] = (int32_t)v;
            ((uint8_t *)bytes.voxels)[v] = (uint8_t)(v % 251);
        }
        ck_assert(!pons_volume_reorient(&bytes, order, flip, &err));
        ck_assert(!pons_volume_reorient(&words, order, flip, &err));
        for (int64_t v = 0; v < e[0] * e[1] * e[2]; v++) {
            const int64_t *x = words.extent;
            int64_t at[3] = { v / (x[1] * x[2]), v / x[2] % x[1], v % x[2] }, old[3];

            for (int a = 0; a < 3; a++)
                old[order[a]] = flip[a] ? x[a] - 1 - at[a] : at[a];
            int64_t from = (old[0] * e[1] + old[1]) * e[2] + old[2];
            ck_assert_int_eq(((int32_t *)words.voxels)[v], from);
            ck_assert_int_eq(((uint8_t *)bytes.voxels)[v], from % 251);
        }
        pons_volume_clear(&bytes);
        pons_volume_clear(&words);
    }
}
END_TEST

START_TEST(reorienting_twice_restores_the_volume)
{
    static const int there[3] = { 2, 0, 1 }, home[3] = { 1, 2, 0 };
    static const bool flip_there[3] = { true, false, true }, flip_home[3] = { false, true, true };
    pons_error err = PONS_ERROR_INIT;
    volume v, w;

    make_plane(&v, 2);
    make_plane(&w, 2);
    ck_assert(!pons_volume_reorient(&v, there, flip_there, &err));
    ck_assert(!pons_volume_reorient(&v, home, flip_home, &err));
    ck_assert(!memcmp(v.voxels, w.voxels, pons_volume_size(&w)));
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            ck_assert_double_eq_tol(v.affine[r][c], affine[r][c], 1e-12);
    pons_volume_clear(&v);
    pons_volume_clear(&w);
}
END_TEST

START_TEST(cropping_and_padding_keep_positions_and_the_inside_box)
{
    static const int64_t start[3] = { 2, -3, 1 }, size[3] = { 4, 20, 3 };
    static const int64_t low[3] = { 0, 3, 0 }, high[3] = { 4, 14, 3 };
    pons_error err = PONS_ERROR_INIT;
    volume v;

    make_plane(&v, 2);
    ck_assert(!pons_volume_crop(&v, start, size, -9, &err));
    assert_plane(&v, low, high, 1e-5);
    for (int a = 0; a < 3; a++) {
        ck_assert_int_eq(v.inside_start[a], low[a]);
        ck_assert_int_eq(v.inside_start[a] + v.inside_extent[a], high[a]);
    }
    ck_assert_float_eq(((float *)v.voxels)[0], -9);
    ck_assert_float_eq(((float *)v.voxels)[pons_volume_count(&v) * 2 - 1], -9);
    pons_volume_clear(&v);
}
END_TEST

START_TEST(resampling_reproduces_a_linear_function)
{
    static const int64_t size[3] = { 4, 13, 9 };
    pons_error err = PONS_ERROR_INIT;

    for (int channels = 1; channels < 4; channels++) {
        double grid[3][4];
        int64_t high[3];
        volume v;

        make_plane(&v, channels);
        memcpy(grid, affine, sizeof grid);
        for (int r = 0; r < 3; r++) {
            grid[r][0] *= 1.7;
            grid[r][1] *= 0.77;
            grid[r][2] *= 0.5;
        }
        ck_assert(!pons_volume_resample(&v, (const double (*)[4])grid, size, &err));
        high[0] = 4; /* 3 x 1.7 = 5.1 < 6; 12 x 0.77 = 9.24 < 10; 8 x 0.5 = 4 */
        high[1] = 13;
        high[2] = 9;
        assert_plane(&v, zero, high, 1e-4);
        pons_volume_clear(&v);
    }
}
END_TEST

/* Resampling to permuted axes goes voxel by voxel. */
START_TEST(resampling_across_axes_reproduces_a_linear_function)
{
    static const int64_t size[3] = { 3, 4, 8 };
    pons_error err = PONS_ERROR_INIT;
    double grid[3][4];
    volume v;

    make_plane(&v, 2);
    for (int r = 0; r < 3; r++) {
        grid[r][0] = affine[r][2] * 1.3 + affine[r][0] * 0.2;
        grid[r][1] = affine[r][0] * 1.1;
        grid[r][2] = affine[r][1] * 0.9;
        grid[r][3] = affine[r][3] + affine[r][0] * 0.5;
    }
    ck_assert(!pons_volume_resample(&v, (const double (*)[4])grid, size, &err));
    assert_plane(&v, zero, size, 1e-4);
    pons_volume_clear(&v);
}
END_TEST

START_TEST(resampling_on_the_same_grid_changes_no_bit)
{
    pons_error err = PONS_ERROR_INIT;
    volume v, w;

    make_plane(&v, 2);
    make_plane(&w, 2);
    ck_assert(!pons_volume_resample(&v, affine, extent, &err));
    ck_assert(!memcmp(v.voxels, w.voxels, pons_volume_size(&w)));
    pons_volume_clear(&v);
    pons_volume_clear(&w);
}
END_TEST

START_TEST(resampled_labels_take_the_nearest_voxel)
{
    static const int64_t size[3] = { 2 * I - 1, J, K };
    pons_error err = PONS_ERROR_INIT;
    double grid[3][4];
    volume v;

    ck_assert(!pons_volume_init(&v, PONS_U8, 1, extent, &err));
    memcpy(v.affine, affine, sizeof affine);
    for (int n = 0; n < I * J * K; n++)
        ((uint8_t *)v.voxels)[n] = (uint8_t)(n / (J * K) * 10);
    memcpy(grid, affine, sizeof grid);
    for (int r = 0; r < 3; r++)
        grid[r][0] *= 0.5;
    ck_assert(!pons_volume_resample(&v, (const double (*)[4])grid, size, &err));
    for (int i = 0; i < 2 * I - 1; i++) /* ties go to the even voxel */
        ck_assert_int_eq(((uint8_t *)v.voxels)[i * J * K],
                         10 * (i % 2 == 0 ? i / 2 : i / 2 + i / 2 % 2));
    pons_volume_clear(&v);
}
END_TEST

/* ---- inverse resampling ---------------------------------------------------------------------- */

static void grid_of_file(volume_grid *grid)
{
    volume v;

    make_plane(&v, 1);
    volume_grid_of(&v, grid);
    pons_volume_clear(&v);
}

START_TEST(orientation_crop_and_padding_are_undone_exactly)
{
    static const int order[3] = { 2, 0, 1 };
    static const bool flip[3] = { false, true, true };
    static const int64_t cut[3] = { 1, 2, 3 }, cut_size[3] = { 3, 4, 6 };
    static const int64_t pad[3] = { -2, -1, 0 }, pad_size[3] = { 8, 6, 9 };
    static const float outside[2] = { -100, 0 };
    pons_error err = PONS_ERROR_INIT;
    volume original, v, back;
    volume_grid grid;
    int inside = 0;

    make_plane(&original, 2);
    make_plane(&v, 2);
    grid_of_file(&grid);
    ck_assert(!pons_volume_reorient(&v, order, flip, &err));
    ck_assert(!pons_volume_crop(&v, cut, cut_size, 0, &err));
    ck_assert(!pons_volume_crop(&v, pad, pad_size, 0, &err));
    ck_assert(!whole_resample(&v, &grid, INVERSE_RESAMPLE_VALUES, -100, &back, &err));
    for (int64_t n = 0; n < I * J * K * 2; n++) {
        float found = ((float *)back.voxels)[n], was = ((float *)original.voxels)[n];

        ck_assert(found == was || found == outside[n % 2]);
        inside += found == was;
    }
    ck_assert_int_eq(inside, 3 * 4 * 6 * 2);
    pons_volume_clear(&original);
    pons_volume_clear(&v);
    pons_volume_clear(&back);
}
END_TEST

START_TEST(spacing_is_inverted_by_linear_interpolation)
{
    static const int64_t high[3] = { I, J, K };
    static const int64_t size[3] = { 4, 15, 5 };
    pons_error err = PONS_ERROR_INIT;
    double finer[3][4];
    volume_grid grid;
    volume v, back;

    make_plane(&v, 1);
    grid_of_file(&grid);
    memcpy(finer, affine, sizeof finer);
    for (int r = 0; r < 3; r++) {
        finer[r][0] *= 2;
        finer[r][1] *= 5.0 / 7;
    }
    ck_assert(!pons_volume_resample(&v, (const double (*)[4])finer, size, &err));
    ck_assert(!whole_resample(&v, &grid, INVERSE_RESAMPLE_VALUES, -100, &back, &err));
    assert_plane(&back, zero, high, 1e-4);
    pons_volume_clear(&back);
    pons_volume_clear(&v);
}
END_TEST

/* Resample along i to voxels of 'mm' by the rule of MONAI, or by that of nnU-Net. */
static void resample_i(volume *v, double mm, bool nnunet)
{
    static const axis_mode linear[3] = { AXIS_LINEAR, AXIS_LINEAR, AXIS_LINEAR };
    int64_t size[3] = { v->extent[0], v->extent[1], v->extent[2] };
    pons_error err = PONS_ERROR_INIT;
    double wider[3][4];

    size[0] = (int64_t)rint(nnunet ? (double)size[0] / mm : (double)(size[0] - 1) / mm + 1);
    memcpy(wider, v->affine, sizeof wider);
    for (int r = 0; r < 3; r++)
        wider[r][0] *= mm;
    if (nnunet)
        ck_assert(!image_resize(v, size, linear, &err));
    else
        ck_assert(!pons_volume_resample(v, (const double (*)[4])wider, size, &err));
}

/* Other spacings than 1 leave the box's edge between centres, or on one of them. */
START_TEST(no_voxel_of_a_file_that_was_padded_is_outside)
{
    static const double spacings[] = { 0.7, 1, 1.25, 2, 2.5, 5 };
    static const double millimetre[3][4] = { { 1, 0, 0, 0.1 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } };
    pons_error err = PONS_ERROR_INIT;

    for (int n = 0; n < 2 * 6 * 24; n++) {
        int64_t size[3] = { 1 + n / 12, 2, 1 }, pad[3] = { -(n % 5), 0, 0 };
        int64_t padded[3] = { size[0] + 2 * (n % 5) + 1, 2, 1 };
        volume_grid grid = { .extent = { size[0], 2, 1 } };
        volume v, back;

        memcpy(grid.affine, millimetre, sizeof grid.affine);
        ck_assert(!pons_volume_init(&v, PONS_F32, 1, size, &err));
        memcpy(v.affine, millimetre, sizeof v.affine);
        ck_assert(!pons_volume_crop(&v, pad, padded, 0, &err));
        resample_i(&v, spacings[n / 2 % 6], n % 2);
        ck_assert(!whole_resample(&v, &grid, INVERSE_RESAMPLE_VALUES, -100, &back, &err));
        for (int64_t i = 0; i < 2 * size[0]; i++)
            ck_assert_msg(((float *)back.voxels)[i] >= 0, "voxel %d of %d is outside at %g mm",
                          (int)(i / 2), (int)size[0], spacings[n / 2 % 6]);
        pons_volume_clear(&back);
        pons_volume_clear(&v);
    }
}
END_TEST

START_TEST(a_grid_oblique_to_its_file_is_undone_too)
{
    static const int64_t size[3] = { 14, 24, 24 };
    pons_error err = PONS_ERROR_INIT;
    double grid_affine[3][4] = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } };
    volume_grid grid;
    volume v, back;
    int inside = 0;

    grid_of_file(&grid);
    ck_assert(!pons_volume_init(&v, PONS_F32, 2, size, &err));
    for (int r = 0; r < 3; r++)
        grid_affine[r][3] = affine[r][0] * 3 + affine[r][1] * 5 + affine[r][2] * 2 +
                            affine[r][3] - 0.5 * (double)(size[r] - 1);
    memcpy(v.affine, grid_affine, sizeof grid_affine);
    for (int64_t n = 0; n < 14 * 24 * 24 * 2; n++) {
        double p[3];

        position(&v, (double)(n / 2 / 576), (double)(n / 2 / 24 % 24), (double)(n / 2 % 24), p);
        ((float *)v.voxels)[n] = plane_at(p[0], p[1], p[2]) + (float)(n % 2);
    }
    ck_assert(!whole_resample(&v, &grid, INVERSE_RESAMPLE_VALUES, -100, &back, &err));
    for (int64_t n = J * K * 2; n < 6 * J * K * 2; n++) {
        float found = ((float *)back.voxels)[n];
        double p[3];

        position(&back, (double)(n / 2 / (J * K)), (double)(n / 2 / K % J), (double)(n / 2 % K), p);
        if (found == -100)
            continue;
        ck_assert_double_eq_tol(found, plane_at(p[0], p[1], p[2]) + (float)(n % 2), 1e-4);
        inside++;
    }
    ck_assert_int_eq(inside, 5 * J * K * 2);
    pons_volume_clear(&v);
    pons_volume_clear(&back);
}
END_TEST

START_TEST(classes_are_decided_on_the_grid_of_the_file)
{
    static const int64_t cut[3] = { 1, 2, 1 }, size[3] = { 5, 7, 3 };
    pons_error err = PONS_ERROR_INIT;
    volume_grid grid;
    volume v, out;
    float *p;

    grid_of_file(&grid);
    make_plane(&v, 3);
    ck_assert(!pons_volume_crop(&v, cut, size, 0, &err));
    p = v.voxels;
    for (int64_t n = 0; n < 5 * 7 * 3; n++, p += 3) {
        p[0] = 0.2f;
        p[1] = n % 2 ? 0.5f : 0.3f;
        p[2] = n % 2 && n % 5 != 0 ? 0.3f : 0.5f; /* every fifth ties with the one before */
    }
    ck_assert(!whole_resample(&v, &grid, INVERSE_RESAMPLE_CLASSES, 0, &out, &err));
    ck_assert_int_eq(out.type, PONS_U8);
    for (int64_t i = 0; i < I; i++)
        for (int64_t j = 0; j < J; j++)
            for (int64_t k = 0; k < K; k++) {
                int64_t n = ((i - 1) * 7 + j - 2) * 3 + k - 1;
                bool inside = i >= 1 && i < 6 && j >= 2 && j < 9 && k >= 1 && k < 4;

                ck_assert_int_eq(((uint8_t *)out.voxels)[(i * J + j) * K + k],
                                 !inside ? 0 : n % 2 ? 1 : 2);
            }
    pons_volume_clear(&out);
    ck_assert(!whole_resample(&v, &grid, INVERSE_RESAMPLE_REGIONS, 0, &out, &err));
    ck_assert_int_eq(out.channels, 3);
    ck_assert_int_eq(((uint8_t *)out.voxels)[0], 0);
    pons_volume_clear(&out);
    pons_volume_clear(&v);
}
END_TEST

/*
 * A grid that is oblique to the file, has its axes in another order, or another spacing along
 * them.
 */
static void turned_grid(int how, double out[3][4])
{
    static const double oblique[3][3] = {
        { 0.8, -0.3, 0.5 }, { 0.3, 0.9, -0.1 }, { -0.5, 0.2, 0.8 }
    };

    memcpy(out, affine, sizeof affine);
    for (int r = 0; r < 3; r++) {
        double x = affine[r][0], y = affine[r][1], z = affine[r][2];

        out[r][0] = how == 0 ? 0.7 * x : -0.6 * z;
        out[r][1] = how == 0 ? 1.3 * y : 0.9 * x;
        out[r][2] = how == 0 ? 0.9 * z : 1.1 * y;
        for (int c = 0; c < 3 && how == 2; c++)
            out[r][c] = oblique[0][c] * x + oblique[1][c] * y + oblique[2][c] * z;
        out[r][3] = affine[r][3] + (how == 0 ? 0 : how == 1 ? (K - 1) * z + 0.2 * x : -2 * x);
    }
}

/*
 * Planes arrive as from windows: a plane is present while a point lies between it and the next
 * plane.
 */
START_TEST(inverse_resampling_by_planes_equals_the_whole)
{
    static const int64_t size[3] = { 9, 12, 11 }, cut[3] = { 1, 1, 0 }, cut_size[3] = { 7, 10, 10 };
    enum { CHANNELS = 70 };
    pons_error err = PONS_ERROR_INIT;
    volume_grid grid;
    int decided = 0;

    grid_of_file(&grid);
    for (int n = 0; n < 3 * 3 * 4; n++) {
        static const int64_t steps[] = { 1, 2, 3, 7 };
        inverse_resample_kind kind = (inverse_resample_kind)(n / 3 % 3);
        volume v, whole, out;
        inverse_resample *back;

        ck_assert(!pons_volume_init(&v, PONS_F32, CHANNELS, size, &err));
        turned_grid(n % 3, v.affine);
        for (int64_t i = 0; i < size[0] * size[1] * size[2] * CHANNELS; i++)
            ((float *)v.voxels)[i] = (float)((i * 7919) % 1009) / 1009;
        ck_assert(!pons_volume_crop(&v, cut, cut_size, 0, &err));
        ck_assert(!pons_volume_crop(&v, (int64_t[3]){ -1, 0, -2 }, size, 0, &err));
        ck_assert(!whole_resample(&v, &grid, kind, 1, &whole, &err));
        ck_assert(!inverse_resample_open(&v, &grid, &back, &err));
        ck_assert(!inverse_resample_start(back, kind, 1, 0, &out, &err));
        int64_t plane = size[1] * size[2] * CHANNELS, step = steps[n / 9];
        for (int64_t first = 0; first < size[0]; first += step) {
            int64_t base = first > 0 ? first - 1 : 0, end = first + step;
            end = end < size[0] ? end : size[0];
            /* Nothing else is read: neither released planes nor later ones. */
            float *held = malloc((size_t)((end - base) * plane) * sizeof *held);
            memcpy(held, (float *)v.voxels + base * plane,
                   (size_t)((end - base) * plane) * sizeof *held);
            inverse_resample_planes(back, kind, held, first, end, &out);
            free(held);
        }
        int64_t bytes = pons_volume_count(&out) * out.channels * (out.type == PONS_U8 ? 1 : 4);
        ck_assert_int_eq(memcmp(out.voxels, whole.voxels, (size_t)bytes), 0);
        for (int64_t i = 0; kind == INVERSE_RESAMPLE_CLASSES && i < bytes; i++)
            decided += ((uint8_t *)out.voxels)[i] > 63;
        inverse_resample_close(back);
        pons_volume_clear(&out);
        pons_volume_clear(&whole);
        pons_volume_clear(&v);
    }
    ck_assert_int_gt(decided, 50);
}
END_TEST

/* ---- grids ----------------------------------------------------------------------------------- */

START_TEST(different_grids_are_reported_with_both_values)
{
    pons_error err = PONS_ERROR_INIT;
    volume_grid a, b;

    grid_of_file(&a);
    b = a;
    b.affine[0][3] += 0.005;
    ck_assert(!volume_grid_compare(&a, "label.nii", &b, "image.nii", &err));
    b.affine[0][3] += 1;
    ck_assert_int_eq(volume_grid_compare(&a, "label.nii", &b, "image.nii", &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "label.nii"));
    ck_assert_ptr_nonnull(strstr(err.text, "image.nii"));
    ck_assert_ptr_nonnull(strstr(err.text, "LIA"));
    err = (pons_error)PONS_ERROR_INIT;
    b = a;
    b.extent[1]++;
    ck_assert_int_eq(volume_grid_compare(&a, "label.nii", &b, "image.nii", &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "7 x 11 x 5, expected 7 x 12 x 5"));
    err = (pons_error)PONS_ERROR_INIT;
    b = a;
    b.spacing[2] = 3;
    ck_assert_int_eq(volume_grid_compare(&a, "label.nii", &b, "image.nii", &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "2.9 mm, expected 0.8 x 1.7 x 3 mm"));
}
END_TEST

START_TEST(an_impossible_volume_is_refused)
{
    static const int64_t huge[3] = { INT64_C(1) << 31, INT64_C(1) << 31, 4 };
    static const int64_t none[3] = { 4, 0, 4 };
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };

    ck_assert_int_eq(pons_volume_init(&v, PONS_F32, 1, huge, &err), PONS_DATA);
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(pons_volume_init(&v, PONS_F32, 1, none, &err), PONS_DATA);
    ck_assert_ptr_null(v.voxels);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("volume");

    tcase_add_test(c, orientation_codes_name_the_directions_of_axes);
    tcase_add_test(c, reorienting_keeps_the_position_of_every_voxel);
    tcase_add_test(c, reorienting_moves_bytes_and_words_alike);
    tcase_add_test(c, reorienting_twice_restores_the_volume);
    tcase_add_test(c, cropping_and_padding_keep_positions_and_the_inside_box);
    tcase_add_test(c, resampling_reproduces_a_linear_function);
    tcase_add_test(c, resampling_across_axes_reproduces_a_linear_function);
    tcase_add_test(c, resampling_on_the_same_grid_changes_no_bit);
    tcase_add_test(c, resampled_labels_take_the_nearest_voxel);
    tcase_add_test(c, orientation_crop_and_padding_are_undone_exactly);
    tcase_add_test(c, spacing_is_inverted_by_linear_interpolation);
    tcase_add_test(c, no_voxel_of_a_file_that_was_padded_is_outside);
    tcase_add_test(c, a_grid_oblique_to_its_file_is_undone_too);
    tcase_add_test(c, classes_are_decided_on_the_grid_of_the_file);
    tcase_add_test(c, inverse_resampling_by_planes_equals_the_whole);
    tcase_add_test(c, different_grids_are_reported_with_both_values);
    tcase_add_test(c, an_impossible_volume_is_refused);
    return suite_run();
}
