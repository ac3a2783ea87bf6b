/*
 * check_bench.c - pons bench by kernel: the listed kernels, the relations between their figures,
 * and the peak of the device beside them.
 */
#include <config.h>

#include "cpu/cpu.h"
#include "cpu/peak.h"

#include "support/run/run_json.h"
#include "support/suite.h"

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

static void begin_bench(void)
{
    write_text("small.ini", small_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "1", "--extent", "16,16,16");
}

#define BENCH(...) EXPECT(0, NULL, "bench", "small.ini", "--json", "--kernels", "--no-data",      \
                          "--reference", "--steps", "3", "--warm-up", "1", __VA_ARGS__)

static double number(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    ck_assert_msg(json_is_number(v), "no number '%s'", key);
    return json_number_value(v);
}

static const char *word(const json_t *object, const char *key)
{
    return json_string_value(json_at(object, key));
}

/* ---- the list -------------------------------------------------------------------------------- */

static const json_t *find_listed_kernel(const json_t *kernels, const char *section,
                                        const char *kind, const char *name)
{
    const json_t *k;
    size_t i;

    json_array_foreach(kernels, i, k)
        if (strcmp(word(k, "section"), section) == 0 && strcmp(word(k, "kind"), kind) == 0
            && strcmp(word(k, "name"), name) == 0)
            return k;
    return NULL;
}

START_TEST(bench_lists_the_kernels_of_explain)
{
    begin_bench();
    BENCH("--set", "train.batch=1");
    json_t *bench = root_json("out");
    EXPECT(0, NULL, "explain", "small.ini", "--json");
    json_t *explain = root_json("out");
    const json_t *found = json_at(bench, "kernels"), *known = json_at(explain, "kernels");
    const json_t *k;
    size_t i;

    ck_assert_int_gt((int)json_array_size(known), 20);
    ck_assert_int_eq((int)json_array_size(found), (int)json_array_size(known));
    json_array_foreach(known, i, k) {
        const json_t *b = find_listed_kernel(found, word(k, "section"), word(k, "kind"),
                                             word(k, "name"));
        ck_assert_msg(b != NULL, "no '%s'", word(k, "name"));
        ck_assert_str_eq(word(b, "implementation"), word(k, "implementation"));
        ck_assert_double_eq(number(b, "bytes"), number(k, "bytes"));
        ck_assert_double_eq(number(b, "flop"), number(k, "flop"));
        ck_assert_double_eq(number(b, "calls"), 1);
    }
    json_decref(bench);
    json_decref(explain);
}
END_TEST

/* The output has nine digits. */
static void expect_near(double found, double expected)
{
    ck_assert_msg(fabs(found - expected) <= 1e-7 * fabs(expected), "%.9g, expected %.9g", found,
                  expected);
}

