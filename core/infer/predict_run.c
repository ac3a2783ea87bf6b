/*
 * predict_run.c - cases one after the other: files, preprocessing, windows over the devices, sums
 * of an ensemble, the way back.
 *
 * With m networks case n is the volumes n m .. n m + m - 1 of window_scheduler.h, one for each
 * network.
 */
#include "infer/infer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "config/memory_hints.h"
#include "data/dataset/case_hash.h"
#include "data/dataset/case_read.h"
#include "data/dataset/class_list.h"
#include "data/nifti/nifti_read.h"
#include "experiment/agreement.h"
#include "infer/activation.h"
#include "infer/window_scheduler.h"

typedef struct prediction {
    int count;
    predictor *const *p;
    const predict_work *work;
    group *group;             /* NULL: this process is alone                                      */
    bool windows;             /* processes share windows out, not cases                           */
    char *records;            /* of a round of cases, or of all where windows are shared          */
    /* Of the thread that prepares: the case's files, as far as there is nothing wrong with them. */
    volume image;
    volume_grid grid;
    pons_error problem;
    bool foreign;             /* that the case is unlike the training's was said                  */
    /* Of the thread that finishes: of an ensemble sums over the networks, on the preprocessed    */
    /* grid; then the way back.                                                                   */
    volume logits, probabilities;
    predict_back *back;
    pons_error failure;
} prediction;

/* A case as one network wants it. */
typedef struct member_case {
    pons_case c;
    volume_grid grid;
    pons_error problem;       /* PONS_DATA: there is no image                                     */
    char *notes;              /* what preprocessing said, in lines                                */
    size_t notes_size;
} member_case;

