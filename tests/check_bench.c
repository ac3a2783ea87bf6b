/*
 * check_bench.c - pons bench by kernel: what it lists, how its numbers hang together, and the
 * limits of the device that they are put beside.
 */
#include <config.h>

#include "cpu/cpu.h"
#include "cpu/peak.h"

#include "run_json.h"
#include "suite.h"

#include <math.h>
#include <unistd.h>

static const char small_ini[] =
    "[experiment]\nname = small\n"
    "[data]\nsource = phantom\nvalidation = none\n"
    "[patch]\nextent = 16\n"
    "[model]\nplugin = unet\nchannels = 8 16\nstrides = 2\nnum_res_units = 1\nnorm = batch\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\n"
    "[train]\nsteps = 5\nprecision = fp32\n"
    "[window]\nbatch = 1\n";

static void begin(void)
{
    make_root();
    write_text("small.ini", small_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "1", "--extent", "16,16,16");
}

#define BENCH(...) EXPECT(0, NULL, "bench", "small.ini", "--json", "--kernels", "--no-data",      \
                          "--reference", "--steps", "3", "--warm-up", "1", __VA_ARGS__)

static double number(const json_value *object, const char *key)
{
    const json_value *v = json_member(object, key);

    ck_assert_msg(v != NULL && v->type == JSON_NUMBER, "no number '%s'", key);
    return v->number;
}

static const char *word(const json_value *object, const char *key)
{
    return at(object, key)->text;
}

/* ---- the list -------------------------------------------------------------------------------- */

static const json_value *find(const json_value *kernels, const char *section, const char *kind,
                              const char *name)
{
    for (const json_value *k = kernels->child; k != NULL; k = k->next)
        if (strcmp(word(k, "section"), section) == 0 && strcmp(word(k, "kind"), kind) == 0
            && strcmp(word(k, "name"), name) == 0)
            return k;
    return NULL;
}

START_TEST(kernels_are_those_of_explain)
{
    begin();
    BENCH("--set", "train.batch=1");
    json_document bench = parse("out");
    EXPECT(0, NULL, "explain", "small.ini", "--json");
    json_document explain = parse("out");
    const json_value *found = at(bench.root, "kernels"), *known = at(explain.root, "kernels");

    ck_assert_int_gt(known->count, 20);
    ck_assert_int_eq(found->count, known->count);
    for (const json_value *k = known->child; k != NULL; k = k->next) {
        const json_value *b = find(found, word(k, "section"), word(k, "kind"), word(k, "name"));
        ck_assert_msg(b != NULL, "no '%s'", word(k, "name"));
        ck_assert_str_eq(word(b, "implementation"), word(k, "implementation"));
        ck_assert_double_eq(number(b, "bytes"), number(k, "bytes"));
        ck_assert_double_eq(number(b, "flop"), number(k, "flop"));
        ck_assert_double_eq(number(b, "calls"), 1);
    }
    json_free(&bench);
    json_free(&explain);
    remove_root();
}
END_TEST

/* Nine digits are written. */
static void expect_near(double found, double expected)
{
    ck_assert_msg(fabs(found - expected) <= 1e-7 * fabs(expected), "%.9g, expected %.9g", found,
                  expected);
}

