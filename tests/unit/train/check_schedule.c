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

/* Members of a case that are no settings. */
static bool is_result(const char *member)
{
    static const char *const names[] = { "name", "values", "momentum", "at" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(member, names[i]) == 0)
            return true;
    return false;
}

/* The text of a value. A rate of the file is a factor on the base rate in the INI file. */
static void value_text(const json_t *v, double scale, char *text, size_t size)
{
    const json_t *item;
    size_t i;

    snprintf(text, size, "%s", json_is_string(v) ? json_string_value(v) : "");
    if (json_is_number(v))
        snprintf(text, size, "%.17g", json_number_value(v) * scale);
    json_array_foreach(v, i, item)
        snprintf(text + strlen(text), size - strlen(text), "%s%lld", i > 0 ? " " : "",
                 (long long)json_integer_value(item));
}

/* Turn the member of a case into a line of the INI file; false: it has none. */
static bool setting_of(const json_t *c, const char *member, const json_t *v, char *line,
                       size_t size)
{
    static const struct { const char *member, *key; bool rate; } other[] = {
        { "schedule", "schedule.plugin", false }, { "lr", "optimizer.lr", false },
        { "steps", "train.steps", false }, { "end", "schedule.end_factor", true },
        { "minimum", "schedule.minimum_factor", true }
    };
    char key[48], text[48];
    bool rate = false;

    if (is_result(member))
        return false;
    snprintf(key, sizeof key, "schedule.%s", member);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strcmp(member, other[i].member) == 0) {
            snprintf(key, sizeof key, "%s", other[i].key);
            rate = other[i].rate;
        }
    value_text(v, rate ? 1 / json_number_value(json_at(c, "lr")) : 1, text, sizeof text);
    snprintf(line, size, "%s=%s", key, text);
    return true;
}

static void explain_case(json_t *c)
{
    const char *word[32] = { "explain", "e.ini", "--schedule" };
    char line[8][96];
    int words = 3, lines = 0;
    const char *member;
    json_t *v;

    json_object_foreach(c, member, v) {
        ck_assert_int_lt(lines, 8);
        if (!setting_of(c, member, v, line[lines], sizeof line[0]))
            continue;
        word[words++] = "--set";
        word[words++] = line[lines++];
    }
    ck_assert_msg(process_finish(process_start(word)) == 0, "%s: %s",
                  json_string_value(json_at(c, "name")), root_text("said"));
}

/* The rate that is printed for a step; NaN: a long run has no line of it. */
static double printed_rate(long step)
{
    const char *text = root_text("out");
    double rate;
    long found;

    while ((text = strchr(text, '\n')) != NULL) {
        if (sscanf(++text, "%ld %lf", &found, &rate) == 2 && found == step)
            return rate;
    }
    return NAN;
}

/* A case with 'at' has values of some steps: every tenth of a long run, and the last. */
static void compare_case(const json_t *c)
{
    const char *name = json_string_value(json_at(c, "name"));
    const json_t *values = json_at(c, "values"), *at = json_object_get(c, "at"), *v;
    double lr = json_number_value(json_at(c, "lr"));
    long steps = (long)json_number_value(json_at(c, "steps"));
    size_t i;

    ck_assert(!isnan(printed_rate(0)) && !isnan(printed_rate(steps - 1)));
    json_array_foreach(values, i, v) {
        long step = at != NULL ? (long)json_integer_value(json_array_get(at, i)) : (long)i;
        double rate = printed_rate(step), value = json_number_value(v);
        if (isnan(rate) && at != NULL && step % 10 != 0)
            continue;
        ck_assert_msg(fabs(rate - value) <= RATE_OF_BASE * lr,
                      "%s, step %ld: %.9g, expected %.9g", name, step, rate, value);
    }
    ck_assert(at != NULL || (long)i == steps);
}

static void check_file(const char *file, int expected)
{
    json_t *d = golden_json(file), *c;
    size_t i;
    int cases = 0;

    make_root();
    write_text("e.ini", ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "2", "--extent", "8,8,8");
    json_array_foreach(d, i, c) {
        if (strcmp(json_string_value(json_at(c, "schedule")), "lr_find") == 0)
            continue;
        explain_case(c);
        compare_case(c);
        cases++;
    }
    ck_assert_int_eq(cases, expected);
    json_decref(d);
    remove_root();
}

START_TEST(golden_schedules_equal_monai_and_fastai)
{
    check_file("schedules.json", 5);
}
END_TEST

START_TEST(further_schedules_equal_pytorch_and_fastai)
{
    check_file("schedules_more.json", 13);
}
END_TEST

/* The plugin begins after the warm-up, whichever it is. */
START_TEST(every_schedule_warms_up_along_a_line)
{
    static const char *const trials[] = { "step", "schedule.every=2", "exponential",
                                          "schedule.gamma=0.5", "linear", "schedule.over=4",
                                          "one_cycle", "schedule.divisor=1", "poly",
                                          "schedule.power=1", "flat_cos", "schedule.flat=0.5",
                                          "cosine", "schedule.cycles=0.5" };
    char plugin[64];

    make_root();
    write_text("e.ini", ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "2", "--extent", "8,8,8");
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i += 2) {
        snprintf(plugin, sizeof plugin, "schedule.plugin=%s", trials[i]);
        EXPECT(0, NULL, "explain", "e.ini", "--schedule", "--set", plugin, "--set", trials[i + 1],
               "--set", "schedule.warmup_steps=4", "--set", "schedule.warmup_multiplier=0.2",
               "--set", "optimizer.lr=1", "--set", "train.steps=8");
        const char *text = root_text("out");
        for (int step = 0; step <= 4; step++) {
            double rate = -1;
            int found = -1;
            text = strchr(text, '\n');
            ck_assert_msg(text != NULL && sscanf(text, "%d %lf", &found, &rate) == 2
                          && found == step, "%s: no line of step %d", trials[i], step);
            ck_assert_msg(fabs(rate - (0.2 + 0.2 * step)) <= RATE_OF_BASE, "%s, step %d: %.9g",
                          trials[i], step, rate);
            text++;
        }
    }
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
    tcase_add_test(c, further_schedules_equal_pytorch_and_fastai);
    tcase_add_test(c, every_schedule_warms_up_along_a_line);
    tcase_add_test(c, the_epochs_of_a_number_of_steps_are_rounded_up);
    return suite_run();
}
