/*
 * command_bench.c - pons bench: seconds per optimizer step without and with data, or per batch of
 * windows.
 *
 * It can also time each kernel, compare with a baseline, and predict the step on more devices.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "cli/bench/bench_data.h"
#include "cli/bench/bench_experiment.h"
#include "cli/bench/bench_kernels.h"
#include "cli/bench/bench_model.h"
#include "cli/bench/bench_modes.h"
#include "cli/command.h"
#include "experiment/tuning.h"
#include "report/run_folder.h"

typedef struct bench_flags {
    bool json, reference, no_data, data, kernels, forward, model, modes;
    int64_t steps, warm_up;
    double latency, bandwidth;
    const char *baseline;
} bench_flags;

static const pons_option flags[] = {
    PONS_FLAG(bench_flags, json, "no", "One JSON object on the standard output."),
    PONS_INTEGER(bench_flags, steps, "10", 1, MEASURE_STEPS_MAX, "Steps that are measured."),
    PONS_INTEGER(bench_flags, warm_up, "3", 0, 1000, "Steps before, that are not."),
    PONS_FLAG(bench_flags, kernels, "no",
              "Also each kernel, beside a copy and a loop of products."),
    PONS_FLAG(bench_flags, forward, "no", "The network on a batch of windows instead of a step."),
    PONS_TEXT(bench_flags, baseline, "", "An earlier --json, to be shown with the ratio to it."),
    PONS_FLAG(bench_flags, no_data, "no", "Leave out the measurement with data."),
    PONS_FLAG(bench_flags, data, "no",
              "Measure reading, preprocessing and patches alone, in several rounds; --steps counts "
              "the micro-batches of a round."),
    PONS_FLAG(bench_flags, modes, "no", "Each mode with 1, 2, 4 and so on devices, up to the "
              "machine's processors, or the GPUs of [distribute] devices; with --json an array."),
    PONS_FLAG(bench_flags, model, "no",
              "Also the efficiency that 8, 64 and 512 devices would have, from the step's sums "
              "over replicas and --latency and --bandwidth, or as measured between processes."),
    PONS_REAL(bench_flags, latency, "0", 0, 1e3,
              "Seconds of a message without content, for --model."),
    PONS_REAL(bench_flags, bandwidth, "0", 0, 1e15,
              "Bytes per second of a device's link in each direction, for --model."),
    PONS_FLAG(bench_flags, reference, "no", "Measure also where a kernel is the plain reference."),
    PONS_OPTIONS_END
};

enum { BASELINE_SIZE = 16 << 20 };

static const char *const section_names[4] = { "begin", "micro", "reduce", "update" };

static double smallest(const measured *m)
{
    double least = INFINITY;

    for (int i = 0; i < m->count; i++)
        least = fmin(least, m->step[i]);
    return least;
}

/* The network of --model, as given or else as measured; NULL without --model. */
static const scaling_model_network *network_of(const experiment *e, const bench_flags *f,
                                               const measured *m, scaling_model_network *out)
{
    *out = (scaling_model_network){ f->latency, f->bandwidth,
                                    e->sections.experiment.deterministic };
    if (f->bandwidth <= 0)
        *out = m->sums.network;
    return f->model ? out : NULL;
}

/* The precision of the program that is measured. */
static const char *bench_precision(const experiment *e, const bench_flags *f)
{
    return precision_name(f->forward ? e->window_precision : e->precision);
}

