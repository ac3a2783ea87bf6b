/*
 * classification_score.c - the probabilities of the validation cases, exchanged between processes,
 * and the metrics of all of them.
 */
#include "evaluate/classification_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "cluster/group/group.h"
#include "data/case/case_read.h"
#include "infer/activation.h"
#include "infer/classifier.h"

/* ---- metrics --------------------------------------------------------------------------------- */

/* The score of one image: of its class, and of the image as a whole. */
static class_score score_of(const class_ranking *r, int image)
{
    class_score s = class_score_of_counts((metric_count){ 0 });
    int place = class_ranking_place(r, image);
    bool right = class_ranking_decide(r, image) == r->label[image];

    s.count.label = 1; /* a value is missing only where no image is of the class */
    s.value[METRIC_ACCURACY] = right;
    s.value[METRIC_TOP5] = place < 5;
    s.value[METRIC_BALANCED_ACCURACY] = right;
    return s;
}

pons_status classification_summarise(const class_ranking *r, metric_summary *classes,
                                     pons_error *err)
{
    memset(classes, 0, ((size_t)r->classes + 1) * sizeof *classes);
    for (int i = 0; i < r->count; i++) {
        class_score s = score_of(r, i);

        metric_summary_add(&classes[r->label[i]], &s);
        metric_summary_add(&classes[r->classes], &s);
    }
    for (int c = 0; c < r->classes; c++) {
        double auc;

        if (class_ranking_auc(r, c, &auc, err) != PONS_OK)
            return err->status;
        classes[c].undefined[METRIC_AUC] = 0;
        classes[c].sum[METRIC_AUC] = isnan(auc) ? 0 : auc;
        classes[c].defined[METRIC_AUC] = !isnan(auc);
    }
    return PONS_OK;
}

/* ---- validation ------------------------------------------------------------------------------ */

typedef struct classification {
    const validation *validation;
    const experiment *experiment;
    int first, step;          /* batches first, first + step, ... are of this process             */
    int32_t *label;
    float *probability;       /* [cases][classes]; logits first                                   */
} classification;

static bool is_stopped(void *context)
{
    const validation *v = ((const classification *)context)->validation;

    return v->stop != NULL && v->stop(v->context);
}

static pons_status read_image(void *context, int number, float *to, pons_error *err)
{
    const classification *s = context;
    int rank = s->validation->ranks[number];
    pons_case c = { .size = sizeof c };

    if (cache_read(s->validation->cache, rank, &c, err) != PONS_OK)
        return err->status;
    if (classifier_check(s->experiment, c.name, s->experiment->data->cases[rank].image[0],
                         &c.image, err) == PONS_OK)
        memcpy(to, c.image.voxels, pons_volume_size(&c.image));
    case_clear(&c);
    if (err->status == PONS_OK && s->validation->scored != NULL)
        s->validation->scored(s->validation->context, &(scored_case){ .number = number });
    return err->status;
}

static pons_status take_labels(classification *s, pons_error *err)
{
    const validation *v = s->validation;
    const dataset *d = s->experiment->data;

    for (int i = 0; i < v->count; i++) {
        const data_case *c = &d->cases[v->ranks[i]];

        if (c->class_index < 0)
            return pons_fail(err, PONS_DATA, "validation case '%s' has no class", c->id);
        s->label[i] = c->class_index;
    }
    return PONS_OK;
}

/* Give every process the logits of all cases. One interrupted process interrupts all. */
static pons_status exchange_logits(classification *s, bool *interrupted, pons_error *err)
{
    const experiment *e = s->experiment;
    int count = s->validation->count, batch = (int)e->sections.window.batch;
    int batches = classifier_batches(e, count), rounds = ceil_div_int(batches, e->replicas);
    size_t row = (size_t)e->class_count * sizeof(float), piece = row * (size_t)batch;
    size_t size = sizeof(int64_t) + (size_t)rounds * piece;
    char *mine = calloc(1, size), *theirs = malloc(size * (size_t)e->replicas);
    int64_t flag = *interrupted;

    if (mine == NULL || theirs == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for a validation");
        goto release;
    }
    memcpy(mine, &flag, sizeof flag);
    for (int b = e->first, n = 0; b < batches; b += e->replicas, n++)
        memcpy(mine + sizeof flag + (size_t)n * piece,
               (char *)s->probability + (size_t)b * piece,
               row * (size_t)min_int(batch, count - b * batch));
    if (group_all_gather(e->group, mine, size, theirs, err) != PONS_OK)
        goto release;
    for (int r = 0; r < e->replicas; r++) {
        const char *from = theirs + size * (size_t)r;

        memcpy(&flag, from, sizeof flag);
        *interrupted = *interrupted || flag != 0;
        for (int b = r, n = 0; b < batches; b += e->replicas, n++)
            memcpy((char *)s->probability + (size_t)b * piece,
                   from + sizeof flag + (size_t)n * piece,
                   row * (size_t)min_int(batch, count - b * batch));
    }
release:
    free(mine);
    free(theirs);
    return err->status;
}

/* The number of images with a logit that is not finite. */
static int count_not_finite(const classification *s)
{
    int classes = s->experiment->class_count, images = 0;

    for (int i = 0; i < s->validation->count; i++) {
        bool finite = true;
        for (int c = 0; c < classes; c++)
            finite = finite && isfinite(s->probability[(int64_t)i * classes + c]);
        images += !finite;
    }
    return images;
}

static void warn_of_logits(const classification *s)
{
    int images = count_not_finite(s);

    if (images > 0)
        log_warning(s->experiment->log, "validation: the logits of %d of %d images are not finite",
                    images, s->validation->count);
}

static pons_status score_images(classification *s, validation_result *result, pons_error *err)
{
    const validation *v = s->validation;
    const experiment *e = s->experiment;
    const classifier_work work = { .count = v->count, .first = s->first, .step = s->step,
                                   .read = read_image, .parallel = true, .stop = is_stopped,
                                   .context = s };
    pons_error problem = PONS_ERROR_INIT;

    if (take_labels(s, err) != PONS_OK)
        return err->status;
    classifier_run(v->replicas, &work, s->probability, &problem);
    result->interrupted = problem.status == PONS_INTERRUPTED;
    if (problem.status != PONS_OK && !result->interrupted)
        pons_fail(err, problem.status, "%s", problem.text);
    else if (e->group != NULL)
        exchange_logits(s, &result->interrupted, err);
    if (err->status != PONS_OK || result->interrupted)
        return err->status;
    warn_of_logits(s);
    activation_apply(e->activation, s->probability, v->count, e->class_count);
    const class_ranking r = { v->count, e->class_count, s->label, s->probability };
    result->cases = v->count;
    return classification_summarise(&r, result->classes, err);
}

pons_status classification_validate(const validation *v, validation_result *result,
                                    pons_error *err)
{
    const replicas *r = v->replicas;
    const experiment *e = r->experiment;
    classification s = { v, e, r->item[0].number / r->count, e->replicas / r->count, NULL, NULL };

    result->interrupted = false;
    s.label = calloc((size_t)v->count + 1, sizeof *s.label);
    s.probability = calloc((size_t)v->count * (size_t)e->class_count + 1, sizeof *s.probability);
    if (s.label == NULL || s.probability == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a validation");
    else
        score_images(&s, result, err);
    if (result->images && err->status == PONS_OK && !result->interrupted) {
        result->label = s.label;
        result->probability = s.probability;
        return PONS_OK;
    }
    free(s.label);
    free(s.probability);
    return err->status;
}
