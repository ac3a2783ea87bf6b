/*
 * validation_loss.c - micro-batches of validation patches, divided between replicas.
 */
#include "evaluate/validation_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "cluster/group/group.h"
#include "experiment/data_settings.h"
#include "replica/input_copy.h"

typedef struct loss_batches {
    const validation *validation;
    int count, share;         /* micro-batches in all; of a replica, the last ones have fewer     */
    double *value;            /* [replicas of the run x share]                                    */
} loss_batches;

static int batch_count(const experiment *e, int cases)
{
    return ceil_div_int(cases, (int)e->sections.train.batch);
}

static int batch_share(const experiment *e, int cases)
{
    return ceil_div_int(batch_count(e, cases), e->replicas);
}

pons_status validation_loss_open(replicas *r, cache *cases, int count, const int *ranks,
                                 pons_error *err)
{
    const experiment *e = r->experiment;
    loader_settings s;

    loader_settings_fill(&e->sections, &s);
    memcpy(s.extent, e->patch, sizeof s.extent);
    s.count = batch_share(e, count);
    s.micro_batches = batch_count(e, count);
    s.validation = true;
    s.threads = 0;
    for (int i = 0; i < r->count && err->status == PONS_OK; i++) {
        s.first = r->item[i].number * s.count;
        loader_open(cases, count, ranks, NULL, &s, &r->item[i].validation, err);
    }
    return err->status;
}

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status read_loss(program *p, double *out, pons_error *err)
{
    pons_tensor tensor;
    const void *value = program_output(p, 0, &tensor);

    if (value == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot read the loss of a validation from the device");
    *out = tensor.type == PONS_F64 ? *(const double *)value : *(const float *)value;
    return PONS_OK;
}

static pons_status compute_batch(const loss_batches *b, replica *r, int number, pons_error *err)
{
    const experiment *e = b->validation->replicas->experiment;
    const loader_batch *batch;

    if (loader_next(r->validation, &batch, err) != PONS_OK
        || input_copy_give(r, r->loss, e, batch, err) != PONS_OK)
        return err->status;
    program_set_sample(r->loss, 0, (uint64_t)number);
    return program_evaluate(r->loss, err) == PONS_OK ? read_loss(r->loss, &b->value[number], err)
                                                     : err->status;
}

static pons_status compute_share(void *context, replica *r, pons_error *err)
{
    const loss_batches *b = context;
    const validation *v = b->validation;
    int first = r->number * b->share, end = min_int(first + b->share, b->count);

    if (loader_seek(r->validation, 0, err) != PONS_OK)
        return err->status;
    for (int n = first; n < end && err->status == PONS_OK; n++) {
        if (v->stop != NULL)
            v->stop(v->context);
        compute_batch(b, r, n, err);
    }
    return err->status;
}

/* Processes have their replicas in a row. */
static pons_status exchange_values(const loss_batches *b, pons_error *err)
{
    const replicas *r = b->validation->replicas;
    size_t size = (size_t)(r->count * b->share) * sizeof *b->value;
    double *mine = malloc(size);

    if (mine == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the loss of a validation");
    memcpy(mine, b->value + r->item[0].number * b->share, size);
    group_all_gather(r->experiment->group, mine, size, b->value, err);
    free(mine);
    return err->status;
}

pons_status validation_loss_run(const validation *v, double *out, pons_error *err)
{
    const experiment *e = v->replicas->experiment;
    loss_batches b = { v, batch_count(e, v->count), batch_share(e, v->count), NULL };
    double sum = 0;

    b.value = calloc((size_t)(b.share * e->replicas), sizeof *b.value);
    if (b.value == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the loss of a validation");
    if (replicas_run(v->replicas, compute_share, &b, err) == PONS_OK && e->group != NULL)
        exchange_values(&b, err);
    for (int n = 0; n < b.count; n++)
        sum += b.value[n];
    if (err->status == PONS_OK)
        *out = sum / b.count;
    free(b.value);
    return err->status;
}