START_TEST(rates_follow_from_time_bytes_and_operations)
{
    begin();
    BENCH("--set", "train.batch=1");
    json_document d = parse("out");
    double copy = number(at(d.root, "limits"), "copy_bytes_per_second"), share = 0, sum = 0;
    double fp32 = number(at(d.root, "limits"), "fp32_flop_per_second"), last = INFINITY;
    double differ = number(at(d.root, "limits"), "differ");
    bool warned = strstr(text_of("said"), "shares of a limit mean little") != NULL;

    for (const json_value *k = at(d.root, "kernels")->child; k != NULL; k = k->next)
        sum += number(k, "seconds");
    for (const json_value *k = at(d.root, "kernels")->child; k != NULL; k = k->next) {
        double seconds = number(k, "seconds"), bytes = number(k, "bytes"), flop = number(k, "flop");
        ck_assert_double_gt(seconds, 0);
        ck_assert_double_le(seconds, last);
        expect_near(number(k, "bytes_per_second"), bytes / seconds);
        expect_near(number(k, "flop_per_second"), flop / seconds);
        expect_near(number(k, "share"), seconds / sum);
        expect_near(number(k, "of_limit"), fmax(bytes / copy, flop / fp32) / seconds);
        share += number(k, "share");
        last = seconds;
    }
    expect_near(share, 1);
    ck_assert_double_gt(number(d.root, "between_seconds"), 0);
    ck_assert_double_lt(number(d.root, "between_seconds"), 0.2 + sum);
    ck_assert_double_gt(differ, 0); /* two times nobody measures the same to the last digit */
    ck_assert_msg(warned == (differ > 0.25), "%g: %s", differ, text_of("said"));
    json_free(&d);
    remove_root();
}
END_TEST

static int64_t extreme_calls(const json_value *root, const char *section, bool most)
{
    int64_t found = -1;

    for (const json_value *k = at(root, "kernels")->child; k != NULL; k = k->next) {
        int64_t calls = (int64_t)number(k, "calls");
        if (strcmp(word(k, "section"), section) == 0
            && (found < 0 || (most ? calls > found : calls < found)))
            found = calls;
    }
    return found;
}

START_TEST(calls_are_counted_in_a_step)
{
    begin();
    BENCH("--set", "train.batch=1", "--set", "train.accumulate=4");
    json_document d = parse("out");
    ck_assert_int_eq(extreme_calls(d.root, "micro", false), 4);
    ck_assert_int_eq(extreme_calls(d.root, "micro", true), 4);
    ck_assert_int_eq(extreme_calls(d.root, "begin", true), 1);
    ck_assert_int_eq(extreme_calls(d.root, "update", true), 1);
    json_free(&d);
    remove_root();
}
END_TEST

static double flop_of(const json_value *root)
{
    double sum = 0;

    for (const json_value *k = at(root, "kernels")->child; k != NULL; k = k->next)
        if (strncmp(word(k, "kind"), "convolution", 11) == 0)
            sum += number(k, "flop");
    return sum;
}

START_TEST(forward_is_the_network_on_a_batch_of_windows)
{
    double flop[2];

    begin();
    for (int i = 0; i < 2; i++) {
        BENCH("--forward", "--set", i == 0 ? "window.batch=1" : "window.batch=3");
        json_document d = parse("out");
        flop[i] = flop_of(d.root);
        ck_assert_str_eq(word(d.root, "program"), "forward");
        ck_assert_int_eq(extreme_calls(d.root, "update", true), -1);
        ck_assert_int_eq(extreme_calls(d.root, "micro", true), 1);
        for (const json_value *k = at(d.root, "kernels")->child; k != NULL; k = k->next)
            ck_assert_ptr_null(strstr(word(k, "name"), "backward"));
        json_free(&d);
    }
    ck_assert_double_gt(flop[0], 0);
    ck_assert_double_eq(flop[1], 3 * flop[0]);
    EXPECT(0, NULL, "bench", "small.ini", "--forward", "--reference", "--steps", "2", "--set",
           "window.extent=32 16 24", "--set", "window.batch=2");
    ck_assert_ptr_nonnull(strstr(text_of("out"), "for 2 windows of 32 x 16 x 24"));
    remove_root();
}
END_TEST

/* ---- replicas -------------------------------------------------------------------------------- */

#define TWO "--set", "distribute.devices=cpu:0,cpu:1", "--set", "distribute.bucket=4KiB"

