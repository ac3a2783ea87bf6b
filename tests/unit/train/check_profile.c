/*
 * check_profile.c - pons train --profile: the files of a profile agree with the run and with each
 * other, and the run has the bits of one without a profile.
 */
#include "base/clock.h"
#include "base/profile/profile.h"
#include "support/run/run_json.h"
#include "support/run/written_run.h"
#include "support/suite.h"

#include <math.h>
#include <sys/stat.h>

/* More steps than a trace has. */
enum { STEPS = 52, TRACED = 50 };

static const char ini[] =
    "[experiment]\nname = plain\n"
    "[data]\nsource = data\nvalidation = last:1\nloader_threads = 2\n"
    "[preprocess]\nsteps = normalize\n"
    "[patch]\nextent = 8 8 8\n"
    "[augment]\nsteps = flip gaussian_noise\n[augment.flip]\naxes = 0 1 2\n"
    "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\nnum_res_units = 1\nnorm = batch\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\n"
    "[train]\nsteps = 52\nbatch = 1\naccumulate = 2\nprecision = fp32\nvalidate_steps = 26\n"
    "checkpoint_every = 100\n"
    "[distribute]\ndevices = cpu\nthreads = 2\n";

static const char *const phase_names[] = {
    "start", "loading", "forward", "backward", "update", "validation", "checkpoint", "report"
};
enum { PHASES = sizeof phase_names / sizeof *phase_names };

/* All tests read the files of one run. */
static void make_profiled_run(void)
{
    make_root();
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "3", "--extent", "12,11,10");
    write_text("e.ini", ini);
    /* Files of a run that ended before its first checkpoint. */
    ck_assert(mkdir(in_root("runs"), 0777) == 0 && mkdir(in_root("runs/plain"), 0777) == 0);
    write_text("runs/plain/profile.json", "{\"format\":\"pons profile 1\"}");
    write_text("runs/plain/profile.svg", "<svg />");
    write_text("runs/plain/trace.json", "{\"traceEvents\":[]}");
    EXPECT(0, NULL, "train", in_root("e.ini"));
    EXPECT(0, "runs/seen/profile.json", "train", in_root("e.ini"), "--profile", "--set",
           "experiment.name=seen");
}

static double real(const json_t *v, const char *path)
{
    const json_t *found = json_at(v, path);

    ck_assert_msg(json_is_number(found), "'%s' is no number", path);
    return json_number_value(found);
}

static const char *text(const json_t *v, const char *path)
{
    const char *found = json_string_value(json_at(v, path));

    ck_assert_msg(found != NULL, "'%s' is no text", path);
    return found;
}

/* The item of a list whose 'key' is 'value'. */
static const json_t *item(const json_t *list, const char *key, const char *value)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
        if (strcmp(text(v, key), value) == 0)
            return v;
    ck_abort_msg("no %s '%s'", key, value);
    return NULL;
}

static double sum_of(const json_t *list, const char *key)
{
    double sum = 0;
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
        sum += real(v, key);
    return sum;
}

static void check_phases(const json_t *p)
{
    const json_t *phases = json_at(p, "phases");

    ck_assert_int_eq(json_array_size(phases), PHASES);
    for (size_t i = 0; i < PHASES; i++) {
        const json_t *phase = json_array_get(phases, i);
        ck_assert_str_eq(text(phase, "phase"), phase_names[i]);
        ck_assert(real(phase, "cpu_ns") > 0);
        ck_assert(real(phase, "gpu_ns") == 0);
    }
    ck_assert(real(item(phases, "phase", "loading"), "calls") == 2 * STEPS);
    ck_assert(real(item(phases, "phase", "forward"), "calls") == 2 * STEPS);
    ck_assert(real(item(phases, "phase", "backward"), "calls") == 2 * STEPS);
    ck_assert(real(item(phases, "phase", "update"), "calls") == STEPS);
    ck_assert(real(item(phases, "phase", "validation"), "calls") == 2);
    /* Phases of one thread do not overlap, and leave out little. */
    ck_assert(sum_of(phases, "cpu_ns") <= real(p, "wall_ns"));
    ck_assert_msg(sum_of(phases, "cpu_ns") >= 0.9 * real(p, "wall_ns"), "%g of %g",
                  sum_of(phases, "cpu_ns"), real(p, "wall_ns"));
}

/* Phases are those of the thread that trains. */
static void check_threads(const json_t *p)
{
    const json_t *phases = json_at(item(json_at(p, "threads"), "name", "main"), "phases");

    ck_assert_int_eq(json_array_size(phases), PHASES);
    for (size_t i = 0; i < PHASES; i++)
        ck_assert(json_equal(json_array_get(phases, i),
                             json_array_get(json_at(p, "phases"), i)));
}

