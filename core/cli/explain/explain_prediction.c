/*
 * explain_prediction.c - open a trained network, and print its kernels, windows and memory.
 */
#include "cli/explain/explain_prediction.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file/json.h"
#include "base/text/text.h"
#include "bench/memory_estimate.h"
#include "cli/explain/explain_kernels.h"
#include "data/reader/volume_read.h"
#include "infer/predict.h"
#include "nnunet/nnunet_model.h"

typedef struct forecast {
    const invocation *call;
    arena *memory;
    int networks;             /* of an ensemble                                                   */
    predictor *predictor;     /* the first of them                                                */
    const experiment *experiment;
    program_facts facts;
    double flop;              /* of a batch of windows                                            */
    window_settings window;
    int passes;               /* flips of a window                                                */
    const char *image;        /* NULL: none is given                                              */
    volume_facts file;
    prediction_estimate estimate;
} forecast;

/* ---- print ----------------------------------------------------------------------------------- */

static const char *steps_text(const forecast *f)
{
    const pons_texts *steps = &f->experiment->sections.preprocess.steps;
    const char *text = "";

    for (int i = 0; i < steps->count; i++)
        text = arena_format(f->memory, "%s%s%s", text, i > 0 ? " " : "", steps->item[i]);
    return text;
}

static double window_flop(const forecast *f)
{
    return f->flop / f->window.batch * f->passes * f->networks;
}

static void print_sizes(const forecast *f)
{
    const prediction_estimate *m = &f->estimate;
    const struct { const char *name; double value; } parts[] = {
        { "arena", m->arena }, { "parameters", m->parameters }, { "scratch", m->scratch },
        { "libraries", m->libraries }, { "image", m->image }, { "planes", m->planes },
        { "sums", m->sums }, { "result", m->result }, { "peak", m->peak }
    };
    char amount[32];

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        printf("%-11s %10s\n", parts[i].name, text_amount(parts[i].value, "B", amount));
}

static void print_table(const forecast *f)
{
    const experiment *e = f->experiment;
    const int *w = f->window.extent;
    char amount[32];

    explain_print_kernels(predictor_replicas(f->predictor)->item[0].evaluation, &f->facts);
    printf("\n%s, %" PRId64 " parameters, %d network%s, %s\n", e->sections.model.plugin,
           f->facts.parameter_count, f->networks, text_plural(f->networks),
           precision_name(e->window_precision));
    printf("channels    %d, classes %d\n", e->task.channels, e->task.classes);
    printf("preprocess  %s\n", steps_text(f));
    printf("windows     %d x %d x %d, overlap %g, %d pass%s each, %s a window\n", w[0], w[1], w[2],
           f->window.overlap[0], f->passes * f->networks,
           f->passes * f->networks == 1 ? "" : "es", text_amount(window_flop(f), "FLOP", amount));
    if (f->image == NULL)
        return;
    printf("case        %" PRId64 " x %" PRId64 " x %" PRId64 ", preprocessed %" PRId64 " x %"
           PRId64 " x %" PRId64 " at most: %" PRId64 " window%s, %s\n", f->file.grid.extent[0],
           f->file.grid.extent[1], f->file.grid.extent[2], f->estimate.extent[0],
           f->estimate.extent[1], f->estimate.extent[2], f->estimate.windows,
           text_plural(f->estimate.windows),
           text_amount(window_flop(f) * (double)f->estimate.windows, "FLOP", amount));
    print_sizes(f);
}

static void print_json(const forecast *f)
{
    const prediction_estimate *m = &f->estimate;
    const int *w = f->window.extent;

    printf("{\"network\":");
    json_put_text(stdout, f->experiment->sections.model.plugin);
    printf(",\"parameter_count\":%" PRId64 ",\"networks\":%d,\"channels\":%d,\"classes\":%d,"
           "\"preprocess\":", f->facts.parameter_count, f->networks, f->experiment->task.channels,
           f->experiment->task.classes);
    json_put_text(stdout, steps_text(f));
    printf(",\"window\":[%d,%d,%d],\"overlap\":%g,\"passes\":%d,\"window_flop\":%.0f", w[0], w[1],
           w[2], f->window.overlap[0], f->passes * f->networks, window_flop(f));
    if (f->image != NULL)
        printf(",\"extent\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"windows\":%" PRId64
               ",\"arena\":%.0f,\"parameters\":%.0f,\"scratch\":%.0f,\"libraries\":%.0f,"
               "\"image\":%.0f,\"planes\":%.0f,\"sums\":%.0f,\"result\":%.0f,\"peak\":%.0f",
               m->extent[0], m->extent[1], m->extent[2], m->windows, m->arena, m->parameters,
               m->scratch, m->libraries, m->image, m->planes, m->sums, m->result, m->peak);
    puts("}");
}

/* ---- run ------------------------------------------------------------------------------------- */

/* The path of the first network; of nnU-Net's folder its first fold. */
static const char *first_network(forecast *f, const char *run, pons_error *err)
{
    nnunet_folds folds;

    f->networks = 1;
    if (!nnunet_is_model(run) || nnunet_folds_find(run, &folds, err) != PONS_OK)
        return run;
    f->networks = folds.count;
    return arena_format(f->memory, "%s/%s", run, folds.name[0]);
}

/* The first of the files of an image, which may be a list of channels "a.nii.gz,b.nii.gz". */
static const char *first_file(arena *memory, const char *image)
{
    size_t size = access(image, F_OK) == 0 ? strlen(image) : strcspn(image, ",");

    return arena_format(memory, "%.*s", (int)size, image);
}

static pons_status open_first(forecast *f, pons_error *err)
{
    const invocation *call = f->call;
    predict_source source = { .set_count = call->set_count, .set = call->set };

    source.run = first_network(f, call->argument[0], err);
    if (err->status != PONS_OK)
        return err->status;
    if (f->image != NULL && volume_read_facts(f->image, &f->file, err) != PONS_OK)
        return err->status;
    return predictor_open(&source, NULL, call->log, &f->predictor, err);
}

static void describe(forecast *f)
{
    const replicas *r = predictor_replicas(f->predictor);
    const program *p = r->item[0].evaluation;

    f->experiment = predictor_experiment(f->predictor);
    program_describe(p, &f->facts);
    for (int i = 0; i < f->facts.kernel_count; i++)
        f->flop += (double)program_kernel(p, i).flop;
    experiment_window_settings(f->experiment, &f->window);
    f->passes = 1 << f->experiment->sections.window.mirror.count;
    if (f->image != NULL)
        memory_estimate_prediction(r, f->networks, &f->file, &f->estimate);
}

pons_status explain_prediction(const invocation *call, bool json, pons_error *err)
{
    forecast f = { .call = call, .memory = arena_new() };

    if (f.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (call->argument_count > 1)
        f.image = first_file(f.memory, call->argument[1]);
    if (open_first(&f, err) == PONS_OK) {
        describe(&f);
        if (json)
            print_json(&f);
        else
            print_table(&f);
    }
    predictor_close(f.predictor, err);
    arena_free(f.memory);
    return err->status;
}