START_TEST(kernel_rates_follow_from_time_bytes_and_operations)
{
    begin_bench();
    BENCH("--set", "train.batch=1");
    json_t *d = root_json("out");
    double copy = number(json_at(d, "limits"), "copy_bytes_per_second"), share = 0, sum = 0;
    double fp32 = number(json_at(d, "limits"), "fp32_flop_per_second"), last = INFINITY;
    double differ = number(json_at(d, "limits"), "differ");
    bool warned = strstr(root_text("said"), "shares of a limit mean little") != NULL;
    const json_t *kernels = json_at(d, "kernels"), *k;
    size_t i;

    json_array_foreach(kernels, i, k)
        sum += number(k, "seconds");
    json_array_foreach(kernels, i, k) {
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
    ck_assert_double_gt(number(d, "between_seconds"), 0);
    ck_assert_double_lt(number(d, "between_seconds"), 0.2 + sum);
    ck_assert_double_gt(differ, 0); /* the digits of two separate measurements differ */
    ck_assert_msg(warned == (differ > 0.25), "%g: %s", differ, root_text("said"));
    json_decref(d);
}
END_TEST

static int64_t extreme_calls(const json_t *root, const char *section, bool most)
{
    const json_t *kernels = json_at(root, "kernels"), *k;
    int64_t found = -1;
    size_t i;

    json_array_foreach(kernels, i, k) {
        int64_t calls = (int64_t)number(k, "calls");
        if (strcmp(word(k, "section"), section) == 0
            && (found < 0 || (most ? calls > found : calls < found)))
            found = calls;
    }
    return found;
}

START_TEST(calls_are_counted_in_a_step)
{
    begin_bench();
    BENCH("--set", "train.batch=1", "--set", "train.accumulate=4");
    json_t *d = root_json("out");
    ck_assert_int_eq(extreme_calls(d, "micro", false), 4);
    ck_assert_int_eq(extreme_calls(d, "micro", true), 4);
    ck_assert_int_eq(extreme_calls(d, "begin", true), 1);
    ck_assert_int_eq(extreme_calls(d, "update", true), 1);
    json_decref(d);
}
END_TEST

static double flop_of(const json_t *root)
{
    const json_t *kernels = json_at(root, "kernels"), *k;
    double sum = 0;
    size_t i;

    json_array_foreach(kernels, i, k)
        if (strncmp(word(k, "kind"), "convolution", 11) == 0)
            sum += number(k, "flop");
    return sum;
}

START_TEST(the_forward_bench_runs_the_network_on_windows)
{
    double flop[2];

    begin_bench();
    for (int i = 0; i < 2; i++) {
        BENCH("--forward", "--set", i == 0 ? "window.batch=1" : "window.batch=3");
        json_t *d = root_json("out");
        const json_t *kernels = json_at(d, "kernels"), *k;
        size_t n;
        flop[i] = flop_of(d);
        ck_assert_str_eq(word(d, "program"), "forward");
        ck_assert_int_eq(extreme_calls(d, "update", true), -1);
        ck_assert_int_eq(extreme_calls(d, "micro", true), 1);
        json_array_foreach(kernels, n, k)
            ck_assert_ptr_null(strstr(word(k, "name"), "backward"));
        json_decref(d);
    }
    ck_assert_double_gt(flop[0], 0);
    ck_assert_double_eq(flop[1], 3 * flop[0]);
    EXPECT(0, NULL, "bench", "small.ini", "--forward", "--reference", "--steps", "2", "--set",
           "window.extent=32 16 24", "--set", "window.batch=2");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "for 2 windows of 32 x 16 x 24"));
}
END_TEST

/* ---- replicas -------------------------------------------------------------------------------- */

#define TWO "--set", "distribute.devices=cpu:0,cpu:1", "--set", "distribute.bucket=4KiB"

START_TEST(the_reduction_report_has_sizes_and_times)
{
    begin_bench();
    BENCH(TWO);
    json_t *d = root_json("out");
    const json_t *r = json_at(d, "reduction"), *sums = json_at(r, "sums"), *s;
    double bytes = 0;
    int buckets = 0;
    size_t i;

    ck_assert_str_eq(word(d, "mode"), "dp");
    ck_assert_double_eq(number(d, "replicas"), 2);
    ck_assert_double_ge(number(r, "hidden"), 0);
    ck_assert_double_le(number(r, "hidden"), 1);
    ck_assert_double_gt(number(r, "seconds"), 0);
    json_array_foreach(sums, i, s) {
        bytes += number(s, "bytes");
        buckets++;
        ck_assert_double_gt(number(s, "started"), 0);
        ck_assert_double_ge(number(s, "done"), number(s, "started"));
    }
    ck_assert_double_eq(number(r, "bytes"), bytes);
    ck_assert_double_eq(number(r, "buckets"), buckets);
    ck_assert_int_gt(buckets, 2);
    json_decref(d);
    BENCH("--set", "distribute.devices=cpu");
    d = root_json("out");
    ck_assert(json_is_null(json_at(d, "reduction")));
    json_decref(d);
    EXPECT(0, NULL, "bench", "small.ini", "--no-data", "--reference", "--steps", "2", TWO, "--set",
           "distribute.sync_batchnorm=yes");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "mode        dp, 2 replicas"));
    ck_assert_ptr_nonnull(strstr(root_text("out"), "% hidden: "));
    ck_assert_ptr_nonnull(strstr(root_text("out"), " sums of statistics and losses"));
}
END_TEST