START_TEST(reduction_tells_what_was_summed_and_when)
{
    begin();
    BENCH(TWO);
    json_document d = parse("out");
    const json_value *r = at(d.root, "reduction");
    double bytes = 0;
    int buckets = 0;

    ck_assert_str_eq(word(d.root, "mode"), "dp");
    ck_assert_double_eq(number(d.root, "replicas"), 2);
    ck_assert_double_ge(number(r, "hidden"), 0);
    ck_assert_double_le(number(r, "hidden"), 1);
    ck_assert_double_gt(number(r, "seconds"), 0);
    for (const json_value *s = at(r, "sums")->child; s != NULL; s = s->next) {
        bytes += number(s, "bytes");
        buckets++;
        ck_assert_double_gt(number(s, "started"), 0);
        ck_assert_double_ge(number(s, "done"), number(s, "started"));
    }
    ck_assert_double_eq(number(r, "bytes"), bytes);
    ck_assert_double_eq(number(r, "buckets"), buckets);
    ck_assert_int_gt(buckets, 2);
    json_free(&d);
    BENCH("--set", "distribute.devices=cpu");
    d = parse("out");
    ck_assert_int_eq((int)at(d.root, "reduction")->type, JSON_NULL);
    json_free(&d);
    EXPECT(0, NULL, "bench", "small.ini", "--no-data", "--reference", "--steps", "2", TWO, "--set",
           "distribute.sync_batchnorm=yes");
    ck_assert_ptr_nonnull(strstr(text_of("out"), "mode        dp, 2 replicas"));
    ck_assert_ptr_nonnull(strstr(text_of("out"), "% hidden: "));
    ck_assert_ptr_nonnull(strstr(text_of("out"), " sums of statistics and losses"));
    remove_root();
}
END_TEST

/* Of one device and of two: the sums are the same, so a slow network gives the same seconds. */
START_TEST(model_predicts_from_the_sums_of_a_step)
{
    static const char *const devices[] = { "distribute.devices=cpu",
                                           "distribute.devices=cpu:0,cpu:1" };
    double seconds[2], bytes = 0;

    begin();
    for (int i = 0; i < 2; i++) {
        BENCH("--model", "--latency", "50", "--bandwidth", "1e3", "--set", devices[i], "--set",
              "distribute.bucket=4KiB");
        json_document d = parse("out");
        const json_value *m = at(d.root, "model");
        const char *own = i == 0 ? "model/devices/3" : "model/devices/0";

        ck_assert_double_eq(number(at(d.root, own), "devices"), i == 0 ? 512 : 2);
        for (const json_value *p = at(m, "devices")->child; p != NULL; p = p->next) {
            double ring = number(at(p, "ring"), "step_seconds");
            double tree = number(at(p, "tree"), "step_seconds");
            ck_assert_double_le(tree, ring);
            expect_near(number(at(p, "ring"), "efficiency"), number(m, "compute_seconds") / ring);
            expect_near(number(at(p, "tree"), "efficiency"), number(m, "compute_seconds") / tree);
        }
        seconds[i] = number(at(d.root, "model/devices/0/ring"), "step_seconds")
                   - number(m, "compute_seconds");
        if (i == 1)
            bytes = number(at(d.root, "reduction"), "bytes");
        json_free(&d);
    }
    /* the sums of two devices: 100 s of latency each and 1e-3 s a byte, but for what is hidden */
    ck_assert_double_gt(bytes, 0);
    ck_assert_double_gt(seconds[1], bytes * 1e-3);
    ck_assert_double_eq_tol(seconds[0], seconds[1], 0.1 * seconds[1]);
    remove_root();
}
END_TEST

START_TEST(model_without_a_network_is_refused)
{
    begin();
    EXPECT(2, "'--model' needs '--bandwidth' beside '--latency'", "bench", "small.ini", "--model",
           "--latency", "1e-5");
    EXPECT(2, "'--model' needs the network's --latency and --bandwidth", "bench", "small.ini",
           "--model", "--no-data", "--reference", "--steps", "1", TWO);
    EXPECT(2, "'--bandwidth' needs '--model'", "bench", "small.ini", "--bandwidth", "1e9");
    EXPECT(2, "'--forward' has none", "bench", "small.ini", "--model", "--latency", "1e-5",
           "--bandwidth", "1e9", "--forward");
    EXPECT(3, "must be measured on several replicas", "bench", "small.ini", "--model", "--latency",
           "1e-5", "--bandwidth", "1e9", "--set", "loss.sync=yes");
    remove_root();
}
END_TEST

