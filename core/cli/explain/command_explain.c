/*
 * command_explain.c - pons explain: the kernels of a training step, or of a prediction, without
 * running it.
 */
#include <inttypes.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "base/system/memory_limit.h"
#include "base/text/text.h"
#include "bench/memory_estimate.h"
#include "cli/command.h"
#include "cli/explain/explain_kernels.h"
#include "cli/explain/explain_prediction.h"
#include "config/memory_hints.h"
#include "device/local_comm.h"
#include "graph/ir/build.h"
#include "graph/ir/print.h"
#include "graph/program/explain.h"
#include "report/page/network_levels.h"
#include "train/lr_schedule.h"
#include "train/trainer.h"

typedef struct explain_flags {
    bool json, dot, schedule, kernels;
} explain_flags;

static const pons_option flags[] = {
    PONS_FLAG(explain_flags, json, "no", "One JSON object on the standard output."),
    PONS_FLAG(explain_flags, dot, "no", "The graph of model and loss in the DOT language."),
    PONS_FLAG(explain_flags, schedule, "no", "The learning rate over the steps."),
    PONS_FLAG(explain_flags, kernels, "no", "Also each kernel of a step, with bytes, operations "
              "and the memory alive; --json has them anyway."),
    PONS_OPTIONS_END
};

typedef struct explained {
    experiment *experiment;
    storage *storage;
    program *training, *evaluation, *loss;
    local_comm *comm;
    program_facts facts;
    memory_estimate memory_estimate;
} explained;

/* ---- print ----------------------------------------------------------------------------------- */

static void put_name(const explained *x, int index)
{
    char text[512];

    program_kernel_name(x->training, index, text, sizeof text);
    json_put_text(stdout, text);
}

