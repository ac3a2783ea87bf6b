/*
 * augment.c - run a chain of random transforms on one sample.
 *
 * All steps are planned first, in order, because those that move voxels decide which box of the
 * case is read; then those that change values run on the patch, in order. A step's numbers depend
 * on its name and the sample alone, so that taking one step out leaves the others' as they were.
 */
#include "data/transform/augment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                                 a->chain->step[j].name, a->chain->step[i].name);
        }
    }
    return PONS_OK;
}

pons_status augment_init(augment *a, const volume_chain *chain, pons_error *err)
{
    int count = chain != NULL ? chain->count : 0;
    char name[256];

    *a = (augment){ .chain = chain };
    a->stream = calloc((size_t)count + 1, sizeof *a->stream);
    a->record = calloc((size_t)count + 1, sizeof *a->record);
    if (a->stream == NULL || a->record == NULL) {
        augment_clear(a);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    for (int i = 0; i < count; i++) {
        size_t size = chain->step[i].operations->record_size + RECORD_ALIGNMENT - 1;
        snprintf(name, sizeof name, "augment.%s", chain->step[i].name);
        a->stream[i] = stream_hash(name);
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
    *a = (augment){ .chain = NULL };
}

size_t augment_record_size(const augment *a)
{
    return a->chain != NULL ? a->record[a->chain->count] : 0;
}

pons_status augment_plan(const augment *a, const pons_rng *draws, pons_sample *sample,
                         void *records, pons_error *err)
{
    memset(records, 0, augment_record_size(a));
    for (int i = 0; a->chain != NULL && i < a->chain->count; i++) {
        const volume_step *step = &a->chain->step[i];
        pons_rng own = *draws;
        own.stream = a->stream[i];
        own.next = 0;
        pons_status status = step->operations->plan(step->config, &own, sample,
                                                    (char *)records + a->record[i], err);
        if (plugin_answer(status, step->name, "plan", err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

int augment_count(const augment *a)
{
    return a->chain != NULL ? a->chain->count : 0;
}

int augment_pointwise(const augment *a)
{
    int count = 0;

    while (count < augment_count(a)) {
        const pons_transform_operations *o = a->chain->step[count].operations;
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
        const volume_step *step = &a->chain->step[i];
        pons_transform_scope scope = { .size = sizeof scope, .channels = step->channels };
        if (step->operations->apply_patch == NULL)
            continue;
        pons_status status = step->operations->apply_patch(step->config, &scope,
                                                           (const char *)records + a->record[i],
                                                           patch, err);
        if (plugin_answer(status, step->name, "apply_patch", err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

void augment_numbers(const augment *a, int step, const void *records, pons_sample_params *out)
{
    const volume_step *s = &a->chain->step[step];
    pons_transform_scope scope = { .size = sizeof scope, .channels = s->channels };

    s->operations->numbers(s->config, &scope, (const char *)records + a->record[step], out);
}
