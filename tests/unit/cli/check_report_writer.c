/*
 * check_report_writer.c - the thread that writes a report leaves the newest picture of every case.
 */
#include "support/suite.h"

#include "base/arena.h"
#include "base/file/file.h"
#include "report/page/case_scores.h"
#include "report/page/report_writer.h"
#include "report/png_write.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CASES = 150, SIDE = 64, VALIDATIONS = 3 };

/* Pixels that are not the same for two cases or validations, and take some time to encode. */
static mosaic_picture make_picture(int validation, int number)
{
    mosaic_picture p = { SIDE, SIDE, malloc(SIDE * SIDE) };
    uint32_t state = (uint32_t)(validation * CASES + number + 1);

    ck_assert_ptr_nonnull(p.pixels);
    for (int n = 0; n < SIDE * SIDE; n++) {
        state = state * 1664525 + 1013904223;
        p.pixels[n] = (uint8_t)(state >> 26);
    }
    return p;
}

static void expect_picture(arena *memory, const char *run, int number, int validation)
{
    const char *path = case_scores_picture(memory, run, number);
    const char *expected = arena_format(memory, "%s/expected.png", run);
    mosaic_picture p = make_picture(validation, number);
    pons_error err = PONS_ERROR_INIT;
    char *found, *wanted;
    size_t found_size, wanted_size;

    ck_assert(!mosaic_save(&p, expected, &err));
    ck_assert_msg(!file_read(path, 1 << 24, &found, &found_size, PONS_DATA, &err), "%s", err.text);
    ck_assert(!file_read(expected, 1 << 24, &wanted, &wanted_size, PONS_DATA, &err));
    ck_assert_msg(found_size == wanted_size && memcmp(found, wanted, wanted_size) == 0,
                  "case %d does not have the picture of the last validation", number);
    unlink(path);
    free(found);
    free(wanted);
    free(p.pixels);
}

/* The queue has less space than there are cases, and the thread is slower than this one. */
START_TEST(every_case_has_the_picture_of_the_last_validation)
{
    char run[] = "/tmp/pons-report-XXXXXX";
    pons_error err = PONS_ERROR_INIT;
    arena *memory = arena_new();
    report_writer *w;

    ck_assert_ptr_nonnull(mkdtemp(run));
    ck_assert(!report_writer_open(run, &w, &err));
    for (int v = 0; v < VALIDATIONS; v++)
        for (int n = 0; n < CASES; n++) {
            mosaic_picture p = make_picture(v, n);

            report_writer_picture(w, n, &p);
        }
    ck_assert_msg(!report_writer_wait(w, &err), "%s", err.text);
    for (int n = 0; n < CASES; n++)
        expect_picture(memory, run, n, VALIDATIONS - 1);
    report_writer_close(w);
    unlink(arena_format(memory, "%s/expected.png", run));
    rmdir(arena_format(memory, "%s/validation", run));
    ck_assert_int_eq(rmdir(run), 0);
    arena_free(memory);
}
END_TEST

START_TEST(a_failure_is_returned_once)
{
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;
    mosaic_picture p = make_picture(0, 0);
    report_writer *w;

    ck_assert(!report_writer_open("/tmp/pons-no-run", &w, &err));
    report_writer_picture(w, 0, &p);
    ck_assert_int_eq(report_writer_wait(w, &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, "/tmp/pons-no-run"));
    ck_assert_int_eq(report_writer_check(w, &none), PONS_OK);
    report_writer_close(w);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("report writer");

    tcase_add_test(c, a_failure_is_returned_once);
    if (png_available())
        tcase_add_test(c, every_case_has_the_picture_of_the_last_validation);
    return suite_run();
}