static void print_json(const explained *x)
{
    const memory_estimate *f = &x->memory_estimate;
    const struct { const char *name; double value; } numbers[] = {
        { "peak", f->peak }, { "arena", f->arena }, { "parameters", f->parameters },
        { "scratch", f->scratch }, { "libraries", f->libraries }, { "cache", f->cache },
        { "loader", f->loader }, { "sums", f->sums }
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        printf("%s\"%s\":%.0f", i > 0 ? "," : "{", numbers[i].name, numbers[i].value);
    printf(",\"training_cases\":%d,\"epoch_cases\":%d,\"replaced_cases\":%d",
           x->experiment->epoch.total, x->experiment->epoch.count, x->experiment->epoch.replaced);
    printf(",\"parameter_count\":%" PRId64 ",\"sum_of_tensors\":%zu,\"replicas\":%d,"
           "\"buckets\":%d,\"segments\":%d,\"kernels\":[", x->facts.parameter_count,
           x->facts.sum_of_tensors, x->experiment->replicas, x->facts.bucket_count,
           x->facts.captured_graph_count);
    for (int i = 0; i < x->facts.kernel_count; i++) {
        kernel_facts k = program_kernel(x->training, i);
        printf("%s\n{\"section\":\"%s\",\"kind\":\"%s\",\"name\":", i > 0 ? "," : "",
               explain_section_name(k.section), k.kind);
        put_name(x, i);
        printf(",\"implementation\":\"%s\",\"bytes\":%" PRIu64 ",\"flop\":%" PRIu64
               ",\"arena\":%zu,\"nodes\":%d}", k.implementation != NULL ? k.implementation : "",
               k.bytes, k.flop, k.arena, k.nodes);
    }
    puts("]}");
}

/* Print the network by the extents of its tensors. */
static pons_status print_levels(const experiment *e, pons_error *err)
{
    arena *memory = arena_new();
    network_levels l;
    char extent[64], bytes[32];

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the levels of the network");
    if (network_levels_find(e, memory, &l, err) == PONS_OK)
        printf("%-18s %12s %9s %11s %10s\n", "level of a patch", "convolutions", "channels",
               "parameters", "results");
    for (int i = 0; i < l.count; i++) {
        const network_level *x = &l.level[i];
        snprintf(extent, sizeof extent, "%" PRId64 " x %" PRId64 " x %" PRId64, x->extent[0],
                 x->extent[1], x->extent[2]);
        printf("%-18s %12d %9" PRId64 " %11" PRId64 " %10s\n", extent, x->products, x->channels,
               x->parameters, text_amount(x->bytes, "B", bytes));
    }
    arena_free(memory);
    return err->status;
}

static void print_table(const explained *x, bool kernels)
{
    const memory_estimate *f = &x->memory_estimate;
    const experiment *e = x->experiment;
    const struct { const char *name; double value; } parts[] = {
        { "parameters", f->parameters }, { "scratch", f->scratch },
        { "libraries", f->libraries }, { "cache", f->cache }, { "loader", f->loader },
        { "peak", f->peak }
    };
    uint64_t bytes = 0, flop = 0;
    double room = memory_limit_bytes();
    char a[32], b[32];

    if (kernels) {
        puts("");
        explain_print_kernels(x->training, &x->facts);
    }
    for (int i = 0; i < x->facts.kernel_count; i++) {
        kernel_facts k = program_kernel(x->training, i);
        bytes += k.bytes;
        flop += k.flop;
    }
    printf("\n%" PRId64 " parameters, %s, %d nodes in %d kernels, %s moved, %s a micro-batch\n",
           x->facts.parameter_count, precision_name(e->precision), x->facts.node_count,
           x->facts.kernel_count, text_amount((double)bytes, "B", a),
           text_amount((double)flop, "FLOP", b));
    printf("steps       %" PRId64 " of %d micro-batches\n", trainer_total_steps(e),
           e->micro_batches);
    const char *epoch = experiment_epoch_text(e, &e->epoch);
    if (epoch != NULL)
        printf("epoch       %s\n", epoch);
    if (e->replicas > 1)
        printf("replicas    %d, which add up a step in %d buckets\n", e->replicas,
               x->facts.bucket_count);
    if (x->facts.captured_graph_count > 0)
        printf("launches    %d a step, each of kernels that the device has recorded\n",
               x->facts.captured_graph_count);
    printf("arena       %10s (tensors without reuse: %s)\n", text_amount(f->arena, "B", a),
           text_amount((double)x->facts.sum_of_tensors, "B", b));
    if (f->sums > 0)
        printf("sums        %10s of a case's windows, which '%s' adds up\n",
               text_amount(f->sums, "B", a), e->device.facts.name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        printf("%-11s %10s\n", parts[i].name, text_amount(parts[i].value, "B", a));
    printf("memory      %10s that this process may have\n", text_amount(room, "B", a));
    if (room > 0 && f->peak > room)
        log_warning(e->log, "a peak of %s is more than the memory of this machine, %s",
                    text_amount(f->peak, "B", a), text_amount(room, "B", b));
    for (int i = 0; i < x->facts.untrained_count; i++)
        printf("not trained (no path from the loss): %s\n", program_untrained(x->training, i));
}

static void print_schedule(const experiment *e)
{
    int64_t total = trainer_total_steps(e), stride = total > 100 ? total / 100 : 1;

    printf("%10s  %s\n", "step", "rate");
    for (int64_t step = 0; step < total; step += stride)
        printf("%10" PRId64 "  %.9g\n", step, trainer_rate(e, step));
    if ((total - 1) % stride != 0)
        printf("%10" PRId64 "  %.9g\n", total - 1, trainer_rate(e, total - 1));
}

static pons_status print_dot(const experiment *e, pons_error *err)
{
    pons_graph *g = NULL;
    pons_node *loss = NULL;

    if (programs_graph_training(e, experiment_device_extracts(e), &g, &loss, err) != PONS_OK)
        return err->status;
    graph_print_dot(g, stdout);
    graph_free(g);
    return PONS_OK;
}

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status build(explained *x, pons_error *err)
{
    const experiment *e = x->experiment;
    const train_options *t = &e->sections.train;
    bool validates = e->data->validation_count > 0
                     && (t->validate_every > 0 || t->validate_steps > 0);
    program_seat place = { &e->device, NULL, experiment_device_extracts(e) };

    if (e->replicas > 1) {
        if (local_comm_new(e->replicas, &x->comm, err) != PONS_OK)
            return err->status;
        place.collective = local_comm_collective(x->comm, 0);
    }
    if (storage_new(&e->device, &x->storage, err) != PONS_OK
        || programs_build_training(e, &place, x->storage, &x->training, err) != PONS_OK)
        return err->status;
    if (validates && programs_build_evaluation(e, &e->device, x->storage, false, &x->evaluation,
                                               err) != PONS_OK)
        return err->status;
    if (validates && t->validate_loss
        && programs_build_loss(e, &e->device, x->storage, &x->loss, err) != PONS_OK)
        return err->status;
    program_describe(x->training, &x->facts);
    return memory_estimate_make(e, x->storage, x->training, x->evaluation, x->loss, 1,
                                &x->memory_estimate, err);
}

static pons_status explain(explained *x, const explain_flags *f, pons_error *err)
{
    if (f->dot)
        return print_dot(x->experiment, err);
    if (f->schedule) {
        print_schedule(x->experiment);
        return PONS_OK;
    }
    if (build(x, err) != PONS_OK)
        return err->status;
    if (f->json)
        print_json(x);
    else if (print_levels(x->experiment, err) == PONS_OK)
        print_table(x, f->kernels);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const explain_flags *f = given;
    explained x = { .experiment = NULL };
    experiment_overrides known = { 0 };
    config *c = NULL;

    if (f->json + f->dot + f->schedule + f->kernels > 1)
        return pons_fail(err, PONS_USAGE, "--json, --dot, --schedule and --kernels exclude each "
                         "other");
    if (folder_is_there(call->argument[0]) && (f->dot || f->schedule || f->kernels))
        return pons_fail(err, PONS_USAGE, "--dot, --schedule and --kernels are for FILE.ini, found "
                         "the folder '%s'", call->argument[0]);
    if (folder_is_there(call->argument[0]))
        return explain_prediction(call, f->json, err);
    if (call->argument_count > 1)
        return pons_fail(err, PONS_USAGE, "an image follows the folder of a run, found '%s'",
                         call->argument[0]);
    if (invocation_config(call, call->argument[0], &c, err) != PONS_OK)
        return err->status;
    if (experiment_open(c, EXPERIMENT_TRAIN, &known, call->log, &x.experiment, err) == PONS_OK) {
        dataset_log(x.experiment->data, call->log);
        explain(&x, f, err);
    }
    memory_hints_add(x.experiment != NULL ? &x.experiment->sections : NULL, MEMORY_HINTS_EXPLAIN,
                     err);
    program_free(x.evaluation);
    program_free(x.loss);
    program_free(x.training);
    if (x.storage != NULL)
        storage_free(x.storage);
    local_comm_free(x.comm);
    experiment_close(x.experiment);
    config_close(c);
    return err->status;
}

const command command_explain = {
    "explain", "a training step or a prediction and its memory, before it runs",
    "FILE.ini | RUN [IMAGE]", flags, sizeof(explain_flags), "", 1, 2, run
};
