/*
 * command_import.c - pons import: weights of PyTorch, MONAI and nnU-Net as a safetensors file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/text.h"
#include "checkpoint/weights/weights_convert.h"
#include "checkpoint/weights/weights_path.h"
#include "cli/command.h"
#include "cli/exchange/bundle_network.h"
#include "replica/programs.h"

typedef struct import_flags {
    const char *output, *config, *prefix;
    int64_t channels;
} import_flags;

static const pons_option flags[] = {
    PONS_TEXT(import_flags, output, NULL, "File of weights to write, OUT.safetensors."),
    PONS_TEXT(import_flags, config, NULL, "INI file with the [model] of the weights."),
    PONS_TEXT(import_flags, prefix, "", "Text in front of the names to take, as in net.; other "
              "tensors are ignored. Not given: one that all names of the network have."),
    PONS_INTEGER(import_flags, channels, "0", 0, BUNDLE_CHANNELS_MAX, "Channels of the images; 0: "
                 "the number of [data] image patterns, or that of a bundle, or 1."),
    PONS_OPTIONS_END
};

/* The things that the command opens. */
typedef struct imported {
    const invocation *call;
    const import_flags *flags;
    const char *weights;        /* a file                                                         */
    arena *memory;
    bundle_network bundle;      /* of a folder                                                    */
    config *config;
    experiment *experiment;
    storage *storage;
    program *network;
    weights_file file;
} imported;

static void tell_difference(void *context, const char *line)
{
    log_error(context, line);
}

/* Say which network the bundle names, in the words of an INI file. */
static void tell_network(const imported *x)
{
    const bundle_network *b = &x->bundle;
    const char *options = "";

    for (int i = 0; i < b->set_count; i++)
        options = arena_format(x->memory, "%s%s%s", options, i > 0 ? ", " : "",
                               strchr(b->set[i], '.') + 1);
    if (b->set_count > 0)
        log_line(x->call->log, "[model] of the bundle: %.1000s", options);
    else
        log_line(x->call->log, "[model] is that of %.1000s, since the bundle names %.200s",
                 x->flags->config, b->described != NULL ? b->described : "no network");
}

/* Find the file of weights in a folder; of a bundle also the network. */
static pons_status find_weights(imported *x, pons_error *err)
{
    const char *given = x->weights;
    char *file = NULL;

    if (weights_path_find(given, &file, err) != PONS_OK)
        return err->status;
    x->weights = arena_string(x->memory, file);
    free(file);
    if (folder_is_there(given) && bundle_network_is_there(given)
        && bundle_network_read(given, x->memory, &x->bundle, err) == PONS_OK)
        tell_network(x);
    return err->status;
}

/* The INI file with the bundle's network; --set wins. */
static pons_status open_config(imported *x, pons_error *err)
{
    const invocation *call = x->call;
    int count = x->bundle.set_count;
    const char **set = arena_alloc(x->memory, (size_t)(count + call->set_count + 1) * sizeof *set);

    for (int i = 0; i < count; i++)
        set[i] = x->bundle.set[i];
    for (int i = 0; i < call->set_count; i++)
        set[count + i] = call->set[i];
    return config_open(x->flags->config, count + call->set_count, set, &x->config, err);
}

static pons_status open_network(imported *x, pons_error *err)
{
    int channels = x->flags->channels > 0 ? (int)x->flags->channels : x->bundle.channels;
    experiment_overrides known = { .image_channels = channels };
    experiment *e;

    if (open_config(x, err) != PONS_OK
        || experiment_open(x->config, EXPERIMENT_PREDICT, &known, x->call->log, &x->experiment,
                           err) != PONS_OK)
        return err->status;
    e = x->experiment;
    if (storage_new(&e->device, &x->storage, err) == PONS_OK)
        programs_build_evaluation(e, &e->device, x->storage, false, &x->network, err);
    return err->status;
}

static pons_status convert(imported *x, pons_error *err)
{
    const char *prefix = x->flags->prefix;
    byte_progress progress = { .log = x->call->log, .verb = "writing",
                               .path = x->flags->output };
    const tensor_format format = {
        .progress = &progress, .flat = x->experiment->task.flat, .wide = x->experiment->device.wide,
        .prefix = prefix != NULL && prefix[0] != '\0' ? prefix : NULL
    };

    if (weights_file_open(x->weights, &x->file, err) != PONS_OK)
        return err->status;
    if (weights_convert(x->storage, &x->file, x->weights, &format, x->flags->output,
                        tell_difference, x->call->log, err) == PONS_OK)
        log_line(x->call->log, "%d tensors of '%.1000s' -> %.1000s",
                 storage_count(x->storage, STORAGE_PARAMETER)
                 + storage_count(x->storage, STORAGE_STATE), x->weights, x->flags->output);
    return err->status;
}

static pons_status check_output(const imported *x, pons_error *err)
{
    if (!text_ends_with(x->flags->output, ".safetensors"))
        return pons_fail(err, PONS_USAGE, "-o '%s': expected a file .safetensors",
                         x->flags->output);
    if (file_is(x->weights, x->flags->output))
        return pons_fail(err, PONS_USAGE, "-o '%s' is the file that is read", x->flags->output);
    return PONS_OK;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    imported x = { .call = call, .flags = given, .weights = call->argument[0],
                   .memory = arena_new() };

    if (x.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (find_weights(&x, err) == PONS_OK && check_output(&x, err) == PONS_OK
        && open_network(&x, err) == PONS_OK)
        convert(&x, err);
    weights_file_close(&x.file);
    program_free(x.network);
    storage_free(x.storage);
    experiment_close(x.experiment);
    config_close(x.config);
    arena_free(x.memory);
    return err->status;
}

const command command_import = {
    "import", "weights of PyTorch, MONAI and nnU-Net as a file of pons",
    "WEIGHTS -o OUT.safetensors --config FILE.ini", flags, sizeof(import_flags), "o=output", 1, 1,
    run
};
