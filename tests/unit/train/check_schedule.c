/*
 * check_schedule.c - the learning rates that 'pons explain --schedule' prints, against those of
 * MONAI and fastai.
 */
#include <config.h>

#include "base/file/file.h"

#include "support/run/run_json.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <stdbool.h>

static const char ini[] =
    "[experiment]\nname = run\n[data]\nsource = data\nvalidation = none\n"
    "[patch]\nextent = 8 8 8\n[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\n"
    "[loss]\nplugin = dice\n[optimizer]\nplugin = adam\n[train]\nsteps = 1\n";

static json_t *golden_schedules(void)
{
    json_t *d = NULL;
    pons_error err = PONS_ERROR_INIT;
    size_t size;
    char *text;

    ck_assert_msg(file_read(golden_path("schedules.json"), 1 << 20, &text, &size, PONS_DATA, &err)
                  == PONS_OK, "%s", err.text);
    ck_assert_int_eq(json_parse(text, size, "schedules.json", PONS_DATA, &d, &err), PONS_OK);
    free(text);
    return d;
}

/* Turn the member of a case into a line of the INI file; false: it has none. */
static bool setting_of(const char *member, const json_t *v, char *line, size_t size)
{
    static const struct { const char *member, *key; } other[] = {
        { "schedule", "schedule.plugin" }, { "lr", "optimizer.lr" }, { "steps", "train.steps" }
    };

    char number[32];
    const char *text = json_is_string(v) ? json_string_value(v) : number;

    if (strcmp(member, "name") == 0 || strcmp(member, "values") == 0)
        return false;
    snprintf(number, sizeof number, "%.17g", json_number_value(v));
    snprintf(line, size, "schedule.%s=%s", member, text);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strcmp(member, other[i].member) == 0)
            snprintf(line, size, "%s=%s", other[i].key, text);
    return true;
}

static void explain_case(json_t *c)
{
    const char *word[32] = { "explain", "e.ini", "--schedule" };
    char line[8][64];
    int words = 3, lines = 0;
    const char *member;
    json_t *v;

    json_object_foreach(c, member, v) {
        ck_assert_int_lt(lines, 8);
        if (!setting_of(member, v, line[lines], sizeof line[0]))
            continue;
        word[words++] = "--set";
        word[words++] = line[lines++];
    }
    ck_assert_msg(process_finish(process_start(word)) == 0, "%s: %s",
                  json_string_value(json_at(c, "name")), root_text("said"));
}

static void compare_case(const json_t *c)
{
    const char *text = root_text("out"), *name = json_string_value(json_at(c, "name"));
    const json_t *values = json_at(c, "values"), *v;
    double lr = json_number_value(json_at(c, "lr"));
    size_t step;
    long found;

    json_array_foreach(values, step, v) {
        double rate;
        text = strchr(text, '\n');
        ck_assert_msg(text != NULL && sscanf(text, "%ld %lf", &found, &rate) == 2
                      && found == (long)step, "%s: no line of step %zu", name, step);
        ck_assert_msg(fabs(rate - json_number_value(v)) <= RATE_OF_BASE * lr,
                      "%s, step %zu: %.9g, expected %.9g", name, step, rate, json_number_value(v));
        text++;
    }
    ck_assert_int_eq((int)step, (int)json_number_value(json_at(c, "steps")));
}

START_TEST(golden_schedules_equal_monai_and_fastai)
{
    json_t *d = golden_schedules(), *c;
    size_t cases;

    make_root();
    write_text("e.ini", ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "2", "--extent", "8,8,8");
    json_array_foreach(d, cases, c) {
        explain_case(c);
        compare_case(c);
    }
    ck_assert_int_eq((int)cases, 5);
    json_decref(d);
    remove_root();
}
END_TEST

static void expect_rates(const char *steps, const double *rate, int count)
{
    const char *text;

    EXPECT(0, NULL, "explain", "e.ini", "--schedule", "--set", "schedule.plugin=poly", "--set",
           "schedule.unit=epoch", "--set", "optimizer.lr=1", "--set", steps);
    text = root_text("out");
    for (int i = 0; i < count; i++) {
        int step;
        double found;
        text = strchr(text, '\n');
        ck_assert_msg(text != NULL && sscanf(text, "%d %lf", &step, &found) == 2 && step == i,
                      "%s: no line of step %d", steps, i);
        ck_assert_double_eq_tol(found, rate[i], RATE_OF_BASE);
        text++;
    }
}

/* Two cases make an epoch of two steps. The epoch of the last step counts in full. */
START_TEST(the_epochs_of_a_number_of_steps_are_rounded_up)
{
    const double third = pow(2 / 3.0, 0.9), last = pow(1 / 3.0, 0.9), half = pow(1 / 2.0, 0.9);

    make_root();
    write_text("e.ini", ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "2", "--extent", "8,8,8");
    expect_rates("train.steps=1", (double[]){ 1 }, 1);
    expect_rates("train.steps=4", (double[]){ 1, 1, half, half }, 4);
    expect_rates("train.steps=5", (double[]){ 1, 1, third, third, last }, 5);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("schedule");

    tcase_add_test(c, golden_schedules_equal_monai_and_fastai);
    tcase_add_test(c, the_epochs_of_a_number_of_steps_are_rounded_up);
    return suite_run();
}