/*
 * The step has the same sums on one device and on two, so that a slow network predicts the same
 * seconds.
 */
START_TEST(the_scaling_model_predicts_from_traced_sums)
{
    static const char *const devices[] = { "distribute.devices=cpu",
                                           "distribute.devices=cpu:0,cpu:1" };
    double seconds[2], bytes = 0;

    begin_bench();
    for (int i = 0; i < 2; i++) {
        BENCH("--model", "--latency", "50", "--bandwidth", "1e3", "--set", devices[i], "--set",
              "distribute.bucket=4KiB");
        json_t *d = root_json("out");
        const json_t *m = json_at(d, "model"), *all = json_at(m, "devices"), *p;
        size_t n;
        const char *own = i == 0 ? "model/devices/3" : "model/devices/0";

        ck_assert_double_eq(number(json_at(d, own), "devices"), i == 0 ? 512 : 2);
        json_array_foreach(all, n, p) {
            double ring = number(json_at(p, "ring"), "step_seconds");
            double tree = number(json_at(p, "tree"), "step_seconds");
            ck_assert_double_le(tree, ring);
            expect_near(number(json_at(p, "ring"), "efficiency"),
                        number(m, "compute_seconds") / ring);
            expect_near(number(json_at(p, "tree"), "efficiency"),
                        number(m, "compute_seconds") / tree);
        }
        seconds[i] = number(json_at(d, "model/devices/0/ring"), "step_seconds")
                   - number(m, "compute_seconds");
        if (i == 1)
            bytes = number(json_at(d, "reduction"), "bytes");
        json_decref(d);
    }
    /*
     * The sums of two devices take 100 s of latency each and 1e-3 s a byte, less the hidden part.
     */
    ck_assert_double_gt(bytes, 0);
    ck_assert_double_gt(seconds[1], bytes * 1e-3);
    ck_assert_double_eq_tol(seconds[0], seconds[1], 0.1 * seconds[1]);
}
END_TEST

START_TEST(a_scaling_model_without_a_network_is_refused)
{
    begin_bench();
    EXPECT(2, "'--model' needs '--bandwidth' beside '--latency'", "bench", "small.ini", "--model",
           "--latency", "1e-5");
    EXPECT(2, "'--model' needs the network's --latency and --bandwidth", "bench", "small.ini",
           "--model", "--no-data", "--reference", "--steps", "1", TWO);
    EXPECT(2, "'--bandwidth' needs '--model'", "bench", "small.ini", "--bandwidth", "1e9");
    EXPECT(2, "'--forward' has none", "bench", "small.ini", "--model", "--latency", "1e-5",
           "--bandwidth", "1e9", "--forward");
    EXPECT(3, "must be measured on several replicas", "bench", "small.ini", "--model", "--latency",
           "1e-5", "--bandwidth", "1e9", "--set", "loss.sync=yes");
}
END_TEST

