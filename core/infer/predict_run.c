/*
 * predict_run.c - predict cases in order: read, preprocess, windows on the devices, ensemble sums,
 * resampling to the file's grid.
 *
 * A case takes passes: one for each network, or for the uncertainty of a single network one with
 * all flips and one for each flip, or for each sample of its dropout. With m passes, case n is
 * volumes n m .. n m + m - 1 of window_scheduler.h.
 */
#include "infer/infer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/random.h"
#include "base/system/huge_pages.h"
#include "base/text/text_stream.h"
#include "base/thread/parallel.h"
#include "config/memory_hints.h"
#include "data/cache/case_hash.h"
#include "data/case/case_read.h"
#include "data/dataset/class_list.h"
#include "data/picture/picture_read.h"
#include "data/reader/volume_read.h"
#include "experiment/agreement.h"
#include "infer/activation.h"
#include "infer/window_scheduler.h"

typedef struct prediction {
    int count;
    int passes, samples;      /* samples are the summed passes, which are the last                */
    unsigned flip[8];         /* of the samples of a single network without dropout               */
    predictor *const *p;
    const predict_work *work;
    group *group;             /* NULL: a single process                                           */
    bool windows;             /* processes divide windows, not cases                              */
    char *records;            /* records of a round of cases; of all cases if windows are divided */
    /* Members of the preparing thread: the case's files, up to the first problem. */
    volume image, previous;   /* 'previous': labels of a cascade's first stage                    */
    volume_grid grid;
    pons_error problem;
    bool foreign;             /* the case's difference from training has been warned of           */
    double process;           /* bytes of this process before the first case's windows            */
    /*
     * Members of the finishing thread: sums over samples on the preprocessed grid, and the
     * resampling to the file's grid.
     */
    volume logits, probabilities, squares;
    restore_grid *restoring;
    pons_error failure;
} prediction;

/* A case preprocessed for one pass. */
typedef struct member_case {
    pons_case c;
    volume_grid grid;
    pons_error problem;       /* PONS_DATA: there is no image                                     */
    text_stream notes;        /* warnings of preprocessing, in lines                              */
} member_case;

/* The case of volume 'number' of this process. */
static int case_of(const prediction *s, int number)
{
    int n = number / s->passes;

    return s->group != NULL && !s->windows ? n * group_size(s->group) + group_rank(s->group) : n;
}

/* The network of a pass. */
static int network_of(const prediction *s, int pass)
{
    return s->count > 1 ? pass : 0;
}

/* ---- prepare --------------------------------------------------------------------------------- */

pons_status predict_read(const predict_input *input, volume *image, volume_grid *grid,
                         pons_error *err)
{
    if (input->read != NULL)
        return input->read(input->context, image, grid, err);
    return volume_read_channels(input->file_count, input->file, image, grid, err);
}

static void read_image(prediction *s, const predict_input *input)
{
    const predictor *p = s->p[0];

    pons_volume_clear(&s->image);
    pons_volume_clear(&s->previous);
    s->problem = (pons_error)PONS_ERROR_INIT;
    if (predict_read(input, &s->image, &s->grid, &s->problem) == PONS_OK && input->read == NULL)
        picture_match_channels(input->file[0], predictor_image_channels(p), &s->image,
                               &s->problem);
    if (s->problem.status == PONS_OK && p->previous != NULL)
        predict_previous_read(p, input, &s->image, &s->grid, &s->previous, &s->problem);
}

/* Move a volume for the last pass, and copy it for the others. */
static pons_status take_volume(const prediction *s, int pass, volume *from, volume *out,
                               pons_error *err)
{
    if (pass < s->passes - 1)
        return volume_copy(from, out, err);
    *out = *from;
    memset(from, 0, sizeof *from);
    return PONS_OK;
}