static bool joins_processes(void)
{
    return access("stage/comm/gloo.so", F_OK) == 0;
}

/* Rank 0 alone prints, whether the processes were started by bench or by launch. */
START_TEST(processes_of_a_run_are_measured_together)
{
    if (!joins_processes())
        return;
    begin();
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            BENCH(TWO, "--set", "distribute.mode=ddp", "--model", "--latency", "0.01",
                  "--bandwidth", "1e6");
        else
            EXPECT(0, NULL, "launch", "-n", "2", "--", "bench", "small.ini", "--json",
                   "--no-data", "--reference", "--steps", "3", "--model", "--latency", "0.01",
                   "--bandwidth", "1e6", "--set", "distribute.bucket=4KiB");
        json_document d = parse("out");
        const json_value *r = at(d.root, "reduction"), *m = at(d.root, "model");

        ck_assert_str_eq(word(d.root, "mode"), "ddp");
        ck_assert_double_eq(number(d.root, "replicas"), 2);
        ck_assert_double_ge(number(r, "hidden"), 0);
        ck_assert_double_le(number(r, "hidden"), 1);
        ck_assert_double_gt(number(m, "compute_seconds"), 0);
        ck_assert_double_ge(number(m, "step_seconds"), number(m, "compute_seconds"));
        ck_assert_double_eq(number(at(m, "devices/0"), "devices"), 2);
        /* sums of bytes / 1e6 s at least, of which at most the computing hides any */
        ck_assert_double_ge(number(at(m, "devices/0/ring"), "step_seconds"),
                            number(r, "bytes") / 1e6);
        json_free(&d);
    }
    remove_root();
}
END_TEST

/* Processes are left out where this build cannot join them. */
START_TEST(modes_are_measured_one_after_another)
{
    int seen = 0, threads = 0;

    begin();
    EXPECT(0, NULL, "bench", "small.ini", "--json", "--modes", "--no-data", "--reference",
           "--steps", "2", "--warm-up", "0", "--set", "train.batch=1", "--set",
           "train.accumulate=2");
    json_document d = parse("out");
    ck_assert_int_eq((int)d.root->type, JSON_LIST);
    for (const json_value *m = d.root->child; m != NULL; m = m->next) {
        double replicas = number(m, "replicas");
        if (m == d.root->child)
            threads = (int)number(m, "threads");
        seen |= strcmp(word(m, "mode"), "single") == 0 ? 1 : strcmp(word(m, "mode"), "dp") == 0
                                                           ? 2 : 4;
        ck_assert_double_gt(number(at(m, "step_seconds"), "median"), 0);
        ck_assert_double_eq(number(m, "micro_batches"), 2 * replicas);
        ck_assert_double_le(replicas * number(m, "threads"), threads);
    }
    ck_assert_int_eq(seen, threads == 1 ? 1 : joins_processes() ? 7 : 3);
    json_free(&d);
    EXPECT(0, NULL, "bench", "small.ini", "--modes", "--no-data", "--reference", "--steps", "1",
           "--warm-up", "0");
    ck_assert_ptr_nonnull(strstr(text_of("out"), "\nsingle "));
    EXPECT(3, "unknown key 'batches'", "bench", "small.ini", "--modes", "--set", "train.batches=1");
    remove_root();
}
END_TEST

/* ---- before and after ------------------------------------------------------------------------ */

/* Milliseconds of before in the table of kinds. */
static double before_of(const char *kind, const char *by)
{
    char row[64];
    const char *at;
    int kernels = 0;
    double before = -1;

    snprintf(row, sizeof row, "\n%-28.28s %-10s ", kind, by);
    at = strstr(text_of("out"), row);
    ck_assert_msg(at != NULL, "no '%s' in %s", row + 1, text_of("out"));
    ck_assert_int_eq(sscanf(at + strlen(row), "%d %*s %lf", &kernels, &before), 2);
    return before;
}

