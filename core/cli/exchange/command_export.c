/*
 * command_export.c - pons export: a trained network for other programs.
 */
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "cli/command.h"
#include "cli/exchange/export_bundle.h"
#include "cli/exchange/export_nnunet.h"
#include "onnx/onnx_export.h"

#include <pons/pons.h>

typedef struct export_flags {
    const char *output, *bundle, *nnunet, *config;
    bool probabilities, fixed;
} export_flags;

static const pons_option flags[] = {
    PONS_TEXT(export_flags, output, "", "File to write, MODEL.onnx."),
    PONS_TEXT(export_flags, bundle, "", "Folder to write, a bundle for MONAI."),
    PONS_TEXT(export_flags, nnunet, "", "Folder to write for nnUNetv2_predict."),
    PONS_TEXT(export_flags, config, "", "INI file for a bare weights file."),
    PONS_FLAG(export_flags, probabilities, "no",
              "The output has probabilities in place of logits."),
    PONS_FLAG(export_flags, fixed, "no",
              "Extents of the model are those of [window] extent and batch 1, not free."),
    PONS_OPTIONS_END
};

/* Describe the extents that the model accepts along an axis. */
static void describe(const onnx_freedom *free, int a, char *text, size_t size)
{
    long long extent = free->extent[a], step = free->step[a], smallest = free->smallest[a];

    if (step == 0)
        snprintf(text, size, "%lld", extent);
    else if (step == 1)
        snprintf(text, size, smallest == 1 ? "any" : "any from %lld", smallest);
    else if (extent % step == 0)
        snprintf(text, size, smallest == step ? "multiples of %lld" : "multiples of %lld from %lld",
                 step, smallest);
    else
        snprintf(text, size, "%lld and multiples of %lld more", smallest, step);
}

static void tell(const invocation *call, const export_flags *f, const predictor *network,
                 const onnx_freedom *free)
{
    static const char *const axes[] = { "N", "D", "H", "W" };
    const int *window = predictor_experiment(network)->window;
    char text[512] = "", one[96];
    bool below = false;

    for (int a = 0; a < 4; a++) {
        below = below || (a > 0 && free->step[a] > 0 && window[a - 1] < free->smallest[a]);
        if (free->step[a] == 0 && free->extent[a] == 1 && a == 1)
            continue; /* a 2D network */
        describe(free, a, one, sizeof one);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s", a > 0 ? ", " : "",
                 axes[a], one);
    }
    log_line(call->log, "wrote '%s'; extents: %s", f->output, text);
    if (below)
        log_line(call->log, "the window's %d x %d x %d is smaller, and has a graph of its own: "
                 "--fixed writes that", window[0], window[1], window[2]);
}

static pons_status export_model(const invocation *call, const export_flags *f,
                                const predictor *network, pons_error *err)
{
    onnx_request request = { .network = network, .probabilities = f->probabilities,
                             .fixed = f->fixed, .version = pons_version() };
    onnx_freedom free;

    if (folder_make_for(f->output, err) == PONS_OK
        && onnx_export(&request, f->output, &free, err) == PONS_OK)
        tell(call, f, network, &free);
    return err->status;
}

static pons_status export_folder(const invocation *call, const export_flags *f,
                                 const predictor *network, pons_error *err)
{
    if (f->bundle != NULL && export_bundle(network, pons_version(), f->bundle, err) == PONS_OK)
        log_line(call->log, "wrote '%s', a bundle of MONAI", f->bundle);
    else if (f->nnunet != NULL && export_nnunet(network, f->nnunet, err) == PONS_OK)
        log_line(call->log, "wrote '%s', a model folder of nnU-Net", f->nnunet);
    return err->status;
}

/* Refuse a call without exactly one output, or with an option of another one. */
static pons_status check_outputs(const export_flags *f, pons_error *err)
{
    int count = (f->output != NULL) + (f->bundle != NULL) + (f->nnunet != NULL);

    if (count != 1)
        return pons_fail(err, PONS_USAGE, "expected one output: -o MODEL.onnx, --bundle DIR or "
                         "--nnunet DIR");
    if (f->output == NULL && (f->probabilities || f->fixed))
        return pons_fail(err, PONS_USAGE, "--%s is for -o MODEL.onnx",
                         f->fixed ? "fixed" : "probabilities");
    if (f->output != NULL
        && (strlen(f->output) < 6 || strcmp(f->output + strlen(f->output) - 5, ".onnx") != 0))
        return pons_fail(err, PONS_USAGE, "'--output' is '%s', expected a file that ends in .onnx",
                         f->output);
    return PONS_OK;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const export_flags *f = given;
    predict_source source = { .run = call->argument[0],
                              .config = f->config,
                              .set_count = call->set_count, .set = call->set };
    predictor *network = NULL;

    if (check_outputs(f, err) != PONS_OK
        || predictor_open(&source, NULL, call->log, &network, err) != PONS_OK)
        return err->status;
    if (f->output != NULL)
        export_model(call, f, network, err);
    else
        export_folder(call, f, network, err);
    predictor_close(network, err);
    return err->status;
}

const command command_export = {
    "export", "a trained network for ONNX, MONAI or nnU-Net",
    "RUN -o MODEL.onnx | --bundle DIR | --nnunet DIR", flags,
    sizeof(export_flags), "o=output", 1, 1, run
};
