/*
 * command_export.c - pons export: a trained network for other programs.
 */
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "cli/command.h"
#include "onnx/onnx_export.h"


#include <pons/pons.h>

typedef struct export_flags {
    const char *output, *config;
    bool probabilities, fixed;
} export_flags;

static const pons_option flags[] = {
    PONS_TEXT(export_flags, output, NULL, "File to write, MODEL.onnx."),
    PONS_TEXT(export_flags, config, "", "INI file for a bare weights file."),
    PONS_FLAG(export_flags, probabilities, "no",
              "The output has probabilities in place of logits."),
    PONS_FLAG(export_flags, fixed, "no",
              "Extents of the model are those of [window] extent and batch 1, not free."),
    PONS_OPTIONS_END
};

/* Say which extents the model accepts. */
static void tell(const invocation *call, const export_flags *f, const onnx_freedom *free)
{
    static const char *const axes[] = { "N", "D", "H", "W" };
    char text[256] = "", one[64];

    for (int a = 0; a < 4; a++) {
        if (free->step[a] == 0 && free->extent[a] == 1 && a == 1)
            continue; /* a 2D network */
        if (free->step[a] == 0)
            snprintf(one, sizeof one, "%lld", (long long)free->extent[a]);
        else if (free->step[a] == 1)
            snprintf(one, sizeof one, "any");
        else
            snprintf(one, sizeof one, "%s %lld",
                     free->extent[a] % free->step[a] == 0 ? "multiples of"
                     : "as the window and multiples of", (long long)free->step[a]);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s",
                 a > 0 ? ", " : "", axes[a], one);
    }
    log_line(call->log, "wrote '%s'; extents: %s", f->output, text);
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const export_flags *f = given;
    predict_source source = { .run = call->argument[0],
                              .config = f->config,
                              .set_count = call->set_count, .set = call->set };
    predictor *network = NULL;
    onnx_freedom free;

    if (predictor_open(&source, NULL, call->log, &network, err) != PONS_OK)
        return err->status;
    onnx_request request = { .network = network, .probabilities = f->probabilities,
                             .fixed = f->fixed, .version = pons_version() };
    if (onnx_export(&request, f->output, &free, err) == PONS_OK)
        tell(call, f, &free);
    predictor_close(network, err);
    return err->status;
}

const command command_export = {
    "export", "a trained network as an ONNX model", "RUN -o MODEL.onnx", flags,
    sizeof(export_flags), "o=output", 1, 1, run
};