static pons_status print_json(const experiment *e, const bench_flags *f, const measured *m,
                              const json_t *before, pons_error *err)
{
    scaling_model_network network;
    double median = measure_median(m->count, m->step);
    double then = bench_before(before, "step_seconds", "median");

    fputs("{\"processor\":", stdout);
    json_put_text(stdout, e->device.facts.name);
    printf(",\"precision\":\"%s\",\"threads\":%d,\"program\":\"%s\",\"step_seconds\":{\"median\":",
           bench_precision(e, f), e->device.facts.threads,
           f->forward ? "forward" : "training");
    json_put_number(stdout, median);
    fputs(",\"min\":", stdout);
    json_put_number(stdout, smallest(m));
    if (before != NULL) {
        fputs(",\"before\":", stdout);
        json_put_number(stdout, then);
        fputs(",\"ratio\":", stdout);
        json_put_number(stdout, then / median);
    }
    fputs(",\"all\":[", stdout);
    for (int i = 0; i < m->count; i++) {
        fputs(i > 0 ? "," : "", stdout);
        json_put_number(stdout, m->step[i]);
    }
    fputs("]},\"processor_seconds\":", stdout);
    json_put_number(stdout, m->processor);
    fputs(",\"phases\":{", stdout);
    for (int i = 0; i < 4; i++) {
        printf("%s\"%s\":", i > 0 ? "," : "", section_names[i]);
        json_put_number(stdout, m->section[i]);
    }
    fputs("},\"with_data_seconds\":", stdout);
    json_put_number(stdout, m->with_data);
    printf(",\"peak\":%" PRIu64 ",\"mode\":\"%s\",\"replicas\":%d,\"micro_batches\":%d", m->peak,
           experiment_mode(e), e->replicas, e->micro_batches);
    if (bench_model_json(e, m, network_of(e, f, m, &network), err) != PONS_OK)
        return err->status;
    if (f->kernels)
        bench_kernels_json(m, !e->device.facts.host_memory, before);
    puts("}");
    return PONS_OK;
}

static pons_status print_table(const experiment *e, const bench_flags *f, const measured *m,
                               const json_t *before, pons_error *err)
{
    scaling_model_network network;
    double median = measure_median(m->count, m->step);
    double then = bench_before(before, "step_seconds", "median");

    printf("processor   %s\nprecision   %s, %d thread%s\n", e->device.facts.name,
           bench_precision(e, f), e->device.facts.threads,
           e->device.facts.threads == 1 ? "" : "s");
    if (e->replicas > 1)
        printf("mode        %s, %d replicas\n", experiment_mode(e), e->replicas);
    if (f->forward)
        printf("forward     %.4f s for %d windows of %d x %d x %d", median,
               (int)e->sections.window.batch, e->window[0], e->window[1], e->window[2]);
    else
        printf("step        %.4f s", median);
    printf(" (median of %d after %d more, least %.4f s)\n", m->count, (int)f->warm_up, smallest(m));
    if (isfinite(then))
        printf("before      %.4f s, %.2f times as long\n", then, then / median);
    for (int i = 0; i < 4 && !f->forward; i++)
        printf("  %-9s %.4f s\n", section_names[i], m->section[i]);
    if (isfinite(m->with_data))
        printf("with data   %.4f s\n", m->with_data);
    printf("peak        %.1f MB\n", 1e-6 * (double)m->peak);
    if (bench_model_table(e, m, network_of(e, f, m, &network), err) != PONS_OK)
        return err->status;
    if (f->kernels)
        bench_kernels_table(m, before);
    return PONS_OK;
}

static pons_status check_form(const char *path, const json_t *root, pons_error *err)
{
    const char *lack = NULL;

    if (isnan(bench_before(root, "step_seconds", "median")))
        lack = "no number 'median' in 'step_seconds'";
    else if (!bench_kernels_timed(root))
        lack = "not all of 'kernels' have a number 'seconds'";
    if (lack != NULL)
        return pons_fail(err, PONS_USAGE, "'%s': not what 'pons bench --json' writes: %s", path,
                         lack);
    return PONS_OK;
}

static pons_status read_baseline(const char *path, json_t **out, pons_error *err)
{
    char *text = NULL;
    size_t size = 0;

    if (path == NULL || path[0] == '\0')
        return PONS_OK;
    if (file_read(path, BASELINE_SIZE, &text, &size, PONS_USAGE, err) != PONS_OK)
        return err->status;
    if (json_parse(text, size, path, PONS_USAGE, out, err) == PONS_OK)
        check_form(path, *out, err);
    free(text);
    return err->status;
}

