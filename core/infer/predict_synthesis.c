/*
 * predict_synthesis.c - make a modality of each case, in order: read and preprocess the others,
 * sample, resample to the file's grid.
 *
 * The target's file is never read: another channel stands in its place until the sampler takes it.
 * So a case with and one without the file have the same result. Processes divide the cases.
 */
#include "infer/infer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "data/case/case_read.h"
#include "data/volume/inverse_resample.h"
#include "experiment/agreement.h"
#include "infer/diffusion_sampler.h"

/* A case in work. */
typedef struct synthesis {
    predictor *predictor;
    const predict_work *work;
    const predict_input *input;
    pons_case c;
    float *made;              /* [voxels of the preprocessed image]                               */
    predict_result result;
} synthesis;

/* ---- a case ---------------------------------------------------------------------------------- */

static void copy_channel(volume *image, int from, int to)
{
    float *x = image->voxels;
    int64_t count = pons_volume_count(image);

    for (int64_t i = 0; i < count; i++)
        x[i * image->channels + to] = x[i * image->channels + from];
}

static pons_status read_others(synthesis *s, pons_error *err)
{
    predict_input in = *s->input;
    int target = in.target, other = target == 0 ? 1 : 0;
    int channels = s->predictor->experiment->task.channels;
    const char **file = calloc((size_t)in.file_count + 1, sizeof *file);
    volume *image = &s->c.image;

    if (file == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (in.file_count > 0)
        memcpy(file, in.file, (size_t)in.file_count * sizeof *file);
    if (in.file_count > 1)
        file[target] = file[other];
    in.file = file;
    predict_read(&in, image, &s->result.grid, err);
    free(file);
    if (err->status == PONS_OK && image->channels != channels)
        pons_fail(err, PONS_DATA, "case '%s' has %d channel%s, the network expects %d", in.name,
                  image->channels, image->channels == 1 ? "" : "s", channels);
    if (err->status == PONS_OK)
        copy_channel(image, other, target);
    return err->status;
}

static bool stop_due(void *context)
{
    const synthesis *s = context;

    return predict_stop_due(s->work, s->predictor->experiment->group);
}

static void tell_progress(void *context, double share)
{
    const synthesis *s = context;
    const int64_t *extent = s->result.grid.extent;

    if (s->work->progress != NULL)
        s->work->progress(s->work->context, (int)(s->input - s->work->input), share,
                          extent[0] * extent[1] * extent[2]);
}

static pons_status sample_image(synthesis *s, pons_error *err)
{
    const volume *image = &s->c.image;
    diffusion_request q = { .network = &s->predictor->replicas, .image = image->voxels,
                            .target = s->input->target, .name = s->input->name,
                            .stop = stop_due, .progress = tell_progress, .context = s };

    memcpy(q.extent, image->extent, sizeof q.extent);
    s->made = malloc((size_t)pons_volume_count(image) * sizeof *s->made);
    if (s->made == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the image of case '%s'", q.name);
    return diffusion_sample(&q, s->made, err);
}

/* Resample to the file's grid, where -1, the lowest intensity, surrounds the image. */
static pons_status restore_image(synthesis *s, pons_error *err)
{
    const volume *image = &s->c.image;
    volume from = { .type = PONS_F32, .channels = 1 };
    inverse_resample *inverse = NULL;

    memcpy(from.extent, image->extent, sizeof from.extent);
    volume_copy_position(&from, image);
    if (inverse_resample_open(&from, &s->result.grid, &inverse, err) == PONS_OK
        && inverse_resample_start(inverse, INVERSE_RESAMPLE_VALUES, -1, 0, &s->result.image, err)
           == PONS_OK)
        inverse_resample_planes(inverse, INVERSE_RESAMPLE_VALUES, s->made, 0, from.extent[0],
                                &s->result.image);
    inverse_resample_close(inverse);
    return err->status;
}

static pons_status make_image(synthesis *s, pons_error *err)
{
    const predict_member one = { .count = 1, .at = 0, .all = &s->predictor };
    bool foreign = false;

    if (read_others(s, err) != PONS_OK
        || pipeline_apply(s->predictor->experiment->preprocess, PIPELINE_VALIDATION, &s->c,
                          s->predictor->log, err)
           != PONS_OK
        || predict_foreign(&one, &s->c, s->work->force, &foreign, s->predictor->log, err)
           != PONS_OK
        || sample_image(s, err) != PONS_OK)
        return err->status;
    return restore_image(s, err);
}

/* Make a case and give it to 'take'; a case that cannot be read is reported there too. */
static pons_status take_case(predictor *p, const predict_work *w, int number, void *record,
                             pons_error *err)
{
    synthesis s = { .predictor = p, .work = w, .input = &w->input[number] };
    pons_error problem = PONS_ERROR_INIT;

    s.c = (pons_case){ .size = sizeof s.c, .name = s.input->name };
    if (make_image(&s, &problem) == PONS_OK)
        w->take(w->context, number, &s.result, NULL, record, err);
    else if (problem.status == PONS_DATA)
        w->take(w->context, number, NULL, &problem, record, err);
    else
        pons_fail(err, problem.status, "%s", problem.text);
    case_clear(&s.c);
    pons_volume_clear(&s.result.image);
    free(s.made);
    return err->status;
}

/* ---- all cases ------------------------------------------------------------------------------- */

/* One case in each process; then all processes know the records of these cases. */
static pons_status run_round(predictor *p, const predict_work *w, int first, char *mine, char *all,
                             pons_error *err)
{
    group *g = p->experiment->group;
    int size = g != NULL ? group_size(g) : 1, rank = g != NULL ? group_rank(g) : 0;

    memset(mine, 0, w->record_size);
    if (first + rank < w->count && take_case(p, w, first + rank, mine, err) != PONS_OK)
        return err->status;
    if (g == NULL)
        return w->tell(w->context, first, mine, err);
    if (group_all_gather(g, mine, w->record_size, all, err) != PONS_OK)
        return err->status;
    for (int r = 0; r < size && first + r < w->count && err->status == PONS_OK; r++)
        w->tell(w->context, first + r, all + (size_t)r * w->record_size, err);
    return err->status;
}

pons_status predict_compare_names(group *g, const predict_work *w, pons_error *err)
{
    const char **name = malloc((size_t)w->count * sizeof *name + 1);

    if (name == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a list of %d cases", w->count);
    for (int n = 0; n < w->count; n++)
        name[n] = w->input[n].name;
    agreement_on_names(g, w->count, name, err);
    free(name);
    return err->status;
}

pons_status predict_synthesis(int count, predictor *const *p, const predict_work *work,
                              pons_error *err)
{
    group *g = p[0]->experiment->group;
    int size = g != NULL ? group_size(g) : 1;
    char *records = malloc((size_t)(size + 1) * (work->record_size + 1));

    if (records == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (g != NULL)
        predict_compare_names(g, work, err);
    for (int first = 0; first < work->count && err->status == PONS_OK; first += size)
        run_round(p[0], work, first, records, records + work->record_size + 1, err);
    free(records);
    return err->status;
}