/* Rank 0 alone prints, whether bench or launch started the processes. */
START_TEST(processes_of_a_run_are_measured_together)
{
    begin_bench();
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            BENCH(TWO, "--set", "distribute.mode=ddp", "--model", "--latency", "0.01",
                  "--bandwidth", "1e6");
        else
            EXPECT(0, NULL, "launch", "-n", "2", "--", "bench", "small.ini", "--json",
                   "--no-data", "--reference", "--steps", "3", "--model", "--latency", "0.01",
                   "--bandwidth", "1e6", "--set", "distribute.bucket=4KiB");
        json_t *d = root_json("out");
        const json_t *r = json_at(d, "reduction"), *m = json_at(d, "model");

        ck_assert_str_eq(word(d, "mode"), "ddp");
        ck_assert_double_eq(number(d, "replicas"), 2);
        ck_assert_double_ge(number(r, "hidden"), 0);
        ck_assert_double_le(number(r, "hidden"), 1);
        ck_assert_double_gt(number(m, "compute_seconds"), 0);
        ck_assert_double_ge(number(m, "step_seconds"), number(m, "compute_seconds"));
        ck_assert_double_eq(number(json_at(m, "devices/0"), "devices"), 2);
        /* The sums take at least bytes / 1e6 s, of which the computation hides a part. */
        ck_assert_double_ge(number(json_at(m, "devices/0/ring"), "step_seconds"),
                            number(r, "bytes") / 1e6);
        json_decref(d);
    }
}
END_TEST

/* Processes are skipped where this build cannot join them. */
START_TEST(all_distribute_modes_are_measured_in_turn)
{
    int seen = 0, threads = 0;

    begin_bench();
    EXPECT(0, NULL, "bench", "small.ini", "--json", "--modes", "--no-data", "--reference",
           "--steps", "2", "--warm-up", "0", "--set", "train.batch=1", "--set",
           "train.accumulate=2");
    json_t *d = root_json("out");
    const json_t *m;
    size_t i;
    ck_assert(json_is_array(d));
    json_array_foreach(d, i, m) {
        double replicas = number(m, "replicas");
        if (i == 0)
            threads = (int)number(m, "threads");
        seen |= strcmp(word(m, "mode"), "single") == 0 ? 1 : strcmp(word(m, "mode"), "dp") == 0
                                                           ? 2 : 4;
        ck_assert_double_gt(number(json_at(m, "step_seconds"), "median"), 0);
        ck_assert_double_eq(number(m, "micro_batches"), 2 * replicas);
        ck_assert_double_le(replicas * number(m, "threads"), threads);
    }
    ck_assert_int_eq(seen, threads == 1 ? 1 : 7);
    json_decref(d);
    EXPECT(0, NULL, "bench", "small.ini", "--modes", "--no-data", "--reference", "--steps", "1",
           "--warm-up", "0");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "\nsingle "));
    EXPECT(3, "unknown key 'batches'", "bench", "small.ini", "--modes", "--set", "train.batches=1");
}
END_TEST

/* ---- comparison with an earlier measurement -------------------------------------------------- */

/* Milliseconds of the earlier measurement in the table of kinds. */
static double earlier_milliseconds(const char *kind, const char *by)
{
    char row[64];
    const char *at;
    int kernels = 0;
    double before = -1;

    snprintf(row, sizeof row, "\n%-28.28s %-16s ", kind, by);
    at = strstr(root_text("out"), row);
    ck_assert_msg(at != NULL, "no '%s' in %s", row + 1, root_text("out"));
    ck_assert_int_eq(sscanf(at + strlen(row), "%d %*s %lf", &kernels, &before), 2);
    return before;
}

START_TEST(an_earlier_measurement_is_shown_with_its_ratio)
{
    begin_bench();
    BENCH("--set", "train.batch=1");
    json_t *d = root_json("out");
    const json_t *k = json_at(d, "kernels/0");
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
    json_t *now = root_json("out");
    double step = number(json_at(now, "step_seconds"), "median");
    const json_t *kernels = json_at(now, "kernels"), *kernel;
    const json_t *same = find_listed_kernel(kernels, word(k, "section"), word(k, "kind"),
                                            word(k, "name"));
    int compared = 0;
    size_t i;

    ck_assert_double_eq(number(json_at(now, "step_seconds"), "before"), 50);
    expect_near(number(json_at(now, "step_seconds"), "ratio"), 50 / step);
    ck_assert_ptr_nonnull(same);
    ck_assert_double_eq(number(same, "before"), 7);
    expect_near(number(same, "ratio"), 7 / number(same, "seconds"));
    json_array_foreach(kernels, i, kernel)
        compared += json_is_number(json_object_get(kernel, "before"));
    ck_assert_int_eq(compared, 1);
    ck_assert_int_eq((int)json_array_size(json_at(now, "gone")), 1);
    ck_assert_str_eq(word(json_at(now, "gone/0"), "name"), "left");
    ck_assert_double_eq(number(json_at(now, "gone/0"), "before"), 0.25);
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--reference", "--steps", "2",
           "--baseline", "before.json");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "before      50.0000 s"));
    ck_assert_ptr_nonnull(strstr(root_text("out"), "  left\n"));
    ck_assert_ptr_null(strstr(root_text("out"), "idle"));
    json_decref(d);
    json_decref(now);
}
END_TEST