/* Refuse flags of different measurements together. */
static pons_status check_measurement(const bench_flags *f, pons_error *err)
{
    const bool compared = f->baseline != NULL && f->baseline[0] != '\0';
    const struct { bool given, of_modes; const char *name; } other[] = {
        { f->data, false, "data" }, { f->forward, false, "forward" },
        { f->kernels, false, "kernels" }, { compared, false, "baseline" },
        { f->no_data, true, "no-data" }, { f->reference, true, "reference" }
    };

    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        if (f->modes && other[i].given && !other[i].of_modes)
            return pons_fail(err, PONS_USAGE, "'--modes' measures steps alone: no '--%s' with it",
                             other[i].name);
        if (f->data && other[i].given && i > 0)
            return pons_fail(err, PONS_USAGE, "'--data' measures reading, preprocessing and "
                             "patches alone: no '--%s' with it", other[i].name);
    }
    return PONS_OK;
}

static pons_status check_flags(const bench_flags *f, pons_error *err)
{
    if (check_measurement(f, err) != PONS_OK)
        return err->status;
    if (f->model && (f->data || f->forward))
        return pons_fail(err, PONS_USAGE, "'--model' is about training steps: '--%s' has none",
                         f->data ? "data" : "forward");
    if (f->model && (f->latency > 0) != (f->bandwidth > 0))
        return pons_fail(err, PONS_USAGE, "'--model' needs '--%s' beside '--%s'",
                         f->latency > 0 ? "bandwidth" : "latency",
                         f->latency > 0 ? "latency" : "bandwidth");
    if (!f->model && (f->latency > 0 || f->bandwidth > 0))
        return pons_fail(err, PONS_USAGE, "'--%s' needs '--model'",
                         f->latency > 0 ? "latency" : "bandwidth");
    return PONS_OK;
}

static pons_status refuse_network(const char *why, pons_error *err)
{
    return pons_fail(err, PONS_USAGE, "'--model' needs the network's --latency and --bandwidth: "
                     "%s\nhint: --latency 2e-5 --bandwidth 1.2e9 is 10 Gbit/s Ethernet", why);
}

/* Refuse --model for synchronised statistics on one replica, which does not sum any. */
static pons_status check_model(const experiment *e, const bench_flags *f, pons_error *err)
{
    if (e->replicas == 1 && (e->sections.distribute.sync_batchnorm || e->sections.loss.sync))
        return pons_fail(err, PONS_CONFIG, "'--model' of a step that joins statistics or losses "
                         "must be measured on several replicas, found one device\nhint: --set "
                         "distribute.devices=cpu:0,cpu:1");
    if (f->bandwidth <= 0 && e->device_count == e->replicas)
        return refuse_network("within one process there is none to be measured", err);
    return PONS_OK;
}

/* The text of a key. An integer is written into 'number'. */
static const char *text_in(const json_t *object, const char *key, char *number, size_t size)
{
    const json_t *v = json_object_get(object, key);

    if (!json_is_integer(v))
        return json_string_value(v);
    snprintf(number, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    return number;
}

/* Refuse a baseline of another program. Warn of other conditions. */
static pons_status check_baseline(const experiment *e, const bench_flags *f,
                                  const json_t *before, logger *l, pons_error *err)
{
    const char *program = f->forward ? "forward" : "training", *then;
    char threads[16], number[32];
    const struct { const char *key, *now; } facts[] = {
        { "processor", e->device.facts.name }, { "precision", bench_precision(e, f) },
        { "threads", threads }, { "mode", experiment_mode(e) }
    };

    snprintf(threads, sizeof threads, "%d", e->device.facts.threads);
    then = text_in(before, "program", number, sizeof number);
    if (then != NULL && strcmp(then, program) != 0)
        return pons_fail(err, PONS_USAGE, "'%s': a measurement of the %s program, expected "
                         "%s", f->baseline, then, program);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        then = text_in(before, facts[i].key, number, sizeof number);
        if (then != NULL && strcmp(then, facts[i].now) != 0 && e->first == 0)
            log_warning(l, "'%s' was measured with %s %s, now %s", f->baseline, facts[i].key, then,
                        facts[i].now);
    }
    return PONS_OK;
}