static void check_kernels(const json_t *p)
{
    const json_t *groups = json_at(p, "groups");
    double convolutions = 0, transposed = 0;
    const json_t *v;
    size_t i;

    ck_assert(real(p, "all/kernels") == sum_of(groups, "kernels"));
    ck_assert(fabs(real(p, "all/cpu_ns") - sum_of(groups, "cpu_ns")) <= json_array_size(groups));
    json_array_foreach(groups, i, v) {
        ck_assert(real(v, "kernels") > 0);
        ck_assert(i == 0 || real(v, "cpu_ns") <= real(json_array_get(groups, i - 1), "cpu_ns"));
        if (strcmp(text(v, "kind"), "convolution_weight_gradient") == 0)
            convolutions += real(v, "kernels");
        if (strcmp(text(v, "kind"), "convolution_input_gradient") == 0)
            transposed += real(v, "kernels");
    }
    ck_assert_msg(convolutions > 0 && fmod(convolutions, 2 * STEPS) == 0, "%g", convolutions);
    /* The way up is one: in each validation, for two batches of windows and for the loss. */
    ck_assert_msg(fmod(transposed, 2 * STEPS) == 2 * (2 + 1), "%g", transposed);
}

static void check_plugins(const json_t *p)
{
    static const char *const made[][2] = {
        { "normalize", "transform" }, { "flip", "transform" }, { "gaussian_noise", "transform" },
        { "unet", "model" }, { "dice_ce", "loss" }, { "adam", "optimizer" }
    };
    const json_t *plugins = json_at(p, "plugins");

    ck_assert_int_eq(json_array_size(plugins), sizeof made / sizeof *made);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        const json_t *plugin = item(plugins, "name", made[i][0]);
        ck_assert_str_eq(text(plugin, "kind"), made[i][1]);
        ck_assert(real(plugin, "calls") > 0 && real(plugin, "cpu_ns") > 0);
    }
}

/* The log has the shares of the phases. */
static void check_log(const json_t *phases)
{
    const char *line = strstr(root_text("runs/seen/log.txt"), "phases: start ");
    double all = sum_of(phases, "cpu_ns");
    char expected[64];

    ck_assert(line != NULL);
    for (size_t i = 0; i < PHASES; i++) {
        const json_t *phase = json_array_get(phases, i);

        snprintf(expected, sizeof expected, "%s %.1f %%", text(phase, "phase"),
                 100 * real(phase, "cpu_ns") / all);
        line = strstr(line, expected);
        ck_assert_msg(line != NULL, "no '%s'", expected);
    }
}

START_TEST(totals_agree_with_the_run)
{
    json_t *p;

    p = root_json("runs/seen/profile.json");
    ck_assert_str_eq(text(p, "format"), "pons profile 1");
    ck_assert_str_eq(text(p, "run"), "seen");
    ck_assert(real(p, "steps") == STEPS);
    check_phases(p);
    check_threads(p);
    check_kernels(p);
    check_plugins(p);
    check_log(json_at(p, "phases"));
    json_decref(p);
    /* Only a run with the flag has a profile, and both have the same weights. */
    ck_assert(!root_has("runs/plain/profile.json") && !root_has("runs/plain/trace.json")
              && !root_has("runs/plain/profile.svg"));
    ck_assert(same_runs("plain", "seen", "model optimizer"));
}
END_TEST

/* ---- trace.json ------------------------------------------------------------------------------ */

enum { ROWS_MAX = 64, DEPTH_MAX = 64 };

/* The events of a row that end behind the begin of the last one, by their ends, in nanoseconds. */
typedef struct open_events {
    int depth;
    int64_t begin, end[DEPTH_MAX];
} open_events;

static int64_t nanoseconds(const json_t *event, const char *key)
{
    return llround(1000 * real(event, key));
}

/*
 * An event lies within the innermost open event of its row, which comes before it in the file:
 * Perfetto drops events that overlap.
 */
static void check_nesting(open_events *open, const json_t *e)
{
    int64_t begin = nanoseconds(e, "ts"), end = begin + nanoseconds(e, "dur");

    ck_assert_msg(begin >= open->begin, "%s", text(e, "name"));
    open->begin = begin;
    while (open->depth > 0 && open->end[open->depth - 1] <= begin)
        open->depth--;
    ck_assert_msg(open->depth == 0 || end <= open->end[open->depth - 1], "%s", text(e, "name"));
    ck_assert_int_lt(open->depth, DEPTH_MAX);
    open->end[open->depth++] = end;
}

static int count_events(const json_t *events, const char *name)
{
    int count = 0;
    const json_t *v;
    size_t i;

    json_array_foreach(events, i, v)
        count += strcmp(text(v, "ph"), "X") == 0 && strcmp(text(v, "name"), name) == 0;
    return count;
}

static void check_events(const json_t *events)
{
    open_events open[ROWS_MAX] = { { 0 } };
    bool named[ROWS_MAX] = { false };
    const json_t *v;
    size_t i;

    json_array_foreach(events, i, v) {
        int row = (int)real(v, "tid");

        ck_assert(real(v, "pid") == 1 && row >= 0 && row < ROWS_MAX);
        if (strcmp(text(v, "name"), "thread_name") == 0)
            named[row] = true;
        if (strcmp(text(v, "ph"), "X") != 0) {
            ck_assert_str_eq(text(v, "ph"), "M");
            continue;
        }
        ck_assert(named[row] && real(v, "ts") >= 0 && real(v, "dur") >= 0);
        ck_assert(text(v, "cat")[0] != '\0');
        check_nesting(&open[row], v);
    }
}