START_TEST(earlier_measurement_is_shown_with_the_ratio)
{
    begin();
    BENCH("--set", "train.batch=1");
    json_document d = parse("out");
    const json_value *k = at(d.root, "kernels/0");
    char text[1024];

    snprintf(text, sizeof text, "{\"step_seconds\":{\"median\":50},\"kernels\":["
             "{\"section\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\","
             "\"implementation\":\"%s\",\"seconds\":7},"
             "{\"section\":\"micro\",\"kind\":\"map\",\"name\":\"left\",\"seconds\":0.25},"
             "{\"section\":\"begin\",\"kind\":\"pack\",\"name\":\"idle\",\"calls\":0,"
             "\"seconds\":0}]}",
             word(k, "section"), word(k, "kind"), word(k, "name"), word(k, "implementation"));
    write_text("before.json", text);
    BENCH("--set", "train.batch=1", "--baseline", "before.json");
    json_document now = parse("out");
    double step = number(at(now.root, "step_seconds"), "median");
    const json_value *same = find(at(now.root, "kernels"), word(k, "section"), word(k, "kind"),
                                  word(k, "name"));
    int compared = 0;

    ck_assert_double_eq(number(at(now.root, "step_seconds"), "before"), 50);
    expect_near(number(at(now.root, "step_seconds"), "ratio"), 50 / step);
    ck_assert_ptr_nonnull(same);
    ck_assert_double_eq(number(same, "before"), 7);
    expect_near(number(same, "ratio"), 7 / number(same, "seconds"));
    for (const json_value *i = at(now.root, "kernels")->child; i != NULL; i = i->next)
        compared += json_member(i, "before")->type == JSON_NUMBER;
    ck_assert_int_eq(compared, 1);
    ck_assert_int_eq(at(now.root, "gone")->count, 1);
    ck_assert_str_eq(word(at(now.root, "gone/0"), "name"), "left");
    ck_assert_double_eq(number(at(now.root, "gone/0"), "before"), 0.25);
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--reference", "--steps", "2",
           "--baseline", "before.json");
    ck_assert_ptr_nonnull(strstr(text_of("out"), "before      50.0000 s"));
    ck_assert_ptr_nonnull(strstr(text_of("out"), "  left\n"));
    ck_assert_ptr_null(strstr(text_of("out"), "idle"));
    json_free(&d);
    json_free(&now);
    remove_root();
}
END_TEST

/* The same kernels, one of them by another implementation then, and one that is there no more. */
START_TEST(kinds_of_before_are_listed_and_their_sum_is_that_of_before)
{
    char text[1024];

    begin();
    BENCH("--set", "train.batch=1");
    json_document d = parse("out");
    const json_value *k = at(d.root, "kernels/0");
    snprintf(text, sizeof text, "{\"step_seconds\":{\"median\":50},\"kernels\":["
             "{\"section\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\","
             "\"implementation\":\"other\",\"seconds\":7},"
             "{\"section\":\"micro\",\"kind\":\"pack\",\"name\":\"left\","
             "\"implementation\":\"lost\",\"seconds\":0.25}]}",
             word(k, "section"), word(k, "kind"), word(k, "name"));
    write_text("before.json", text);
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--reference", "--steps", "2",
           "--baseline", "before.json");
    ck_assert_double_eq(before_of(word(k, "kind"), "other"), 7000);
    ck_assert_double_eq(before_of("pack", "lost"), 250);
    ck_assert_double_eq(before_of("all", ""), 7250);
    json_free(&d);
    remove_root();
}
END_TEST