/* Which case volume 'number' of this process belongs to. */
static int case_of(const prediction *s, int number)
{
    int n = number / s->count;

    return s->group != NULL && !s->windows ? n * group_size(s->group) + group_rank(s->group) : n;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void read_files(prediction *s, const predict_input *input)
{
    pons_volume_clear(&s->image);
    s->problem = (pons_error)PONS_ERROR_INIT;
    volume_read_channels(input->file_count, input->file, &s->image, &s->grid, &s->problem);
}

/* The last network changes the image itself, the others a copy. */
static void preprocess(prediction *s, int member, member_case *m, pons_error *err)
{
    const experiment *e = s->p[member]->experiment;
    const predict_member at = { .count = s->count, .at = member, .all = s->p };
    FILE *stream = open_memstream(&m->notes, &m->notes_size);
    logger said = { .terminal = stream, .level = LOG_NORMAL };

    if (stream == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory");
        return;
    }
    if (member == s->count - 1) {
        m->c.image = s->image;
        memset(&s->image, 0, sizeof s->image);
    } else {
        volume_copy(&s->image, &m->c.image, err);
    }
    if (err->status == PONS_OK)
        volume_chain_apply(e->preprocess, &m->c, &said, err);
    if (err->status == PONS_OK)
        predict_foreign(&at, &m->c, s->work->force, &s->foreign, &said, err);
    fclose(stream);
    if (err->status == PONS_OK && m->c.image.channels != e->task.channels)
        pons_fail(err, PONS_DATA, "case '%s' has %d channel%s, the network expects %d", m->c.name,
                  m->c.image.channels, m->c.image.channels == 1 ? "" : "s", e->task.channels);
}

static pons_status prepare(void *context, int number, spread_volume *out, pons_error *err)
{
    prediction *s = context;
    int member = number % s->count;
    const predict_input *input = &s->work->input[case_of(s, number)];
    member_case *m = calloc(1, sizeof *m);

    if (m == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    out->held = m;
    m->c = (pons_case){ .size = sizeof m->c, .name = input->name };
    if (member == 0) {
        read_files(s, input);
        s->foreign = false;
    }
    if (s->problem.status == PONS_OK)
        preprocess(s, member, m, &s->problem);
    m->problem = s->problem;
    m->grid = s->grid;
    if (m->problem.status == PONS_DATA)
        return PONS_OK;
    if (m->problem.status != PONS_OK)
        return pons_fail(err, m->problem.status, "%s", m->problem.text);
    out->network = &s->p[member]->replicas;
    memcpy(out->extent, m->c.image.extent, sizeof out->extent);
    out->image = m->c.image.voxels;
    return PONS_OK;
}

static void release(void *context, spread_volume *v)
{
    member_case *m = v->held;

    if (m == NULL)
        return;
    case_clear(&m->c);
    free(m->notes);
    free(m);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* Where a network's prediction of a case lies: no voxels. */
static volume place_of(const prediction *s, int member, const member_case *m)
{
    volume v = { .type = PONS_F32, .channels = s->p[member]->experiment->task.classes };

    memcpy(v.extent, m->c.image.extent, sizeof v.extent);
    volume_place(&v, &m->c.image);
    return v;
}

static pons_status open_back(prediction *s, const volume *from, const volume_grid *grid,
                             pons_error *err)
{
    predict_wish wish = { s->work->logits, s->work->probabilities };

    return predict_back_open(s->p[0]->experiment, &wish, from, grid, &s->back, err);
}

/* From windows to the way back, or to the sums of an ensemble. */
typedef struct filling {
    prediction *s;
    const experiment *e;
    stitch *stitch;
    int64_t first;            /* voxel that is the loop's 0                                       */
} filling;

static void fill_from_windows(void *context, int64_t at, int64_t count, float *probabilities,
                              float *logits)
{
    const filling *f = context;
    int classes = f->e->task.classes;

    stitch_take(f->stitch, at, count, probabilities);
    for (int64_t n = 0; logits != NULL && n < count * classes; n++)
        logits[n] = 0 + probabilities[n]; /* no zero is negative: as in a sum of one */
    logits_activate(f->e->activation, probabilities, count, classes);
}

static bool same_place(const volume *a, const volume *b)
{
    return memcmp(a->extent, b->extent, sizeof a->extent) == 0
        && memcmp(a->inside_start, b->inside_start, sizeof a->inside_start) == 0
        && memcmp(a->affine, b->affine, sizeof a->affine) == 0 && a->channels == b->channels;
}

/* Zeros where the first network's prediction lies; the others must lie there, too. */
static pons_status open_sums(prediction *s, int member, const member_case *m, pons_error *err)
{
    volume place = place_of(s, member, m);
    volume *const sum[] = { &s->probabilities, s->work->logits ? &s->logits : NULL };

    if (member > 0 && !same_place(&s->probabilities, &place))
        return pons_fail(err, PONS_CONFIG, "the networks of an ensemble preprocess case '%s' to "
                         "different grids or classes, expected one", m->c.name);
    for (int i = 0; i < 2 && member == 0; i++) {
        if (sum[i] == NULL)
            continue;
        if (pons_volume_init(sum[i], PONS_F32, place.channels, place.extent, err) != PONS_OK)
            return err->status;
        volume_place(sum[i], &place);
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

static void add_piece(void *context, int64_t first, int64_t end)
{
    const filling *f = context;
    prediction *s = f->s;
    int classes = f->e->task.classes;
    int64_t tile = TILE / classes;
    float factor = 1 / (float)s->count, x[TILE];

    for (int64_t at = f->first + first; at < f->first + end; at += tile) {
        int64_t count = f->first + end - at < tile ? f->first + end - at : tile;

        stitch_take(f->stitch, at, count, x);
        if (s->work->logits)
            add_scaled(&s->logits, at * classes, count * classes, factor, x);
        logits_activate(f->e->activation, x, count, classes);
        add_scaled(&s->probabilities, at * classes, count * classes, factor, x);
    }
}

static pons_status take_planes(prediction *s, int number, spread_volume *v, stitch *stitch,
                               int64_t first, int64_t end, pons_error *err)
{
    int member = number % s->count;
    const member_case *m = v->held;
    int64_t plane = v->extent[1] * v->extent[2];
    filling f = { s, s->p[member]->experiment, stitch, first * plane };

    if (s->count > 1) {
        if (first == 0 && open_sums(s, member, m, err) != PONS_OK)
            return err->status;
        parallel_run((end - first) * plane, PIECE, add_piece, &f);
        return PONS_OK;
    }
    volume from = place_of(s, member, m);
    if (first == 0 && open_back(s, &from, &m->grid, err) != PONS_OK)
        return err->status;
    return predict_back_planes(s->back, first, end, fill_from_windows, &f, err);
}

/* A case whose logits are not finite has no result. */
static pons_status take(void *context, int number, spread_volume *v, stitch *stitch, int64_t first,
                        int64_t end, pons_error *err)
{
    member_case *m = v->held;

    if (take_planes(context, number, v, stitch, first, end, err) == PONS_OK
        && !stitch_is_finite(stitch) && m->problem.status == PONS_OK)
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

/* The sums of an ensemble, a slab at a time. */
static pons_status bring_back_sums(prediction *s, const volume_grid *grid, pons_error *err)
{
    enum { PLANES = 16 };
    int64_t extent = s->probabilities.extent[0];

    if (open_back(s, &s->probabilities, grid, err) != PONS_OK)
        return err->status;
    for (int64_t first = 0; first < extent && err->status == PONS_OK; first += PLANES)
        predict_back_planes(s->back, first, first + PLANES < extent ? first + PLANES : extent,
                            fill_from_sums, s, err);
    return err->status;
}

static char *record_at(const prediction *s, int number)
{
    return s->records + (size_t)number * s->work->record_size;
}

/* The cases of a round, this process's among them; those of others come from them. */
static pons_status tell_round(prediction *s, int round, const char *mine, pons_error *err)
{
    const predict_work *w = s->work;
    int size = group_size(s->group);

    if (group_all_gather(s->group, mine, w->record_size, s->records, err) != PONS_OK)
        return err->status;
    for (int r = 0; r < size && round * size + r < w->count && err->status == PONS_OK; r++)
        w->tell(w->context, round * size + r, record_at(s, r), err);
    return err->status;
}

static pons_status take_record(prediction *s, int number, const volume_grid *grid, char *record,
                               pons_error *err)
{
    const predict_work *w = s->work;
    predict_result r = { .grid = *grid };

    if (s->failure.status != PONS_OK)
        w->take(w->context, number, NULL, &s->failure, record, err);
    else if ((s->count == 1 || bring_back_sums(s, grid, err) == PONS_OK)
             && predict_back_finish(s->back, &r, err) == PONS_OK)
        w->take(w->context, number, &r, NULL, record, err);
    pons_volume_clear(&r.classes);
    pons_volume_clear(&r.logits);
    pons_volume_clear(&r.probabilities);
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
            tell_round(s, number / group_size(s->group), record, err);
        else
            w->tell(w->context, number, record, err);
    }
    free(record);
    return err->status;
}

static void clear_case(prediction *s)
{
    predict_back_close(s->back);
    s->back = NULL;
    pons_volume_clear(&s->logits);
    pons_volume_clear(&s->probabilities);
    s->failure = (pons_error)PONS_ERROR_INIT;
}

static void say(logger *l, char *notes)
{
    for (char *line; notes != NULL && (line = strsep(&notes, "\n")) != NULL; )
        if (*line != '\0')
            log_line(l, "%s", line);
}

static pons_status finish(void *context, int number, spread_volume *v, pons_error *err)
{
    prediction *s = context;
    int member = number % s->count;
    member_case *m = v->held;

    say(s->p[member]->log, m->notes);
    pons_volume_clear(&m->c.image);
    if (s->failure.status == PONS_OK)
        s->failure = m->problem;
    if (member < s->count - 1)
        return PONS_OK;
    take_case(s, case_of(s, number), &m->grid, err);
    clear_case(s);
    return err->status;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Asked before every batch: a sign of progress for the watch. */
static bool note_progress(void *context)
{
    const prediction *s = context;

    if (s->group != NULL)
        group_note(s->group, 0, "prediction");
    return false;
}

/* What is left to be told when all cases of this process are done. */
static pons_status tell_rest(prediction *s, pons_error *err)
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
        tell_round(s, w->count / size, nothing, err);
        free(nothing);
    }
    return err->status;
}

/* Files that cannot be read are not known here, and told of in their turn. */
static pons_status agree_on_files(group *g, const predict_work *w, const char *const *name,
                                  pons_error *err)
{
    fingerprint *content = calloc((size_t)w->count + 1, sizeof *content);

    if (content == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a list of %d cases", w->count);
    for (int n = 0; n < w->count; n++) {
        const predict_input *i = &w->input[n];
        const data_case files = { .image = i->file, .image_count = i->file_count };
        pons_error unread = PONS_ERROR_INIT;

        case_source(&files, &content[n], &unread);
    }
    agreement_on_contents(g, w->count, name, content, err);
    free(content);
    return err->status;
}

/* Compare case contents between processes that share windows: each of them reads every case. */
static pons_status agree(const prediction *s, pons_error *err)
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
        agree_on_files(s->group, w, name, err);
    free(name);
    return err->status;
}

pons_status predict_run(int count, predictor *const *p, const predict_work *work, pons_error *err)
{
    group *g = p[0]->processes.group;
    int size = g != NULL ? group_size(g) : 1, share = work->count;
    prediction s = { .count = count, .p = p, .work = work, .group = g,
                     .windows = g != NULL && work->count < size, .problem = PONS_ERROR_INIT,
                     .failure = PONS_ERROR_INIT };

    if (g != NULL && !s.windows)
        share = ceil_div_int(work->count - group_rank(g), size);
    s.records = calloc((size_t)(work->count > size ? work->count : size) + 1,
                       work->record_size + 1);
    if (s.records == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    const spread_work cases = {
        .count = count * share, .shared = s.windows ? g : NULL, .prepare = prepare,
        .take = take, .finish = finish, .release = release, .stop = note_progress, .context = &s
    };
    if (agree(&s, err) == PONS_OK && spread_run(&p[0]->replicas, &cases, err) == PONS_OK)
        tell_rest(&s, err);
    shortage_hint(&p[0]->experiment->sections, SHORTAGE_PREDICT, err);
    pons_volume_clear(&s.image);
    clear_case(&s);
    free(s.records);
    return err->status;
}