static pons_status bench(experiment *e, const bench_flags *f, const json_t *before,
                         logger *l, pons_error *err)
{
    const measure_settings settings = {
        .warm_up = (int)f->warm_up, .steps = (int)f->steps, .forward = f->forward,
        .reference = f->reference, .data = !f->no_data, .kernels = f->kernels, .trace = f->model
    };
    measured m;

    if ((f->model && check_model(e, f, err) != PONS_OK)
        || (before != NULL && check_baseline(e, f, before, l, err) != PONS_OK))
        return err->status;
    if (measure_steps(e, &settings, &m, err) == PONS_OK && f->model && f->bandwidth <= 0
        && m.sums.network.bandwidth <= 0)
        refuse_network("what was measured is none", err);
    if (err->status == PONS_OK && e->first == 0)
        (f->json ? print_json : print_table)(e, f, &m, before, err);
    if (err->status == PONS_OK && e->first == 0 && f->kernels)
        bench_kernels_warn(&m, f->baseline, before, l);
    measured_clear(&m);
    return err->status;
}

/* Run this command line without --modes for each measurement. */
static pons_status bench_each_mode(const invocation *call, const bench_flags *f, config *c,
                                   pons_error *err)
{
    char steps[32], warm_up[32], latency[48], bandwidth[48];
    const char **word = calloc(2 * (size_t)call->set_count + 16, sizeof *word);
    sections s;
    int n = 0;

    if (word == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    snprintf(steps, sizeof steps, "--steps=%d", (int)f->steps);
    snprintf(warm_up, sizeof warm_up, "--warm-up=%d", (int)f->warm_up);
    snprintf(latency, sizeof latency, "--latency=%.17g", f->latency);
    snprintf(bandwidth, sizeof bandwidth, "--bandwidth=%.17g", f->bandwidth);
    const struct { bool given; const char *word; } all[] = {
        { true, "bench" }, { true, "--json" }, { true, steps }, { true, warm_up },
        { f->no_data, "--no-data" }, { f->reference, "--reference" }, { f->model, "--model" },
        { f->model, latency }, { f->model, bandwidth }
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].given)
            word[n++] = all[i].word;
    for (int i = 0; i < call->set_count; i++) {
        word[n++] = "--set";
        word[n++] = call->set[i];
    }
    word[n++] = call->argument[0];
    if (sections_fill(c, &s, err) == PONS_OK)
        bench_modes(word, &s, f->json, call->log, err);
    free(word);
    return err->status;
}

/* Read the autotune entries of the file's run, so that nothing is timed again. */
static pons_status read_choices(const experiment *e, logger *l, pons_error *err)
{
    const experiment_options *options = &e->sections.experiment;
    run_folder run;

    if (options->name == NULL || options->name[0] == '\0')
        return PONS_OK;
    if (run_folder_name(options->output, options->name, &run, err) != PONS_OK)
        return err->status;
    tuning_read(e->tuning, run.path, err);
    run_folder_close(&run, l);
    return err->status;
}

typedef struct bench_request {
    const bench_flags *flags;
    const json_t *before;     /* the baseline, or NULL                                            */
} bench_request;

static pons_status bench_steps(void *context, experiment *e, pons_error *err)
{
    const bench_request *r = context;

    if (read_choices(e, e->log, err) != PONS_OK)
        return err->status;
    return bench(e, r->flags, r->before, e->log, err);
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const bench_flags *f = given;
    json_t *before = NULL;
    config *c = NULL;

    if (check_flags(f, err) == PONS_OK && read_baseline(f->baseline, &before, err) == PONS_OK
        && invocation_config(call, call->argument[0], &c, err) == PONS_OK) {
        if (f->modes)
            bench_each_mode(call, f, c, err);
        else if (f->data)
            bench_data(c, (int)f->warm_up, (int)f->steps, f->json, call->log, err);
        else
            bench_experiment_run(call, c, bench_steps, &(bench_request){ f, before }, err);
    }
    config_close(c);
    json_decref(before);
    return err->status;
}

const command command_bench = {
    "bench", "seconds per optimizer step, and of each kernel", "FILE.ini", flags,
    sizeof(bench_flags), "", 1, 1, run
};
