/*
 * check_report_writer.c - a report shows the worst cases of the last validation, and no others.
 */
#include "support/suite.h"

#include "base/arena.h"
#include "base/file/file.h"
#include "report/page/case_scores.h"
#include "report/page/report_writer.h"
#include "report/picture/class_marks.h"
#include "report/picture/png_write.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CASES = 150, SIDE = 6, VOXELS = SIDE * SIDE * SIDE, VALIDATIONS = 3 };

/* A case that is not the same for two numbers or validations. */
typedef struct drawn_case {
    float image[VOXELS];
    uint8_t label[VOXELS], prediction[VOXELS];
    volume image_volume, label_volume;
    mosaic_case parts;
} drawn_case;

static void fill_case(drawn_case *c, int validation, int number)
{
    uint32_t state = (uint32_t)(validation * CASES + number + 1);

    memset(c, 0, sizeof *c);
    c->image_volume = (volume){ .type = PONS_F32, .channels = 1, .extent = { SIDE, SIDE, SIDE },
                                .voxels = c->image };
    for (int a = 0; a < 3; a++)
        c->image_volume.affine[a][a] = 1;
    c->label_volume = c->image_volume;
    c->label_volume.type = PONS_U8;
    c->label_volume.voxels = c->label;
    for (int n = 0; n < VOXELS; n++) {
        state = state * 1664525 + 1013904223;
        c->image[n] = (float)(state >> 20);
        c->label[n] = state >> 26 & 1;
        c->prediction[n] = state >> 27 & 1;
    }
    c->parts = (mosaic_case){ .image = &c->image_volume, .label = &c->label_volume,
                              .prediction = c->prediction };
}

static void add_case(worst_cases *w, int validation, int number, double badness)
{
    pons_error err = PONS_ERROR_INIT;
    drawn_case c;

    fill_case(&c, validation, number);
    ck_assert_msg(!worst_cases_add(w, number, badness, &c.parts, &err), "%s", err.text);
}

static void expect_picture(arena *memory, const char *run, int number, int validation)
{
    const char *path = case_scores_picture(memory, run, number);
    const char *expected = arena_format(memory, "%s/expected.png", run);
    pons_error err = PONS_ERROR_INIT;
    char *found, *wanted;
    size_t found_size, wanted_size;
    mosaic_slices *slices;
    mosaic_picture p;
    drawn_case c;

    fill_case(&c, validation, number);
    ck_assert(!mosaic_cut(&c.parts, &slices, &err) && !mosaic_draw(slices, &p, &err)
              && !mosaic_save(&p, expected, &err));
    ck_assert_msg(!file_read(path, 1 << 24, &found, &found_size, PONS_DATA, &err), "%s", err.text);
    ck_assert(!file_read(expected, 1 << 24, &wanted, &wanted_size, PONS_DATA, &err));
    ck_assert_msg(found_size == wanted_size && memcmp(found, wanted, wanted_size) == 0,
                  "case %d does not have the picture of the last validation", number);
    unlink(path);
    free(found);
    free(wanted);
    free(slices);
    free(p.pixels);
}

/*
 * The first validation shows the first 128 cases, the others the last 128: the pictures of cases 0
 * to 21 are then removed.
 */
START_TEST(the_worst_cases_have_the_picture_of_the_last_validation)
{
    char run[] = "/tmp/pons-report-XXXXXX";
    pons_error err = PONS_ERROR_INIT;
    arena *memory = arena_new();
    report_writer *w;
    worst_cases shown;

    ck_assert_ptr_nonnull(mkdtemp(run));
    ck_assert(!report_writer_open(run, &w, &err));
    worst_cases_init(&shown, WORST_CASES_MAX);
    for (int v = 0; v < VALIDATIONS; v++) {
        for (int n = 0; n < CASES; n++)
            add_case(&shown, v, n, v == 0 ? -n : n);
        report_writer_pictures(w, &shown, CASES);
        if (v == 0)
            ck_assert_msg(!report_writer_wait(w, &err), "%s", err.text);
    }
    ck_assert_msg(!report_writer_wait(w, &err), "%s", err.text);
    for (int n = 0; n < CASES; n++)
        if (n < CASES - WORST_CASES_MAX)
            ck_assert_int_ne(access(case_scores_picture(memory, run, n), F_OK), 0);
        else
            expect_picture(memory, run, n, VALIDATIONS - 1);
    report_writer_close(w);
    worst_cases_close(&shown);
    unlink(arena_format(memory, "%s/expected.png", run));
    rmdir(arena_format(memory, "%s/validation", run));
    ck_assert_int_eq(rmdir(run), 0);
    arena_free(memory);
}
END_TEST

START_TEST(a_failure_is_returned_once)
{
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;
    worst_cases shown;
    report_writer *w;

    worst_cases_init(&shown, 1);
    add_case(&shown, 0, 0, 0);
    ck_assert(!report_writer_open("/tmp/pons-no-run", &w, &err));
    report_writer_pictures(w, &shown, 1);
    ck_assert_int_eq(report_writer_wait(w, &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, "/tmp/pons-no-run"));
    ck_assert_int_eq(report_writer_check(w, &none), PONS_OK);
    report_writer_close(w);
    worst_cases_close(&shown);
}
END_TEST

START_TEST(classes_have_colours_apart_from_those_of_errors)
{
    for (int class = 0; class < MARK_COLORS; class++)
        for (int error = MARK_MISSED; error < MARK_ERROR_COUNT; error++) {
            int apart = 0;

            for (int i = 0; i < 3; i++)
                apart += abs(mark_class_color(class)[i]
                             - mark_error_color((mark_error)error)[i]);
            ck_assert_msg(apart > 120, "class %d, error %d: %d", class, error, apart);
        }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("report writer");

    tcase_add_test(c, a_failure_is_returned_once);
    tcase_add_test(c, classes_have_colours_apart_from_those_of_errors);
    if (png_available())
        tcase_add_test(c, the_worst_cases_have_the_picture_of_the_last_validation);
    return suite_run();
}