/* Preprocess for one pass. */
static void preprocess_case(prediction *s, int pass, member_case *m, pons_error *err)
{
    int member = network_of(s, pass);
    const experiment *e = s->p[member]->experiment;
    const predict_member at = { .count = s->count, .at = member, .all = s->p };
    bool open = text_stream_open(&m->notes);
    logger said = { .terminal = m->notes.to, .level = LOG_NORMAL };

    if (!open) {
        pons_fail(err, PONS_DEVICE, "out of memory");
        return;
    }
    take_volume(s, pass, &s->image, &m->c.image, err);
    if (err->status == PONS_OK && s->p[0]->previous != NULL)
        take_volume(s, pass, &s->previous, &m->c.label, err);
    if (err->status == PONS_OK)
        pipeline_apply(e->preprocess, PIPELINE_VALIDATION, &m->c, &said, err);
    if (err->status == PONS_OK)
        predict_foreign(&at, &m->c, s->work->force, &s->foreign, &said, err);
    if (!text_stream_close(&m->notes) && err->status == PONS_OK)
        pons_fail(err, PONS_DEVICE, "out of memory for the warnings of a case");
    if (err->status == PONS_OK && m->c.image.channels != predictor_image_channels(s->p[member]))
        pons_fail(err, PONS_DATA, "case '%s' has %d channel%s, the network expects %d\nhint: a "
                  "comma joins the channels of one case, as t1.nii.gz,t2.nii.gz; in a folder "
                  "CASE_0000 and CASE_0001 are one case", m->c.name, m->c.image.channels,
                  m->c.image.channels == 1 ? "" : "s", predictor_image_channels(s->p[member]));
    if (err->status == PONS_OK && m->c.label.voxels != NULL)
        predict_previous_append(s->p[member], &m->c, err);
}

/* The key of a sample of dropout. It does not depend on the other cases of the prediction. */
static uint64_t sample_key(const char *name, int sample)
{
    uint32_t drawn[4];

    random_data(random_stream_hash(name), random_stream_hash("dropout_passes"), 0, 0,
                (uint64_t)sample, 0, drawn);
    return drawn[0];
}

