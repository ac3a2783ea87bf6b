/*
 * predict_networks.c - the networks that RUN names, and the first stage of a cascade.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/predict/predict_internal.h"
#include "nnunet/nnunet_model.h"

static predict_source source_of(const predict_job *j)
{
    const invocation *call = j->call;
    int set_count = call->set_count;
    const char **set = arena_alloc(j->memory, ((size_t)set_count + 1) * sizeof *set);

    if (set_count > 0)
        memcpy(set, call->set, (size_t)set_count * sizeof *set);
    if (j->flags->no_mirror)
        set[set_count++] = "window.mirror=";
    return (predict_source){
        .run = call->argument[0],
        .config = j->flags->config != NULL && j->flags->config[0] != '\0' ? j->flags->config : NULL,
        .set_count = set_count, .set = set,
        .image_channels = predict_count_channels(call->argument[1]), .any = j->flags->any
    };
}

/* Open the networks that source->run names, those of the first stage on the second's devices. */
static pons_status open_networks(predict_job *j, predict_source *source, pons_error *err)
{
    predict_folds folds = { j->flags->fold, j->flags->folds, j->memory, "" };

    predict_members_open(source, &folds, j->beside, j->call->log, j->member, &j->member_count, err);
    j->nnunet_folds = folds.opened;
    return err->status;
}

/* Open the network of 'source' a second time, with its dropout, if --passes asks for samples. */
static pons_status open_dropped(predict_job *j, predict_source *source, pons_error *err)
{
    if (j->flags->passes == 0)
        return PONS_OK;
    if (!j->flags->uncertainty)
        return pons_fail(err, PONS_USAGE, "--passes is for --uncertainty");
    if (j->member_count > 1)
        return pons_fail(err, PONS_USAGE, "--passes samples the dropout of one network, found %d",
                         j->member_count);
    source->dropout = true;
    return predictor_open(source, j->member[0], j->call->log, &j->dropped, err);
}

pons_status predict_open_networks(predict_job *j, pons_error *err)
{
    predict_source source = source_of(j);

    return open_networks(j, &source, err) == PONS_OK ? open_dropped(j, &source, err) : err->status;
}

void predict_close_networks(predict_job *j, const pons_error *err)
{
    predictor_close(j->dropped, err);
    while (j->member_count-- > 0)
        predictor_close(j->member[j->member_count], err);
}

/* ---- the first stage of a cascade ----------------------------------------------------------- */

/*
 * The model folder that a configuration has beside RUN, "TRAINER__PLANS__CONFIGURATION", or NULL.
 */
static const char *folder_beside(const predict_job *j, const char *configuration)
{
    char *path = realpath(j->call->argument[0], NULL), *mark = NULL;
    const char *out = NULL;

    if (path != NULL && nnunet_is_fold(path))
        *strrchr(path, '/') = '\0';
    for (char *next = path; next != NULL && (next = strstr(next, "__")) != NULL; next += 2)
        mark = next;
    if (mark != NULL && strchr(mark, '/') == NULL)
        out = arena_format(j->memory, "%.*s__%s", (int)(mark - path), path, configuration);
    free(path);
    return out;
}

/* Open the model of the first stage on the devices of the second. */
static pons_status open_first_stage(predict_job *j, const char *model, pons_error *err)
{
    predict_flags *flags = arena_alloc(j->memory, sizeof *flags);
    predict_job *first = arena_alloc(j->memory, sizeof *first);

    *flags = *j->flags;
    flags->logits = flags->probabilities = flags->uncertainty = false;
    flags->passes = 0;
    *first = *j;
    first->flags = flags;
    first->stage = predictor_previous(j->member[0]);
    first->member_count = 0;
    first->dropped = NULL;
    first->postprocess.count = 0;
    first->beside = j->member[0];
    j->first = first;
    predict_source source = source_of(first);
    source.run = model;
    if (open_networks(first, &source, err) != PONS_OK)
        return err->status;
    if (predictor_previous(first->member[0]) == NULL
        && predictor_image_channels(first->member[0]) == predictor_image_channels(j->member[0]))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "'%s' is not the first stage of a cascade of %d channels",
                     model, predictor_image_channels(j->member[0]));
}

pons_status predict_find_first_stage(predict_job *j, pons_error *err)
{
    const char *stage = predictor_previous(j->member[0]), *given = j->flags->previous;
    const char *path = given != NULL && given[0] != '\0' ? given : NULL;

    if (stage == NULL)
        return path == NULL ? PONS_OK
               : pons_fail(err, PONS_USAGE, "--previous '%s' is for the second stage of a cascade, "
                           "found another network", path);
    if (path == NULL)
        path = folder_beside(j, stage);
    if (path != NULL && (nnunet_is_model(path) || nnunet_is_fold(path)))
        return open_first_stage(j, path, err);
    if (given == NULL || given[0] == '\0')
        return pons_fail(err, PONS_CONFIG, "'%s' is the second stage of a cascade, and '%s' is no "
                         "model folder of its first, '%s'\nhint: --previous FOLDER names one, or "
                         "the labels that it predicted", j->call->argument[0],
                         path != NULL ? path : "", stage);
    return predict_find_previous(j->memory, path, j->case_count, j->cases, err);
}

pons_status predict_first_stage(predict_job *j, pons_error *err)
{
    predict_job *first = j->first;

    if (first == NULL)
        return PONS_OK;
    for (int i = 0; i < j->case_count; i++)
        j->cases[i].previous = predict_path_of(first, i);
    return predict_volumes(first, err);
}