START_TEST(the_trace_has_fifty_steps_of_all_threads)
{
    json_t *t;
    const json_t *events;
    const char *trace;

    trace = root_text("runs/seen/trace.json");
    ck_assert(strstr(trace, "{\"name\":\"a thread that prepares patches\"}") != NULL);
    ck_assert(strstr(trace, "{\"name\":\"kernel thread 1 of main\"}") != NULL);
    t = root_json("runs/seen/trace.json");
    events = json_at(t, "traceEvents");
    ck_assert(real(t, "otherData/steps") == TRACED && real(t, "otherData/events_lost") == 0);
    ck_assert_int_eq(count_events(events, "step"), TRACED);
    /* The main thread and its kernel thread. */
    ck_assert_int_eq(count_events(events, "update"), 3 * TRACED);
    ck_assert_int_eq(count_events(events, "backward"), 2 * 2 * TRACED);
    ck_assert_int_ge(count_events(events, "patches of a case"), 2 * TRACED);
    check_events(events);
    json_decref(t);
}
END_TEST

/* ---- cost ------------------------------------------------------------------------------------ */

static double seconds_of_ranges(int count)
{
    double begin = seconds_of_thread();

    for (int i = 0; i < count; i++) {
        host_range_begin(RANGE_KERNEL, "convolution");
        host_range_end();
    }
    return seconds_of_thread() - begin;
}

/* A recorded range reads the clock twice. */
START_TEST(a_range_without_a_profile_costs_a_fraction_of_a_recorded_one)
{
    profile *p = profile_new(0);
    double off, on;

    ck_assert(p != NULL);
    seconds_of_ranges(100000);
    off = seconds_of_ranges(1000000);
    profile_attach(p, "main");
    on = seconds_of_ranges(1000000);
    profile_attach(NULL, NULL);
    ck_assert(profile_tracks(p)->root.child->calls == 1000000);
    profile_free(p);
    ck_assert_msg(2 * off < on, "%g and %g us", off, on);
}
END_TEST

/* ---- several replicas ------------------------------------------------------------------------ */

static void train_replicas(const char *steps)
{
    EXPECT(0, "runs/two/profile.json", "train", in_root("e.ini"), "--profile", "--set",
           "experiment.name=two", "--set", "distribute.devices=cpu, cpu", "--set",
           "distribute.threads=1", "--set", "train.accumulate=1", "--set", steps);
}

START_TEST(each_replica_is_a_thread_with_its_phases)
{
    json_t *p;

    train_replicas("train.steps=2");
    p = root_json("runs/two/profile.json");
    ck_assert(real(item(json_at(p, "phases"), "phase", "forward"), "calls") == 2 * 2);
    for (int r = 0; r < 2; r++) {
        const char *name = r == 0 ? "replica 0" : "replica 1";
        const json_t *phases = json_at(item(json_at(p, "threads"), "name", name), "phases");

        ck_assert(real(item(phases, "phase", "loading"), "calls") == 2);
        ck_assert(real(item(phases, "phase", "backward"), "calls") == 2);
    }
    json_decref(p);
    /* A resumed run has the profile of its own steps. */
    train_replicas("train.steps=3");
    p = root_json("runs/two/profile.json");
    ck_assert(real(p, "steps") == 1);
    ck_assert(real(item(json_at(p, "phases"), "phase", "update"), "calls") == 2);
    json_decref(p);
}
END_TEST

/* ---- profile.svg ----------------------------------------------------------------------------- */

static int count_text(const char *in, const char *what)
{
    int count = 0;

    for (; (in = strstr(in, what)) != NULL; in += strlen(what))
        count++;
    return count;
}

START_TEST(the_flame_graph_is_one_picture_without_script)
{
    const char *svg;

    svg = root_text("runs/seen/profile.svg");
    ck_assert(strncmp(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 40) == 0);
    ck_assert_str_eq(svg + strlen(svg) - 7, "</svg>\n");
    ck_assert(strstr(svg, "<script") == NULL && strstr(svg, "href") == NULL);
    ck_assert_int_eq(count_text(svg, "<g><title>"), count_text(svg, "</g>"));
    ck_assert_int_eq(count_text(svg, "<title>"), count_text(svg, "</title>"));
    ck_assert(strstr(svg, "<title>unet (model): ") != NULL);
    ck_assert(strstr(svg, "<title>main (other): ") != NULL);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("profile");

    pons_program();
    tcase_add_unchecked_fixture(c, make_profiled_run, remove_root);
    tcase_add_test(c, totals_agree_with_the_run);
    tcase_add_test(c, the_trace_has_fifty_steps_of_all_threads);
    tcase_add_test(c, a_range_without_a_profile_costs_a_fraction_of_a_recorded_one);
    tcase_add_test(c, each_replica_is_a_thread_with_its_phases);
    tcase_add_test(c, the_flame_graph_is_one_picture_without_script);
    return suite_run();
}