START_TEST(what_an_earlier_measurement_was_of_is_told)
{
    begin();
    write_text("before.json", "{\"precision\":\"fp32\",\"threads\":77,\"program\":\"training\","
               "\"step_seconds\":{\"median\":50}}");
    EXPECT(0, "before.json' was measured with threads 77, now ", "bench", "small.ini",
           "--no-data", "--steps", "1", "--set", "train.precision=fp32", "--baseline",
           "before.json");
    ck_assert_ptr_null(strstr(text_of("said"), "with precision"));
    EXPECT(2, "before.json': a measurement of the training program, expected forward", "bench",
           "small.ini", "--forward", "--baseline", "before.json");
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--steps", "1", "--json");
    write_text("before.json", text_of("out"));
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--steps", "1", "--baseline",
           "before.json");
    ck_assert_ptr_null(strstr(text_of("said"), "is of another network"));
    EXPECT(0, "before.json' is of another network, patch or batch: '", "bench", "small.ini",
           "--kernels", "--no-data", "--steps", "1", "--set", "train.batch=3", "--baseline",
           "before.json");
    remove_root();
}
END_TEST

/* Weights become bf16 once for all forward passes, before they are timed. */
START_TEST(kernels_that_did_not_run_are_not_listed)
{
    static const char bf16[] = "train.precision=bf16";
    char row[64];

    begin();
    BENCH("--set", bf16);
    json_document step = parse("out");
    BENCH("--set", bf16, "--forward");
    json_document pass = parse("out");
    ck_assert_int_eq(extreme_calls(step.root, "begin", true), 1);
    ck_assert_int_eq(extreme_calls(pass.root, "begin", true), -1);
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--forward", "--reference", "--steps", "2",
           "--set", bf16);
    snprintf(row, sizeof row, "\n%-28s %-10s %7d ", "all", "", at(pass.root, "kernels")->count);
    ck_assert_msg(strstr(text_of("out"), row) != NULL, "no '%s' in %s", row, text_of("out"));
    ck_assert_ptr_null(strstr(text_of("out"), "\nbegin "));
    ck_assert_ptr_nonnull(strstr(text_of("out"), "one after another: median of 2 steps\nbetween "));
    json_free(&step);
    json_free(&pass);
    remove_root();
}
END_TEST

START_TEST(what_is_no_measurement_is_refused)
{
    begin();
    write_text("list.json", "[1]");
    write_text("other.json", "{\"step_seconds\":{\"median\":\"1\"}}");
    write_text("timeless.json", "{\"step_seconds\":{\"median\":1},"
               "\"kernels\":[{\"seconds\":1},{}]}");
    write_text("cut.json", "{\"step_seconds\":");
    EXPECT(2, "list.json': not what 'pons bench --json' writes: no number 'median'", "bench",
           "small.ini", "--baseline", "list.json");
    EXPECT(2, "other.json': not what 'pons bench --json' writes: no number 'median'", "bench",
           "small.ini", "--baseline", "other.json");
    EXPECT(2, "timeless.json': not what 'pons bench --json' writes: not all of 'kernels'", "bench",
           "small.ini", "--baseline", "timeless.json");
    EXPECT(2, "cut.json': ", "bench", "small.ini", "--baseline", "cut.json");
    EXPECT(2, "cannot open 'none.json'", "bench", "small.ini", "--baseline", "none.json");
    remove_root();
}
END_TEST

/* ---- limits of the device -------------------------------------------------------------------- */

START_TEST(device_without_limits_has_none)
{
    begin();
    BENCH("--set", "distribute.devices=reference");
    json_document d = parse("out");
    ck_assert_int_eq((int)at(d.root, "limits")->type, JSON_NULL);
    ck_assert_int_eq((int)at(d.root, "kernels/0/of_limit")->type, JSON_NULL);
    json_free(&d);
    remove_root();
}
END_TEST