static pons_status prepare_volume(void *context, int number, window_scheduler_volume *out,
                                  pons_error *err)
{
    prediction *s = context;
    int pass = number % s->passes, sample = pass - (s->passes - s->samples);
    const predict_input *input = &s->work->input[case_of(s, number)];
    member_case *m = calloc(1, sizeof *m);

    if (m == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    out->caller_data = m;
    m->c = (pons_case){ .size = sizeof m->c, .name = input->name };
    if (pass == 0) {
        read_image(s, input);
        s->foreign = false;
    }
    if (s->problem.status == PONS_OK)
        preprocess_case(s, pass, m, &s->problem);
    m->problem = s->problem;
    m->grid = s->grid;
    if (m->problem.status == PONS_DATA)
        return PONS_OK;
    if (m->problem.status != PONS_OK)
        return pons_fail(err, m->problem.status, "%s", m->problem.text);
    if (pass == s->passes - 1)
        predict_memory_tell(s->count, s->p, s->work, &m->c, &s->grid, &s->process);
    out->network = &s->p[network_of(s, pass)]->replicas;
    out->one_flip = s->count == 1 && sample >= 0;
    if (out->one_flip && s->work->dropout_passes > 0) {
        out->network = &s->work->dropped->replicas;
        out->sample = sample_key(input->name, sample);
    } else if (out->one_flip) {
        out->flip = s->flip[sample];
    }
    memcpy(out->extent, m->c.image.extent, sizeof out->extent);
    out->image = m->c.image.voxels;
    return PONS_OK;
}

static void release_volume(void *context, window_scheduler_volume *v)
{
    member_case *m = v->caller_data;

    if (m == NULL)
        return;
    case_clear(&m->c);
    free(m->notes.text);
    free(m);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* The grid of a network's prediction, without voxels. */
static volume grid_of_prediction(const prediction *s, int member, const member_case *m)
{
    volume v = { .type = PONS_F32, .channels = s->p[member]->experiment->task.classes };

    memcpy(v.extent, m->c.image.extent, sizeof v.extent);
    volume_copy_position(&v, &m->c.image);
    return v;
}

static pons_status open_restoring(prediction *s, const volume *from, const volume_grid *grid,
                                  pons_error *err)
{
    predict_outputs outputs = { s->work->logits, s->work->probabilities };

    return restore_grid_open(s->p[0]->experiment, &outputs, from, grid, &s->restoring, err);
}

/* Copy from windows to the resampling, or to the sums of an ensemble. */
typedef struct window_filling {
    prediction *s;
    const experiment *e;
    blender *blender;
    int64_t first;            /* first voxel of the parallel loop                                 */
    int sample;
} window_filling;

/* Apply the activation, unless logits are resampled. */
static void activate(const window_filling *f, float *x, int64_t count)
{
    const experiment *e = f->s->p[0]->experiment;

    if (e->sections.predict.resample != RESAMPLE_LOGITS)
        activation_apply(f->e->activation, x, count, f->e->task.classes);
}

static void fill_from_windows(void *context, int64_t at, int64_t count, float *probabilities,
                              float *logits)
{
    const window_filling *f = context;
    int classes = f->e->task.classes;

    window_blend_take(f->blender, at, count, probabilities);
    for (int64_t n = 0; logits != NULL && n < count * classes; n++)
        /* adding 0 turns -0 into 0, as the sum of an ensemble does */
        logits[n] = 0 + probabilities[n];
    activate(f, probabilities, count);
}

static bool is_same_grid(const volume *a, const volume *b)
{
    return memcmp(a->extent, b->extent, sizeof a->extent) == 0
        && memcmp(a->inside_start, b->inside_start, sizeof a->inside_start) == 0
        && memcmp(a->affine, b->affine, sizeof a->affine) == 0 && a->channels == b->channels;
}

/* Name the grids of two networks, whose predictions have no common voxels. */
static pons_status refuse_grid(const prediction *s, int network, const volume *place,
                               const char *name, pons_error *err)
{
    const int64_t *a = place->extent, *b = s->probabilities.extent;

    return pons_fail(err, PONS_CONFIG, "case '%s': network %d of the ensemble predicts %lld x %lld "
                     "x %lld voxels, the first %lld x %lld x %lld%s, expected networks of one grid "
                     "and spacing", name, network + 1, (long long)a[0], (long long)a[1],
                     (long long)a[2], (long long)b[0], (long long)b[1], (long long)b[2],
                     memcmp(a, b, 3 * sizeof *a) == 0 ? " at another place" : "");
}

/* Allocate the sums for the first sample; check the grid of the others. */
static pons_status open_sums(prediction *s, int sample, const member_case *m, pons_error *err)
{
    volume place = grid_of_prediction(s, network_of(s, sample), m);
    volume *const sum[] = { &s->probabilities,
                            s->work->logits && s->count > 1 ? &s->logits : NULL,
                            s->work->uncertainty ? &s->squares : NULL };

    if (sample > 0 && !is_same_grid(&s->probabilities, &place))
        return refuse_grid(s, network_of(s, sample), &place, m->c.name, err);
    for (int i = 0; i < 3 && sample == 0; i++) {
        if (sum[i] == NULL)
            continue;
        if (pons_volume_init(sum[i], PONS_F32, place.channels, place.extent, err) != PONS_OK)
            return err->status;
        volume_copy_position(sum[i], &place);
    }
    return PONS_OK;
}

enum { PIECE = 1 << 14, TILE = 16 * CLASS_COUNT_MAX };

static void add_scaled(volume *to, int64_t first, int64_t count, float factor, const float *y)
{
    float *x = (float *)to->voxels + first;

    for (int64_t n = 0; n < count; n++)
        x[n] += factor * y[n];
}

static void add_voxels(void *context, int64_t first, int64_t end)
{
    const window_filling *f = context;
    prediction *s = f->s;
    int classes = f->e->task.classes;
    int64_t tile = TILE / classes;
    float factor = 1 / (float)s->samples, x[TILE];

    for (int64_t at = f->first + first; at < f->first + end; at += tile) {
        int64_t count = min_i64(f->first + end - at, tile);

        window_blend_take(f->blender, at, count, x);
        if (s->logits.voxels != NULL)
            add_scaled(&s->logits, at * classes, count * classes, factor, x);
        activate(f, x, count);
        if (s->work->uncertainty)
            uncertainty_add(f->sample, s->samples, count * classes,
                            (const float *)s->probabilities.voxels + at * classes,
                            (float *)s->squares.voxels + at * classes, x);
        add_scaled(&s->probabilities, at * classes, count * classes, factor, x);
    }
}

/*
 * Give planes of the image back that no later window reads: all begin behind them, and padding is
 * not made of them.
 */
static void discard_planes(const experiment *e, const member_case *m, int64_t first, int64_t end)
{
    const volume *v = &m->c.image;
    size_t plane = (size_t)(v->extent[1] * v->extent[2] * v->channels) * sizeof(float);

    if (e->sections.window.padding_mode == WINDOW_PAD_CONSTANT)
        pages_discard((char *)v->voxels + (size_t)first * plane, (size_t)(end - first) * plane);
}

static pons_status take_planes(prediction *s, int number, window_scheduler_volume *v,
                               blender *blender, int64_t first, int64_t end, pons_error *err)
{
    int pass = number % s->passes, sample = pass - (s->passes - s->samples);
    int member = network_of(s, pass);
    const member_case *m = v->caller_data;
    int64_t plane = v->extent[1] * v->extent[2];
    window_filling f = { s, s->p[member]->experiment, blender, first * plane, sample };

    discard_planes(f.e, m, first, end);
    if (sample >= 0) {
        if (first == 0 && open_sums(s, sample, m, err) != PONS_OK)
            return err->status;
        parallel_run((end - first) * plane, PIECE, add_voxels, &f);
        return PONS_OK;
    }
    volume from = grid_of_prediction(s, member, m);
    if (first == 0 && open_restoring(s, &from, &m->grid, err) != PONS_OK)
        return err->status;
    return restore_grid_planes(s->restoring, first, end, fill_from_windows, &f, err);
}

/* 'share' is that of the pass. */
static void tell_progress(const prediction *s, int number, const volume_grid *grid, double share)
{
    const predict_work *w = s->work;

    if (w->progress != NULL)
        w->progress(w->context, case_of(s, number), (number % s->passes + share) / s->passes,
                    grid->extent[0] * grid->extent[1] * grid->extent[2]);
}

/*
 * Take planes; logits that are not finite become a problem of the case, which then has no result.
 */
static pons_status take_finite_planes(void *context, int number, window_scheduler_volume *v,
                                      blender *blender, int64_t first, int64_t end, pons_error *err)
{
    member_case *m = v->caller_data;

    if (take_planes(context, number, v, blender, first, end, err) == PONS_OK)
        tell_progress(context, number, &m->grid, (double)end / (double)v->extent[0]);
    if (err->status == PONS_OK && !window_blend_is_finite(blender) && m->problem.status == PONS_OK)
        pons_fail(&m->problem, PONS_DATA, "case '%s': the network's logits are not finite, "
                  "expected numbers\nhint: a weight or a value of the image is too large, or a "
                  "variance is below 0",
                  m->c.name);
    return err->status;
}

/* ---- finish ---------------------------------------------------------------------------------- */

static void fill_from_sums(void *context, int64_t at, int64_t count, float *probabilities,
                           float *logits)
{
    const prediction *s = context;
    int64_t classes = s->probabilities.channels;
    size_t size = (size_t)(count * classes) * sizeof(float);

    memcpy(probabilities, (const float *)s->probabilities.voxels + at * classes, size);
    if (logits != NULL)
        memcpy(logits, (const float *)s->logits.voxels + at * classes, size);
}

/* Resample the sums of an ensemble, a slab of planes at a time. */
static pons_status restore_sums(prediction *s, const volume_grid *grid, pons_error *err)
{
    enum { PLANES = 16 };
    int64_t extent = s->probabilities.extent[0];

    if (open_restoring(s, &s->probabilities, grid, err) != PONS_OK)
        return err->status;
    for (int64_t first = 0; first < extent && err->status == PONS_OK; first += PLANES)
        restore_grid_planes(s->restoring, first, min_i64(first + PLANES, extent),
                            fill_from_sums, s, err);
    return err->status;
}

static char *record_at(const prediction *s, int number)
{
    return s->records + (size_t)number * s->work->record_size;
}

/* Exchange the records of a round, one case of each process, and call 'tell' for each. */
static pons_status exchange_round(prediction *s, int round, const char *mine, pons_error *err)
{
    const predict_work *w = s->work;
    int size = group_size(s->group);

    if (group_all_gather(s->group, mine, w->record_size, s->records, err) != PONS_OK)
        return err->status;
    for (int r = 0; r < size && round * size + r < w->count && err->status == PONS_OK; r++)
        w->tell(w->context, round * size + r, record_at(s, r), err);
    return err->status;
}

static pons_status restore_uncertainty(prediction *s, const volume_grid *grid, predict_result *r,
                                       pons_error *err)
{
    if (!s->work->uncertainty)
        return PONS_OK;
    return uncertainty_restore(s->p[0]->experiment, s->samples, &s->probabilities, &s->squares,
                               grid, &r->entropy, &r->variance, err);
}

static pons_status take_record(prediction *s, int number, const volume_grid *grid, char *record,
                               pons_error *err)
{
    const predict_work *w = s->work;
    predict_result r = { .grid = *grid };

    if (s->failure.status != PONS_OK)
        w->take(w->context, number, NULL, &s->failure, record, err);
    else if ((s->count == 1 || restore_sums(s, grid, err) == PONS_OK)
             && restore_grid_finish(s->restoring, &r, err) == PONS_OK
             && restore_uncertainty(s, grid, &r, err) == PONS_OK)
        w->take(w->context, number, &r, NULL, record, err);
    pons_volume_clear(&r.classes);
    pons_volume_clear(&r.logits);
    pons_volume_clear(&r.probabilities);
    pons_volume_clear(&r.entropy);
    pons_volume_clear(&r.variance);
    return err->status;
}

static pons_status take_case(prediction *s, int number, const volume_grid *grid, pons_error *err)
{
    const predict_work *w = s->work;
    char *record = calloc(1, w->record_size + 1);

    if (record == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (take_record(s, number, grid, record, err) == PONS_OK) {
        if (s->windows)
            memcpy(record_at(s, number), record, w->record_size);
        else if (s->group != NULL)
            exchange_round(s, number / group_size(s->group), record, err);
        else
            w->tell(w->context, number, record, err);
    }
    free(record);
    return err->status;
}

static void clear_case(prediction *s)
{
    restore_grid_close(s->restoring);
    s->restoring = NULL;
    pons_volume_clear(&s->logits);
    pons_volume_clear(&s->probabilities);
    pons_volume_clear(&s->squares);
    s->failure = (pons_error)PONS_ERROR_INIT;
}

static void log_lines(logger *l, char *notes)
{
    for (char *line; notes != NULL && (line = strsep(&notes, "\n")) != NULL; )
        if (*line != '\0')
            log_line(l, "%s", line);
}

static pons_status finish_volume(void *context, int number, window_scheduler_volume *v,
                                 pons_error *err)
{
    prediction *s = context;
    int pass = number % s->passes;
    member_case *m = v->caller_data;

    if (pass < s->count) /* each flip prepares the image of the first pass */
        log_lines(s->p[pass]->log, m->notes.text);
    pons_volume_clear(&m->c.image);
    if (s->failure.status == PONS_OK)
        s->failure = m->problem;
    if (pass < s->passes - 1)
        return PONS_OK;
    take_case(s, case_of(s, number), &m->grid, err);
    clear_case(s);
    return err->status;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Tell the watchdog of progress before every batch. */
bool predict_stop_due(const predict_work *work, group *g)
{
    if (g != NULL)
        group_note(g, 0, "prediction");
    return work->stop != NULL && work->stop(work->context);
}

static bool stop_due(void *context)
{
    const prediction *s = context;

    return predict_stop_due(s->work, s->group);
}

/* Call 'tell' for the cases that are left when this process has finished its own. */
static pons_status exchange_rest(prediction *s, pons_error *err)
{
    const predict_work *w = s->work;
    int size = s->group != NULL ? group_size(s->group) : 1;

    if (s->windows) {
        group_broadcast(s->group, s->records, (size_t)w->count * w->record_size, 0, err);
        for (int n = 0; n < w->count && err->status == PONS_OK; n++)
            w->tell(w->context, n, record_at(s, n), err);
    } else if (s->group != NULL && w->count % size != 0
               && group_rank(s->group) >= w->count % size) {
        char *nothing = calloc(1, w->record_size + 1);
        if (nothing == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        exchange_round(s, w->count / size, nothing, err);
        free(nothing);
    }
    return err->status;
}

/* Compare content hashes. Unreadable files have an unknown hash and are reported later. */
static pons_status compare_files(group *g, const predict_work *w, const char *const *name,
                                 pons_error *err)
{
    hash128 *content = calloc((size_t)w->count + 1, sizeof *content);

    if (content == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a list of %d cases", w->count);
    for (int n = 0; n < w->count; n++) {
        const predict_input *i = &w->input[n];
        const data_case files = { .image = i->file, .image_count = i->file_count };
        pons_error unread = PONS_ERROR_INIT;

        case_hash(&files, &content[n], &unread);
    }
    agreement_on_contents(g, w->count, name, content, err);
    free(content);
    return err->status;
}

/* Compare the cases of all processes; if windows are divided, each process reads every case. */
static pons_status compare_cases(const prediction *s, pons_error *err)
{
    const predict_work *w = s->work;
    const char **name;

    if (s->group == NULL)
        return PONS_OK;
    name = malloc((size_t)w->count * sizeof *name + 1);
    if (name == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a list of %d cases", w->count);
    for (int n = 0; n < w->count; n++)
        name[n] = w->input[n].name;
    if (agreement_on_names(s->group, w->count, name, err) == PONS_OK && s->windows)
        compare_files(s->group, w, name, err);
    free(name);
    return err->status;
}

/* Set the passes of a case. */
static pons_status plan_passes(prediction *s, pons_error *err)
{
    window_settings settings;

    s->passes = s->count;
    s->samples = s->count > 1 ? s->count : 0;
    if (s->work->uncertainty
        && s->p[0]->experiment->sections.predict.resample == RESAMPLE_LOGITS)
        return pons_fail(err, PONS_CONFIG, "--uncertainty is of probabilities, found [predict] "
                         "resample = logits\nhint: --set predict.resample=probabilities");
    if (!s->work->uncertainty || s->count > 1)
        return PONS_OK;
    s->samples = s->work->dropout_passes;
    s->passes = 1 + s->samples;
    if (s->samples > 0)
        return PONS_OK;
    experiment_window_settings(s->p[0]->experiment, &settings);
    if ((settings.mirror & 7) == 0)
        return pons_fail(err, PONS_CONFIG, "--uncertainty compares networks, folds or flipped "
                         "windows, found one network and no [window] mirror\nhint: --set "
                         "'window.mirror=0 1 2' flips along all axes, --passes 16 samples the "
                         "network's dropout");
    for (unsigned flip = 0; flip < 8; flip++)
        if ((flip & ~settings.mirror) == 0)
            s->flip[s->samples++] = flip;
    s->passes = 1 + s->samples;
    return PONS_OK;
}

static pons_status predict_segmentation(int count, predictor *const *p, const predict_work *work,
                                        pons_error *err)
{
    group *g = p[0]->experiment->group;
    int size = g != NULL ? group_size(g) : 1, share = work->count;
    prediction s = { .count = count, .p = p, .work = work, .group = g,
                     .windows = g != NULL && work->count < size, .problem = PONS_ERROR_INIT,
                     .failure = PONS_ERROR_INIT };

    if (g != NULL && !s.windows)
        share = ceil_div_int(work->count - group_rank(g), size);
    if (plan_passes(&s, err) != PONS_OK)
        return err->status;
    s.records = calloc((size_t)max_int(work->count, size) + 1,
                       work->record_size + 1);
    if (s.records == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    const window_scheduler_work cases = {
        .count = s.passes * share, .host_sums = s.passes > count,
        .shared = s.windows ? g : NULL, .prepare = prepare_volume,
        .take = take_finite_planes, .finish = finish_volume, .release = release_volume,
        .stop = stop_due, .context = &s
    };
    if (compare_cases(&s, err) == PONS_OK && window_scheduler_run(&p[0]->replicas, &cases,
                                                                  err) == PONS_OK)
        exchange_rest(&s, err);
    pons_volume_clear(&s.image);
    clear_case(&s);
    free(s.records);
    return err->status;
}

pons_status predict_run(int count, predictor *const *p, const predict_work *work, pons_error *err)
{
    static pons_status (*const run[TASK_COUNT])(int, predictor *const *, const predict_work *,
                                                pons_error *) = {
        [TASK_SEGMENTATION] = predict_segmentation, [TASK_SYNTHESIS] = predict_synthesis,
        [TASK_CLASSIFICATION] = predict_classification,
    };
    const sections *s = &p[0]->experiment->sections;

    if (run[s->experiment.task](count, p, work, err) != PONS_OK)
        memory_hints_add(s, MEMORY_HINTS_PREDICT, err);
    return err->status;
}