/*
 * The earlier measurement has the same kernels, one of them by another implementation, and one
 * more.
 */
START_TEST(kinds_of_the_earlier_measurement_are_listed_with_their_sum)
{
    char text[1024];

    begin_bench();
    BENCH("--set", "train.batch=1");
    json_t *d = root_json("out");
    const json_t *k = json_at(d, "kernels/0");
    snprintf(text, sizeof text, "{\"step_seconds\":{\"median\":50},\"kernels\":["
             "{\"section\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\","
             "\"implementation\":\"other\",\"seconds\":7},"
             "{\"section\":\"micro\",\"kind\":\"pack\",\"name\":\"left\","
             "\"implementation\":\"lost\",\"seconds\":0.25}]}",
             word(k, "section"), word(k, "kind"), word(k, "name"));
    write_text("before.json", text);
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--reference", "--steps", "2",
           "--baseline", "before.json");
    ck_assert_double_eq(earlier_milliseconds(word(k, "kind"), "other"), 7000);
    ck_assert_double_eq(earlier_milliseconds("pack", "lost"), 250);
    ck_assert_double_eq(earlier_milliseconds("all", ""), 7250);
    json_decref(d);
}
END_TEST

START_TEST(different_conditions_of_the_baseline_are_reported)
{
    begin_bench();
    write_text("before.json", "{\"precision\":\"fp32\",\"threads\":77,\"program\":\"training\","
               "\"step_seconds\":{\"median\":50}}");
    EXPECT(0, "before.json' was measured with threads 77, now ", "bench", "small.ini",
           "--no-data", "--steps", "1", "--set", "train.precision=fp32", "--baseline",
           "before.json");
    ck_assert_ptr_null(strstr(root_text("said"), "with precision"));
    EXPECT(2, "before.json': a measurement of the training program, expected forward", "bench",
           "small.ini", "--forward", "--baseline", "before.json");
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--steps", "1", "--json");
    write_text("before.json", root_text("out"));
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--no-data", "--steps", "1", "--baseline",
           "before.json");
    ck_assert_ptr_null(strstr(root_text("said"), "is of another network"));
    EXPECT(0, "before.json' is of another network, patch or batch: '", "bench", "small.ini",
           "--kernels", "--no-data", "--steps", "1", "--set", "train.batch=3", "--baseline",
           "before.json");
}
END_TEST

/* Weights become bf16 once for all forward passes, before the timing. */
START_TEST(unused_kernels_are_not_listed)
{
    static const char bf16[] = "train.precision=bf16";
    char row[64];

    begin_bench();
    BENCH("--set", bf16);
    json_t *step = root_json("out");
    BENCH("--set", bf16, "--forward");
    json_t *pass = root_json("out");
    ck_assert_int_eq(extreme_calls(step, "begin", true), 1);
    ck_assert_int_eq(extreme_calls(pass, "begin", true), -1);
    EXPECT(0, NULL, "bench", "small.ini", "--kernels", "--forward", "--reference", "--steps", "2",
           "--set", bf16);
    snprintf(row, sizeof row, "\n%-28s %-16s %7zu ", "all", "",
             json_array_size(json_at(pass, "kernels")));
    ck_assert_msg(strstr(root_text("out"), row) != NULL, "no '%s' in %s", row, root_text("out"));
    ck_assert_ptr_null(strstr(root_text("out"), "\nbegin "));
    ck_assert_ptr_nonnull(strstr(root_text("out"),
                                 "one after another: median of 2 steps\nbetween "));
    json_decref(step);
    json_decref(pass);
}
END_TEST

