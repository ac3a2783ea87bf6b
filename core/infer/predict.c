/*
 * predict.c - find weights and configuration of a trained network, and open it on devices.
 */
#include "infer/infer_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/weights/weights_file.h"
#include "config/memory_hints.h"
#include "experiment/agreement.h"
#include "experiment/resolved.h"
#include "experiment/resume.h"
#include "experiment/run_identity.h"
#include "experiment/tuning.h"
#include "nnunet/nnunet_model.h"

/* ---- weights and configuration --------------------------------------------------------------- */

typedef struct found_weights {
    char *weights;            /* safetensors file                                                 */
    char *config;
    char *checkpoint;         /* NULL: a weights file alone                                       */
    char *run;                /* folder of the run; NULL: weights without a run                   */
    nnunet_model *nnunet;     /* in place of weights and configuration; NULL: none                */
} found_weights;

/* Find the best checkpoint; --any allows another one if it is damaged. */
static pons_status find_checkpoint(const predict_source *s, logger *l, char **out, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    char *folder = NULL;

    if (asprintf(&folder, "%s/checkpoints", s->run) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if ((s->any ? checkpoint_any(folder, "best", l, out, &problem)
         : checkpoint_marked(folder, "best", out, &problem)) != PONS_OK)
        pons_fail(err, problem.status, "%s%s", problem.text, problem.status != PONS_DATA || s->any
                  ? "" : "\nhint: --any takes another checkpoint of the run");
    else if (*out == NULL)
        pons_fail(err, PONS_CONFIG, "'%s' holds no checkpoint yet", s->run);
    free(folder);
    return err->status;
}

static pons_status refuse_missing_resolved(const char *path, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "cannot open '%s': %s\nhint: put it back, or pons predict "
                     "--config FILE.ini takes the file that the run was trained by, with [data] "
                     "labels", path, strerror(errno));
}

