/*
 * augment.c - run the random transforms of [augment] on one sample.
 *
 * First every step is planned, in order: steps that move voxels decide the box of the case that is
 * read. Then steps that change values run on the patch, in order. The random numbers of a step
 * depend on its name and the sample alone, so removing one step does not change the others.
 */
#include "data/transform/augment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/profile/profile.h"
#include "base/random.h"
#include "plugin/plugin_status.h"

#define RECORD_ALIGNMENT 16

static pons_status check_streams(const augment *a, int count, pons_error *err)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (a->stream[i] == a->stream[j])
                return pons_fail(err, PONS_CONFIG,
                                 "the steps '%s' and '%s' of [augment] would draw the same numbers",
                                 a->steps->step[j].name, a->steps->step[i].name);
        }
    }
    return PONS_OK;
}

pons_status augment_init(augment *a, const pipeline *steps, pons_error *err)
{
    int count = steps != NULL ? steps->count : 0;
    char name[256];

    *a = (augment){ .steps = steps };
    a->stream = calloc((size_t)count + 1, sizeof *a->stream);
    a->record = calloc((size_t)count + 1, sizeof *a->record);
    if (a->stream == NULL || a->record == NULL) {
        augment_clear(a);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    for (int i = 0; i < count; i++) {
        size_t size = steps->step[i].operations->record_size + RECORD_ALIGNMENT - 1;
        snprintf(name, sizeof name, "augment.%s", steps->step[i].name);
        a->stream[i] = random_stream_hash(name);
        a->record[i + 1] = a->record[i] + size / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
    }
    if (check_streams(a, count, err) == PONS_OK)
        return PONS_OK;
    augment_clear(a);
    return err->status;
}

void augment_clear(augment *a)
{
    free(a->stream);
    free(a->record);
    *a = (augment){ .steps = NULL };
}

size_t augment_record_size(const augment *a)
{
    return a->steps != NULL ? a->record[a->steps->count] : 0;
}

pons_status augment_plan(const augment *a, const pons_rng *draws, pons_sample *sample,
                         void *records, pons_error *err)
{
    memset(records, 0, augment_record_size(a));
    for (int i = 0; a->steps != NULL && i < a->steps->count; i++) {
        const pipeline_step *step = &a->steps->step[i];
        pons_rng own = *draws;
        own.stream = a->stream[i];
        own.next = 0;
        host_range_begin(RANGE_TRANSFORM, step->name);
        pons_status status = step->operations->plan(step->config, &own, sample,
                                                    (char *)records + a->record[i], err);
        host_range_end();
        if (plugin_status(status, step->name, "plan", err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

bool augment_displaces(const augment *a)
{
    for (int i = 0; i < augment_count(a); i++)
        if (a->steps->step[i].operations->displace != NULL)
            return true;
    return false;
}

pons_status augment_displace(const augment *a, const void *records, pons_displacement *out,
                             pons_error *err)
{
    for (int i = 0; i < augment_count(a); i++) {
        const pipeline_step *step = &a->steps->step[i];
        if (step->operations->displace == NULL)
            continue;
        host_range_begin(RANGE_TRANSFORM, step->name);
        pons_status status = step->operations->displace(step->config,
                                                        (const char *)records + a->record[i], out,
                                                        err);
        host_range_end();
        if (plugin_status(status, step->name, "displace", err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

int augment_count(const augment *a)
{
    return a->steps != NULL ? a->steps->count : 0;
}

int augment_pointwise(const augment *a)
{
    int count = 0;

    while (count < augment_count(a)) {
        const pons_transform_operations *o = a->steps->step[count].operations;
        if (o->apply_patch != NULL && !o->pointwise)
            break;
        count++;
    }
    return count;
}

pons_status augment_apply(const augment *a, int begin, int end, const void *records,
                          pons_patch *patch, pons_error *err)
{
    for (int i = begin; i < end; i++) {
        const pipeline_step *step = &a->steps->step[i];
        pons_transform_scope scope = volume_step_scope(step);
        if (step->operations->apply_patch == NULL)
            continue;
        host_range_begin(RANGE_TRANSFORM, step->name);
        pons_status status = step->operations->apply_patch(step->config, &scope,
                                                           (const char *)records + a->record[i],
                                                           patch, err);
        host_range_end();
        if (plugin_status(status, step->name, "apply_patch", err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

void augment_sample_params(const augment *a, int step, const void *records, pons_sample_params *out)
{
    const pipeline_step *s = &a->steps->step[step];
    pons_transform_scope scope = volume_step_scope(s);

    s->operations->numbers(s->config, &scope, (const char *)records + a->record[step], out);
}