START_TEST(copy_past_the_caches_is_a_copy)
{
    enum { SIZE = 4096 };
    unsigned char *from = aligned_alloc(64, SIZE), *to = aligned_alloc(64, SIZE + 64);

    for (int i = 0; i < SIZE; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    memset(to, 0xee, SIZE + 64);
    limits_copy(to, from, SIZE);
    ck_assert_mem_eq(to, from, SIZE);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(to[SIZE + i], 0xee);
    free(from);
    free(to);
}
END_TEST

/*
 * Twelve vectors of sums: lane 0 of vector i starts as number i of 'lanes' numbers and becomes
 * x b + a in each round. A loop that a compiler had shortened would count operations that it
 * never made.
 */
START_TEST(loops_make_the_products_that_they_count)
{
    enum { ROUNDS = 7, SUMS = 12 };
    float *input = aligned_alloc(64, LIMITS_INPUT), output[64];
    int tried = 0;

    for (size_t i = 0; i < LIMITS_INPUT / sizeof *input; i++)
        input[i] = (float)(i % 13) / 16;
    for (const limits_loop *l = limits_f32; l->run != NULL; l++) {
        int lanes = (int)(l->operations / (2 * SUMS));
        double sum = 0;
        if (!isa_runs(l->set) || 2.0 * SUMS * lanes != l->operations)
            continue;
        for (int i = 0; i < SUMS; i++) {
            double x = input[i * lanes];
            for (int r = 0; r < ROUNDS; r++)
                x = x * input[lanes] + input[0];
            sum += x;
        }
        l->run(ROUNDS, input, output);
        /* seven products and a sum of twelve, each rounded to 2^-24 */
        ck_assert_double_eq_tol(output[0], sum, 20 * 0x1p-24 * fabs(sum));
        tried++;
    }
#if defined(__x86_64__)
    ck_assert_int_gt(tried, 0);
#endif
    free(input);
}
END_TEST

START_TEST(limits_lie_where_processors_lie)
{
    pons_device_settings settings = { .count = 1, .threads = 1 };
    pons_device_peak limits = { 0 };
    pons_device_facts facts;
    pons_error err = PONS_ERROR_INIT;
    void *device;

    ck_assert_int_eq(cpu_operations.open(&settings, &device, &err), PONS_OK);
    cpu_operations.facts(device, &facts);
    /* A machine may be too busy for one of the loops once, but not each time. */
    for (int round = 0; round == 0 || (round < 5 && facts.bf16 && limits.bf16 <= limits.f32);
         round++)
        ck_assert_msg(cpu_operations.profiling.peak(device, &limits, &err) == PONS_OK, "%s",
                      err.text);
    ck_assert_double_gt(limits.copy, 1e8);
    ck_assert_double_lt(limits.copy, 1e12);
    ck_assert_double_gt(limits.f32, 1e8);
    ck_assert_double_lt(limits.f32, 1e12);
    if (facts.bf16)
        ck_assert_double_gt(limits.bf16, limits.f32);
    cpu_operations.close(device);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("bench");

    tcase_add_test(c, kernels_are_those_of_explain);
    tcase_add_test(c, rates_follow_from_time_bytes_and_operations);
    tcase_add_test(c, calls_are_counted_in_a_step);
    tcase_add_test(c, forward_is_the_network_on_a_batch_of_windows);
    tcase_add_test(c, reduction_tells_what_was_summed_and_when);
    tcase_add_test(c, model_predicts_from_the_sums_of_a_step);
    tcase_add_test(c, model_without_a_network_is_refused);
    tcase_add_test(c, processes_of_a_run_are_measured_together);
    tcase_add_test(c, modes_are_measured_one_after_another);
    tcase_add_test(c, earlier_measurement_is_shown_with_the_ratio);
    tcase_add_test(c, kinds_of_before_are_listed_and_their_sum_is_that_of_before);
    tcase_add_test(c, what_an_earlier_measurement_was_of_is_told);
    tcase_add_test(c, kernels_that_did_not_run_are_not_listed);
    tcase_add_test(c, what_is_no_measurement_is_refused);
    tcase_add_test(c, device_without_limits_has_none);
    tcase_add_test(c, copy_past_the_caches_is_a_copy);
    tcase_add_test(c, loops_make_the_products_that_they_count);
    tcase_add_test(c, limits_lie_where_processors_lie);
    return suite_run();
}