/* The folds of a model of nnU-Net are networks of their own; one that is alone is the model's. */
static pons_status open_only_fold(const char *model, found_weights *out, pons_error *err)
{
    nnunet_folds folds;
    char *fold = NULL;

    if (nnunet_folds_find(model, &folds, err) != PONS_OK)
        return err->status;
    if (folds.count > 1)
        return pons_fail(err, PONS_CONFIG, "'%s' holds folds, expected one of them, as '%s/%s'",
                         model, model, folds.name[0]);
    if (asprintf(&fold, "%s/%s", model, folds.name[0]) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    nnunet_model_open(fold, &out->nnunet, err);
    free(fold);
    return err->status;
}

static pons_status find_in_folder(const predict_source *s, logger *l, found_weights *out,
                                  pons_error *err)
{
    bool run = folder_holds(s->run, "checkpoints");
    bool checkpoint = folder_holds(s->run, "manifest.json");

    if (!run && !checkpoint && nnunet_refuse_part(s->run, err) != PONS_OK)
        return err->status;
    if (!run && !checkpoint)
        return pons_fail(err, PONS_CONFIG, "'%s' is neither a run folder (with checkpoints) nor a "
                         "checkpoint (with manifest.json)", s->run);
    if (asprintf(&out->run, "%s%s", s->run, checkpoint ? "/../.." : "") < 0
        || asprintf(&out->config, "%s/resolved.ini", out->run) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (access(out->config, F_OK) != 0) {
        if (s->config == NULL)
            return refuse_missing_resolved(out->config, err);
        free(out->run);
        out->run = NULL;
    }
    if (checkpoint) {
        if (checkpoint_verify(s->run, err) == PONS_OK)
            out->checkpoint = strdup(s->run);
        return err->status;
    }
    return find_checkpoint(s, l, &out->checkpoint, err);
}

static pons_status refuse_absent(const char *run, pons_error *err)
{
    if (folder_holds("runs", run))
        return pons_fail(err, PONS_CONFIG, "there is no run, checkpoint or weights file '%s'\n"
                         "hint: a run is named by its folder, runs/%.1000s", run, run);
    return pons_fail(err, PONS_CONFIG, "there is no run, checkpoint or weights file '%s'", run);
}

/* A file of weights has no configuration; that of nnU-Net is found by the fold's folder. */
static pons_status refuse_bare_weights(const char *file, pons_error *err)
{
    const char *slash = strrchr(file, '/');
    char *folder = strndup(slash != NULL ? file : ".", slash != NULL ? (size_t)(slash - file) : 1);
    bool fold = folder != NULL && nnunet_is_fold(folder);

    pons_fail(err, PONS_USAGE, "weights file '%s' needs --config FILE.ini\nhint: a %s is named by "
              "its folder, %s%.1000s", file, fold ? "fold of nnU-Net" : "run",
              fold ? "" : "as in ", fold ? folder : "runs/NAME");
    free(folder);
    return err->status;
}

/* Whether a folder is a model of nnU-Net and no run of pons. */
static bool is_bare_model(const char *path)
{
    return nnunet_is_model(path) && !folder_holds(path, "checkpoints")
           && !folder_holds(path, "manifest.json");
}

static pons_status find_weights(const predict_source *s, logger *l, found_weights *out,
                                pons_error *err)
{
    struct stat facts;
    bool model = is_bare_model(s->run);

    if (stat(s->run, &facts) != 0)
        return refuse_absent(s->run, err);
    if ((nnunet_is_fold(s->run) || model) && s->config != NULL)
        return pons_fail(err, PONS_USAGE, "--config '%s': the configuration of '%s' is that of its "
                         "plans.json\nhint: --set changes a value", s->config, s->run);
    if (nnunet_is_fold(s->run))
        return nnunet_model_open(s->run, &out->nnunet, err);
    if (model)
        return open_only_fold(s->run, out, err);
    if (!S_ISDIR(facts.st_mode)) {
        if (s->config == NULL)
            return refuse_bare_weights(s->run, err);
        out->weights = strdup(s->run);
        out->config = strdup(s->config);
        return PONS_OK;
    }
    if (find_in_folder(s, l, out, err) != PONS_OK)
        return err->status;
    if (s->config != NULL) {
        free(out->config);
        out->config = strdup(s->config);
    }
    if (asprintf(&out->weights, "%s/%s", out->checkpoint,
                 folder_holds(out->checkpoint, "ema.safetensors")
                 ? "ema.safetensors" : "model.safetensors") < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    log_detail(l, "weights of '%s'", out->weights);
    return PONS_OK;
}

static void found_weights_clear(found_weights *f)
{
    free(f->weights);
    free(f->config);
    free(f->checkpoint);
    free(f->run);
    nnunet_model_close(f->nnunet);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Channels of the images, and of the labels of a cascade's first stage. */
static int network_channels(const nnunet_model *m)
{
    const int *id;
    int count;

    nnunet_model_previous(m, &count, &id);
    return nnunet_model_channels(m) + count;
}

/* Keep what is known of a cascade's first stage. */
static pons_status take_previous(const found_weights *f, predictor *p, pons_error *err)
{
    const int *id;
    const char *name = f->nnunet == NULL ? NULL
                       : nnunet_model_previous(f->nnunet, &p->previous_count, &id);

    if (name == NULL)
        return PONS_OK;
    p->previous = strdup(name);
    p->previous_id = calloc((size_t)p->previous_count + 1, sizeof *p->previous_id);
    if (p->previous == NULL || p->previous_id == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    memcpy(p->previous_id, id, (size_t)p->previous_count * sizeof *id);
    return PONS_OK;
}

static pons_status read_known(const found_weights *f, int image_channels, const predictor *beside,
                              experiment_overrides *known, pons_error *err)
{
    saved_state saved;

    *known = (experiment_overrides){ .image_channels = image_channels };
    if (beside != NULL) {
        const char *devices = beside->experiment->sections.distribute.devices;
        known->devices = devices != NULL ? devices : "auto";
        known->threads = beside->experiment->device.facts.threads;
    }
    if (f->nnunet != NULL)
        known->channels = network_channels(f->nnunet);
    if (f->checkpoint == NULL)
        return PONS_OK;
    if (saved_state_read(f->checkpoint, &saved, err) != PONS_OK)
        return err->status;
    known->channels = saved.channels;
    known->precision = saved.precision;
    saved_state_clear(&saved);
    return PONS_OK;
}

/*
 * Check a run's resolved.ini against the checkpoint before it is read. *open: the hash differs, so
 * its values must be compared too. A file named by --config is not checked.
 */
static pons_status check_resolved(const found_weights *f, const predict_source *s, bool *open,
                                  pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    bool same = true;

    *open = false;
    if (f->checkpoint == NULL || f->run == NULL || s->config != NULL)
        return PONS_OK;
    if (resolved_check(f->checkpoint, f->config, &same, &problem) != PONS_OK)
        return pons_fail(err, problem.status, "%s\nhint: put it back as it was; --set changes a "
                         "value for one command", problem.text);
    *open = !same;
    return PONS_OK;
}

/* Compare values that must not differ between checkpoints of a run, then the run's identity. */
static pons_status check_run(const found_weights *f, const predict_source *s, const predictor *p,
                             pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;

    if (resume_check_prediction(f->checkpoint, f->config, p->experiment, s->set_count, s->set, err)
        != PONS_OK)
        return err->status;
    if (run_identity_check(f->checkpoint, f->config, &problem) != PONS_OK)
        pons_fail(err, problem.status, "%s\nhint: put the run's own back; --config FILE.ini takes "
                  "another", problem.text);
    return err->status;
}

/* Join processes. The mode in a run's file is ignored, since it is that of the training. */
static pons_status join_processes(predictor *p, const predict_source *source,
                                  const predictor *beside, experiment_overrides *known,
                                  pons_error *err)
{
    sections s;

    if (source->alone)
        return PONS_OK;
    memset(&s, 0, sizeof s);
    known->processes = beside != NULL ? &beside->processes : &p->processes;
    if (beside != NULL || sections_fill(p->config, &s, err) != PONS_OK)
        return err->status;
    s.distribute.mode = MODE_AUTO;
    return processes_open(p->config, &s, p->log, &p->processes, err);
}

/*
 * Open the network. Kernels use the run's timed choices; new choices are added to the run's file.
 */
static pons_status open_replicas(predictor *p, const found_weights *f, const predictor *beside,
                                 bool dropout, pons_error *err)
{
    const experiment *e = p->experiment;
    unsigned programs = REPLICAS_EVALUATION | (dropout ? REPLICAS_DROPOUT : 0);

    if (tuning_read(e->tuning, f->run, err) != PONS_OK)
        return err->status;
    if ((beside == NULL ? replicas_open(e, programs, &p->replicas, err)
         : replicas_open_beside(&beside->replicas, e, programs, &p->replicas, err))
        == PONS_OK)
        tuning_add(e->tuning, f->run);
    return err->status;
}

static pons_status take_geometry(const char *folder, const json_t *manifest, predictor *p,
                                 pons_error *err)
{
    const json_t *geometry = json_object_get(manifest, CHECKPOINT_GEOMETRY);

    p->compares = geometry != NULL && case_geometry_read(geometry, &p->seen);
    return geometry == NULL || p->compares ? PONS_OK
           : pons_fail(err, PONS_DATA, "'%s/manifest.json': '" CHECKPOINT_GEOMETRY "' is not what "
                       "training writes", folder);
}

/*
 * Read the geometry for a weights file that lies in a checkpoint's folder. A manifest that does
 * not list the file belongs to something else.
 */
static void read_geometry_beside(const char *weights, predictor *p)
{
    const char *slash = strrchr(weights, '/'), *name = slash != NULL ? slash + 1 : weights;
    char *folder = slash != NULL ? strndup(weights, (size_t)(name - weights)) : strdup(".");
    json_t *manifest = NULL;
    pons_error problem = PONS_ERROR_INIT;

    if (folder != NULL && folder_holds(folder, "manifest.json")) {
        if (checkpoint_manifest(folder, &manifest, &problem) == PONS_OK
            && json_object_get(json_object_get(manifest, "files"), name) != NULL)
            take_geometry(folder, manifest, p, &problem);
        if (problem.status != PONS_OK)
            log_warning(p->log, "%s; images are not compared with those of the training",
                        problem.text);
        json_decref(manifest);
    }
    free(folder);
}

static pons_status read_geometry(const found_weights *f, predictor *p, pons_error *err)
{
    json_t *manifest = NULL;

    if (f->checkpoint == NULL && f->weights != NULL)
        read_geometry_beside(f->weights, p);
    else if (f->checkpoint != NULL
             && checkpoint_manifest(f->checkpoint, &manifest, err) == PONS_OK)
        take_geometry(f->checkpoint, manifest, p, err);
    json_decref(manifest);
    return err->status;
}

static pons_status open_config(const found_weights *f, const predict_source *s, config **out,
                               pons_error *err)
{
    if (f->nnunet != NULL)
        return nnunet_model_config(f->nnunet, s->set_count, s->set, out, err);
    return config_open(f->config, s->set_count, s->set, out, err);
}

static pons_status read_weights(const found_weights *f, predictor *p, pons_error *err)
{
    const experiment *e = p->experiment;
    byte_progress progress = { .log = p->log, .verb = "reading", .path = f->weights };
    tensor_format format = { .flat = e->task.flat, .wide = e->device.wide, .progress = &progress };
    storage *to = p->replicas.item[0].storage;

    if (f->nnunet != NULL)
        return nnunet_model_read(f->nnunet, to, format.wide, p->log, err);
    return weights_file_read(to, WEIGHTS_MODEL, f->weights, &format, err);
}

static pons_status open_network(predictor *p, const found_weights *f, const predict_source *s,
                                const predictor *beside, pons_error *err)
{
    experiment_overrides known;
    bool open;

    if (check_resolved(f, s, &open, err) != PONS_OK
        || read_known(f, s->image_channels, beside, &known, err) != PONS_OK
        || read_geometry(f, p, err) != PONS_OK
        || open_config(f, s, &p->config, err) != PONS_OK
        || join_processes(p, s, beside, &known, err) != PONS_OK
        || experiment_open(p->config, EXPERIMENT_PREDICT, &known, p->log, &p->experiment, err)
           != PONS_OK
        || (open && check_run(f, s, p, err) != PONS_OK))
        return err->status;
    if (open_replicas(p, f, beside, s->dropout, err) != PONS_OK
        || read_weights(f, p, err) != PONS_OK)
        return err->status;
    if (agreement_on_weights(p->experiment->group, p->replicas.item[0].storage, err) != PONS_OK)
        return err->status;
    replicas_copy_first(&p->replicas);
    for (int i = 0; i < p->replicas.count; i++)
        program_weights_changed(p->replicas.item[i].evaluation);
    return PONS_OK;
}

/* The run knows the files of plugins that another configuration names, and those of ops. */
static void hint_plugins(const found_weights *f, pons_error *err)
{
    char *resolved = NULL;

    if (err->status == PONS_OK || f->run == NULL
        || asprintf(&resolved, "%s/resolved.ini", f->run) < 0)
        return;
    resolved_hint_plugins(resolved, err);
    free(resolved);
}

pons_status predictor_open(const predict_source *source, const predictor *beside, logger *l,
                           predictor **out, pons_error *err)
{
    found_weights found = { .weights = NULL };
    predictor *p = calloc(1, sizeof *p);

    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    p->log = l;
    p->nnunet = nnunet_is_fold(source->run);
    if (find_weights(source, l, &found, err) == PONS_OK
        && take_previous(&found, p, err) == PONS_OK)
        open_network(p, &found, source, beside, err);
    hint_plugins(&found, err);
    found_weights_clear(&found);
    memory_hints_add(p->experiment != NULL ? &p->experiment->sections : NULL, MEMORY_HINTS_PREDICT,
                     err);
    if (err->status != PONS_OK) {
        predictor_close(p, err);
        return err->status;
    }
    *out = p;
    return PONS_OK;
}

void predictor_close(predictor *p, const pons_error *failure)
{
    if (p == NULL)
        return;
    replicas_close(&p->replicas);
    experiment_close(p->experiment);
    processes_close(&p->processes, failure);
    if (p->config != NULL)
        config_close(p->config);
    free(p->previous);
    free(p->previous_id);
    free(p);
}

int predictor_rank(const predictor *p)
{
    return p->experiment->group != NULL ? group_rank(p->experiment->group) : 0;
}

pons_status predictor_share(const predictor *p, pons_error *err)
{
    group *g = p->experiment->group;
    int size = g != NULL ? group_size(g) : 1;
    pons_error problem = PONS_ERROR_INIT, *all;

    if (g == NULL)
        return err->status;
    all = calloc((size_t)size, sizeof *all);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (group_all_gather(g, err, sizeof *err, all, &problem) != PONS_OK)
        pons_fail(err, problem.status, "%s", problem.text);
    for (int r = 0; r < size && err->status == PONS_OK; r++)
        if (all[r].status != PONS_OK)
            pons_fail(err, all[r].status, "%s", all[r].text);
    free(all);
    return err->status;
}

const replicas *predictor_replicas(const predictor *p)
{
    return &p->replicas;
}

bool predictor_is_nnunet(const predictor *p)
{
    return p->nnunet;
}

const char *predictor_previous(const predictor *p)
{
    return p->previous;
}

int predictor_image_channels(const predictor *p)
{
    return p->experiment->task.channels - p->previous_count;
}

const experiment *predictor_experiment(const predictor *p)
{
    return p->experiment;
}
