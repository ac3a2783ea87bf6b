/*
 * predict.c - files, preprocessing, windows, activation, and the way back (R28).
 */
#include <config.h>

#include "train/predict.h"

#include "data/loader.h"
#include "train/activation.h"
#include "train/checkpoint.h"
#include "train/components.h"
#include "train/network.h"
#include "train/trainer_state.h"
#include "train/validation.h"
#include "train/weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct predictor {
    config *config;
    experiment *experiment;
    storage *storage;
    program *program;
    logger *log;
};

/* ---- where weights and configuration lie ----------------------------------------------------- */

typedef struct found_weights {
    char *weights;            /* safetensors file                                                 */
    char *config;
    char *checkpoint;         /* NULL for a bare weights file                                     */
} found_weights;

static bool exists(const char *folder, const char *name)
{
    char *path = NULL;
    bool found = asprintf(&path, "%s/%s", folder, name) >= 0 && access(path, F_OK) == 0;

    free(path);
    return found;
}

static pons_status find_in_folder(const predict_source *s, logger *l, found_weights *out,
                                  pons_error *err)
{
    char *folder = NULL;
    bool run = exists(s->run, "checkpoints"), checkpoint = exists(s->run, "manifest.json");

    if (!run && !checkpoint)
        return pons_fail(err, PONS_CONFIG, "'%s' is neither a run folder (with checkpoints) nor a "
                         "checkpoint (with manifest.json)", s->run);
    if (checkpoint) {
        if (checkpoint_verify(s->run, err) != PONS_OK)
            return err->status;
        out->checkpoint = strdup(s->run);
        out->config = NULL;
        if (asprintf(&out->config, "%s/../../resolved.ini", s->run) < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        return PONS_OK;
    }
    if (asprintf(&folder, "%s/checkpoints", s->run) < 0
        || asprintf(&out->config, "%s/resolved.ini", s->run) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (checkpoint_marked(folder, "best", l, &out->checkpoint, err) == PONS_OK
        && out->checkpoint == NULL)
        pons_fail(err, PONS_CONFIG, "'%s' holds no checkpoint yet", s->run);
    free(folder);
    return err->status;
}

static pons_status find_weights(const predict_source *s, logger *l, found_weights *out,
                                pons_error *err)
{
    struct stat facts;

    if (stat(s->run, &facts) != 0)
        return pons_fail(err, PONS_CONFIG, "there is no run, checkpoint or weights file '%s'",
                         s->run);
    if (!S_ISDIR(facts.st_mode)) {
        if (s->config == NULL)
            return pons_fail(err, PONS_USAGE, "weights file '%s' needs --config FILE.ini", s->run);
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
    if (asprintf(&out->weights, "%s/%s", out->checkpoint, exists(out->checkpoint, "ema.safetensors")
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
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status read_known(const found_weights *f, int image_channels, experiment_known *known,
                              pons_error *err)
{
    saved_state saved;

    *known = (experiment_known){ .image_channels = image_channels };
    if (f->checkpoint == NULL)
        return PONS_OK;
    if (saved_state_read(f->checkpoint, &saved, err) != PONS_OK)
        return err->status;
    known->channels = saved.channels;
    known->precision = saved.precision;
    saved_state_clear(&saved);
    return PONS_OK;
}

static pons_status open_network(predictor *p, const found_weights *f, const predict_source *s,
                                pons_error *err)
{
    experiment_known known;

    if (read_known(f, s->image_channels, &known, err) != PONS_OK
        || config_open(f->config, s->set_count, s->set, &p->config, err) != PONS_OK
        || experiment_open(p->config, EXPERIMENT_PREDICT, &known, p->log, &p->experiment, err)
           != PONS_OK
        || storage_new(&p->experiment->device, &p->storage, err) != PONS_OK
        || network_build_evaluation(p->experiment, &p->experiment->device, p->storage,
                                    &p->program, err) != PONS_OK)
        return err->status;
    weights_format format = { .flat = p->experiment->task.flat,
                              .wide = p->experiment->device.wide };
    if (storage_initialise(p->storage, 0, err) != PONS_OK
        || weights_read_file(p->storage, WEIGHTS_MODEL, f->weights, &format, err) != PONS_OK)
        return err->status;
    program_weights_changed(p->program);
    return PONS_OK;
}

pons_status predictor_open(const predict_source *source, logger *l, predictor **out,
                           pons_error *err)
{
    found_weights found = { NULL, NULL, NULL };
    predictor *p = calloc(1, sizeof *p);

    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    p->log = l;
    if (find_weights(source, l, &found, err) == PONS_OK)
        open_network(p, &found, source, err);
    found_weights_clear(&found);
    if (err->status != PONS_OK) {
        predictor_close(p);
        return err->status;
    }
    *out = p;
    return PONS_OK;
}

void predictor_close(predictor *p)
{
    if (p == NULL)
        return;
    program_free(p->program);
    if (p->storage != NULL)
        storage_free(p->storage);
    experiment_close(p->experiment);
    if (p->config != NULL)
        config_close(p->config);
    free(p);
}

const experiment *predictor_experiment(const predictor *p)
{
    return p->experiment;
}

/* ---- one network on one case ----------------------------------------------------------------- */

/* Logits of one network on its preprocessed grid. */
static pons_status stitch_case(const predictor *p, const pons_case *c, volume *out, pons_error *err)
{
    const experiment *e = p->experiment;
    window_settings settings;
    window_predictor run;

    if (c->image.channels != e->task.channels)
        return pons_fail(err, PONS_DATA, "case '%s' has %d channels, the network expects %d",
                         c->name, c->image.channels, e->task.channels);
    network_window_settings(e, &settings);
    if (network_predictor(e, p->program, &run, err) != PONS_OK
        || pons_volume_init(out, PONS_F32, e->task.classes, c->image.extent, err) != PONS_OK)
        return err->status;
    volume_place(out, &c->image);
    return window_stitch(&settings, c->image.extent, c->image.voxels, &run, out->voxels, err);
}

/* Preprocess a copy of 'image' as this network wants it. */
static pons_status preprocess(const predictor *p, const volume *image, const char *name,
                              pons_case *out, pons_error *err)
{
    *out = (pons_case){ .size = sizeof *out, .name = name };
    if (volume_copy(image, &out->image, err) != PONS_OK)
        return err->status;
    return volume_chain_apply(p->experiment->preprocess, out, p->log, err);
}

static bool same_place(const volume *a, const volume *b)
{
    return memcmp(a->extent, b->extent, sizeof a->extent) == 0
        && memcmp(a->inside_start, b->inside_start, sizeof a->inside_start) == 0
        && memcmp(a->affine, b->affine, sizeof a->affine) == 0 && a->channels == b->channels;
}

static void add_scaled(volume *to, const volume *from, float factor)
{
    int64_t count = pons_volume_count(to) * to->channels;
    float *x = to->voxels;
    const float *y = from->voxels;

    for (int64_t i = 0; i < count; i++)
        x[i] += factor * y[i];
}

/* Sums over the ensemble, on the preprocessed grid. */
typedef struct ensemble {
    volume logits, probabilities;
} ensemble;

static pons_status add_member(ensemble *sum, const predictor *p, const volume *image,
                              const char *name, int count, bool logits, pons_error *err)
{
    pons_case c;
    volume v;

    memset(&v, 0, sizeof v);
    if (preprocess(p, image, name, &c, err) != PONS_OK || stitch_case(p, &c, &v, err) != PONS_OK)
        goto release;
    if (sum->probabilities.voxels == NULL) {
        if (pons_volume_init(&sum->probabilities, PONS_F32, v.channels, v.extent, err) != PONS_OK
            || (logits && pons_volume_init(&sum->logits, PONS_F32, v.channels, v.extent, err)
                != PONS_OK))
            goto release;
        volume_place(&sum->probabilities, &v);
        if (logits)
            volume_place(&sum->logits, &v);
    } else if (!same_place(&sum->probabilities, &v)) {
        pons_fail(err, PONS_CONFIG, "the networks of an ensemble preprocess case '%s' to different "
                  "grids or classes, expected one", name);
        goto release;
    }
    if (logits)
        add_scaled(&sum->logits, &v, 1 / (float)count);
    logits_activate(p->experiment->activation, v.voxels, pons_volume_count(&v), v.channels);
    add_scaled(&sum->probabilities, &v, 1 / (float)count);
release:
    case_clear(&c);
    pons_volume_clear(&v);
    return err->status;
}

/* ---- the way back ---------------------------------------------------------------------------- */

/* Classes decided on the preprocessed grid, brought back by nearest neighbour. */
static pons_status decide_then_back(const experiment *e, const volume *probabilities,
                                    const volume_grid *grid, volume *out, pons_error *err)
{
    int channels = e->regions || e->task.classes == 1 ? e->task.classes : 1;
    int64_t start[3], extent[3];
    volume v;

    memset(&v, 0, sizeof v);
    if (pons_volume_init(&v, PONS_U8, channels, probabilities->extent, err) != PONS_OK)
        return err->status;
    volume_place(&v, probabilities);
    const float *p = probabilities->voxels;
    uint8_t *to = v.voxels;
    int64_t voxels = pons_volume_count(&v);
    for (int64_t i = 0; i < voxels; i++, p += e->task.classes) {
        int best = 0;
        for (int c = 0; c < e->task.classes; c++) {
            if (channels > 1 || e->task.classes == 1)
                to[i * channels + c] = p[c] > 0.5f;
            else
                best = p[c] > p[best] ? c : best;
        }
        if (channels == 1 && e->task.classes > 1)
            to[i] = (uint8_t)best;
    }
    /* A rim of background, so that what lies outside the inside box becomes background. */
    for (int a = 0; a < 3; a++) {
        start[a] = v.inside_start[a];
        extent[a] = v.inside_extent[a];
    }
    if (pons_volume_crop(&v, start, extent, 0, err) == PONS_OK
        && pons_volume_crop(&v, (int64_t[3]){ -1, -1, -1 },
                            (int64_t[3]){ extent[0] + 2, extent[1] + 2, extent[2] + 2 }, 0, err)
           == PONS_OK)
        pons_volume_resample(&v, grid->affine, grid->extent, err);
    if (err->status == PONS_OK)
        *out = v;
    else
        pons_volume_clear(&v);
    return err->status;
}

/* The names were checked when the experiment was opened. */
static pons_status keep_largest(const experiment *e, volume *v, pons_error *err)
{
    const pons_texts *names = &e->sections.predict.keep_largest;
    bool channels = v->channels > 1 || e->regions || e->task.classes == 1;

    for (int i = 0; i < names->count; i++) {
        int class = 0;
        while (strcmp(e->classes[class].name, names->item[i]) != 0)
            class++;
        uint8_t *labels = (uint8_t *)v->voxels + (channels ? class : 0);
        if (keep_largest_component(labels, v->channels, v->extent,
                                   channels ? 1 : (uint8_t)class, 0, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* Values of all classes on the grid of the file. */
static pons_status all_back(const volume *v, const volume_grid *grid, float background, volume *out,
                            pons_error *err)
{
    float *fill = calloc((size_t)v->channels, sizeof *fill);

    if (fill == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    fill[0] = background;
    volume_resample_back(v, grid, 0, grid->extent[0], fill, out, err);
    free(fill);
    return err->status;
}

static pons_status bring_back(const experiment *e, const ensemble *sum, predict_result *r,
                              pons_error *err)
{
    bool channels = e->regions || e->task.classes == 1;

    if (e->sections.predict.resample == 1)
        decide_then_back(e, &sum->probabilities, &r->grid, &r->classes, err);
    else
        volume_decide_back(&sum->probabilities, &r->grid, channels, &r->classes, err);
    if (err->status != PONS_OK || keep_largest(e, &r->classes, err) != PONS_OK)
        return err->status;
    if (r->want_logits && all_back(&sum->logits, &r->grid, 0, &r->logits, err) != PONS_OK)
        return err->status;
    if (r->want_probabilities)
        all_back(&sum->probabilities, &r->grid, channels ? 0 : 1, &r->probabilities, err);
    return err->status;
}

pons_status predict_case(int count, predictor *const *p, int file_count, const char *const *file,
                         const char *name, predict_result *result, pons_error *err)
{
    volume image;
    ensemble sum;

    memset(&image, 0, sizeof image);
    memset(&sum, 0, sizeof sum);
    if (volume_read_channels(file_count, file, &image, &result->grid, err) == PONS_OK)
        for (int i = 0; i < count && err->status == PONS_OK; i++)
            add_member(&sum, p[i], &image, name, count, result->want_logits, err);
    if (err->status == PONS_OK)
        bring_back(p[0]->experiment, &sum, result, err);
    pons_volume_clear(&image);
    pons_volume_clear(&sum.logits);
    pons_volume_clear(&sum.probabilities);
    return err->status;
}

void predict_result_clear(predict_result *r)
{
    pons_volume_clear(&r->classes);
    pons_volume_clear(&r->logits);
    pons_volume_clear(&r->probabilities);
}
