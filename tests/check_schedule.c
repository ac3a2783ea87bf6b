/*
 * check_schedule.c - the learning rate of each step, as 'pons explain --schedule' prints it,
 * against MONAI's and fastai's.
 */
#include <config.h>

#include "base/file/file.h"

#include "run_json.h"
#include "suite.h"
#include "tolerance.h"

#include <math.h>
#include <stdbool.h>

static const char ini[] =
    "[experiment]\nname = run\n[data]\nsource = data\nvalidation = none\n"
    "[patch]\nextent = 8 8 8\n[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\n"
    "[loss]\nplugin = dice\n[optimizer]\nplugin = adam\n[train]\nsteps = 1\n";

static json_document golden_schedules(void)
{
    json_document d = { NULL, NULL };
    pons_error err = PONS_ERROR_INIT;
    size_t size;
    char *text;

    ck_assert_msg(file_read(golden_path("schedules.json"), 1 << 20, &text, &size, PONS_DATA, &err)
                  == PONS_OK, "%s", err.text);
    ck_assert_int_eq(json_parse(text, size, "schedules.json", PONS_DATA, &d, &err), PONS_OK);
    free(text);
    return d;
}

/* The member of a case as a line of the INI file; false where it is none. */
static bool setting_of(const json_value *v, char *line, size_t size)
{
    static const struct { const char *member, *key; } other[] = {
        { "schedule", "schedule.plugin" }, { "lr", "optimizer.lr" }, { "steps", "train.steps" }
    };

    if (strcmp(v->key, "name") == 0 || strcmp(v->key, "values") == 0)
        return false;
    snprintf(line, size, "schedule.%s=%s", v->key, v->text);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strcmp(v->key, other[i].member) == 0)
            snprintf(line, size, "%s=%s", other[i].key, v->text);
    return true;
}

static void explain_case(const json_value *c)
{
    const char *word[32] = { "explain", "e.ini", "--schedule" };
    char line[8][64];
    int words = 3, lines = 0;

    for (const json_value *v = c->child; v != NULL; v = v->next) {
        ck_assert_int_lt(lines, 8);
        if (!setting_of(v, line[lines], sizeof line[0]))
            continue;
        word[words++] = "--set";
        word[words++] = line[lines++];
    }
    ck_assert_msg(finish(start(word)) == 0, "%s: %s", at(c, "name")->text, text_of("said"));
}

static void compare_case(const json_value *c)
{
    const char *text = text_of("out");
    double lr = at(c, "lr")->number;
    long step = 0, found;

    for (const json_value *v = at(c, "values")->child; v != NULL; v = v->next, step++) {
        double rate;
        text = strchr(text, '\n');
        ck_assert_msg(text != NULL && sscanf(text, "%ld %lf", &found, &rate) == 2 && found == step,
                      "%s: no line of step %ld", at(c, "name")->text, step);
        ck_assert_msg(fabs(rate - v->number) <= RATE_OF_BASE * lr,
                      "%s, step %ld: %.9g, expected %.9g", at(c, "name")->text, step, rate,
                      v->number);
        text++;
    }
    ck_assert_int_eq((int)step, (int)at(c, "steps")->number);
}

START_TEST(golden_schedules_have_the_rates_of_their_authors)
{
    json_document d = golden_schedules();
    int cases = 0;

    make_root();
    write_text("e.ini", ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "2", "--extent", "8,8,8");
    for (const json_value *c = d.root->child; c != NULL; c = c->next, cases++) {
        explain_case(c);
        compare_case(c);
    }
    ck_assert_int_eq(cases, 5);
    json_free(&d);
    remove_root();
}
END_TEST

static void expect_rates(const char *steps, const double *rate, int count)
{
    const char *text;

    EXPECT(0, NULL, "explain", "e.ini", "--schedule", "--set", "schedule.plugin=poly", "--set",
           "schedule.unit=epoch", "--set", "optimizer.lr=1", "--set", steps);
    text = text_of("out");
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

/* Two cases: an epoch has two steps. The epoch in which the last step lies counts in full. */
START_TEST(epochs_of_a_number_of_steps_are_those_that_begin)
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

    tcase_add_test(c, golden_schedules_have_the_rates_of_their_authors);
    tcase_add_test(c, epochs_of_a_number_of_steps_are_those_that_begin);
    return suite_run();
}