START_TEST(an_invalid_baseline_file_is_refused)
{
    begin_bench();
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
}
END_TEST

/* ---- peak of the device ---------------------------------------------------------------------- */

START_TEST(a_device_without_peak_has_no_share_of_it)
{
    begin_bench();
    BENCH("--set", "distribute.devices=reference");
    json_t *d = root_json("out");
    ck_assert(json_is_null(json_at(d, "limits")));
    ck_assert(json_is_null(json_at(d, "kernels/0/of_limit")));
    json_decref(d);
}
END_TEST

START_TEST(the_non_temporal_copy_copies_all_bytes)
{
    enum { SIZE = 4096 };
    unsigned char *from = aligned_alloc(64, SIZE), *to = aligned_alloc(64, SIZE + 64);

    for (int i = 0; i < SIZE; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    memset(to, 0xee, SIZE + 64);
    peak_copy(to, from, SIZE);
    ck_assert_mem_eq(to, from, SIZE);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(to[SIZE + i], 0xee);
    free(from);
    free(to);
}
END_TEST

/*
 * A peak loop makes twelve sums in vectors. Lane 0 of vector i starts as number i of 'lanes'
 * numbers and becomes x b + a in each round. The final value shows that the compiler has not
 * shortened the loop.
 */
START_TEST(peak_loops_execute_the_operations_they_count)
{
    enum { ROUNDS = 7, SUMS = 12 };
    float *input = aligned_alloc(64, PEAK_INPUT), output[64];
    int tried = 0;

    for (size_t i = 0; i < PEAK_INPUT / sizeof *input; i++)
        input[i] = (float)(i % 13) / 16;
    for (const peak_loop *l = peak_f32; l->run != NULL; l++) {
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

START_TEST(measured_peaks_are_plausible)
{
    pons_device_settings settings = { .count = 1, .threads = 1 };
    pons_device_peak limits = { 0 };
    pons_device_facts facts;
    pons_error err = PONS_ERROR_INIT;
    void *device;

    ck_assert_int_eq(cpu_operations.open(&settings, &device, &err), PONS_OK);
    cpu_operations.facts(device, &facts);
    /* A busy machine may slow a loop down in one round, but not in each. */
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

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, bench_lists_the_kernels_of_explain);
    tcase_add_test(c, kernel_rates_follow_from_time_bytes_and_operations);
    tcase_add_test(c, calls_are_counted_in_a_step);
    tcase_add_test(c, the_forward_bench_runs_the_network_on_windows);
    tcase_add_test(c, the_reduction_report_has_sizes_and_times);
    tcase_add_test(c, the_scaling_model_predicts_from_traced_sums);
    tcase_add_test(c, a_scaling_model_without_a_network_is_refused);
    tcase_add_test(c, processes_of_a_run_are_measured_together);
    tcase_add_test(c, all_distribute_modes_are_measured_in_turn);
    tcase_add_test(c, an_earlier_measurement_is_shown_with_its_ratio);
    tcase_add_test(c, kinds_of_the_earlier_measurement_are_listed_with_their_sum);
    tcase_add_test(c, different_conditions_of_the_baseline_are_reported);
    tcase_add_test(c, unused_kernels_are_not_listed);
    tcase_add_test(c, an_invalid_baseline_file_is_refused);
    tcase_add_test(c, a_device_without_peak_has_no_share_of_it);
    tcase_add_test(c, the_non_temporal_copy_copies_all_bytes);
    tcase_add_test(c, peak_loops_execute_the_operations_they_count);
    tcase_add_test(c, measured_peaks_are_plausible);
    return suite_run();
}
