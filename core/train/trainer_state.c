/*
 * trainer_state.c - the numbers, options and cases of a training as trainer.safetensors.
 */
#include "train/trainer_state.h"

#include <stdlib.h>
#include <string.h>

/* Zero-terminated texts one behind the other: key, value, key, value, ... */
static int put_texts(FILE *to, const experiment *e)
{
    int pairs = 1;

    fprintf(to, "precision%c%s%c", 0, precision_name(e->precision), 0);
    if (e->debug)
        pairs += fprintf(to, SAVED_STATE_DEBUG "%cyes%c", 0, 0) > 0;
    for (int role = 0; role < CASE_ROLE_COUNT; role++, pairs++)
        fprintf(to, "%s%c%s%c", case_role_names[role], 0, e->cases.text[role], 0);
    for (int i = 0; i < config_count(e->config); i++, pairs++) {
        const char *section, *key, *value;
        config_item(e->config, i, &section, &key, &value);
        fprintf(to, "[%s] %s%c%s%c", section, key, 0, value, 0);
    }
    return pairs;
}

static pons_status make_metadata(state_content *c, const experiment *e, pons_error *err)
{
    size_t size = 0;
    FILE *to = open_memstream(&c->text, &size);
    const char *at;

    if (to == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    c->content.metadata_count = put_texts(to, e);
    if (fclose(to) != 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    c->pair = calloc((size_t)c->content.metadata_count, sizeof *c->pair);
    if (c->pair == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    at = c->text;
    for (int i = 0; i < 2 * c->content.metadata_count; i++) {
        c->pair[i / 2][i % 2] = at;
        at += strlen(at) + 1;
    }
    c->content.metadata = (const char *const (*)[2])c->pair;
    return PONS_OK;
}

pons_status state_content_make(state_content *out, const trainer_state *state, const experiment *e,
                               pons_error *err)
{
    state_content *c = out;

    *c = (state_content){ .state = *state };
    c->choices[0] = e->micro_batches;
    c->choices[1] = e->device.facts.threads;
    c->choices[2] = e->task.channels;
    saved_state_tensors(&c->state, c->choices, c->item);
    c->content.count = SAVED_TENSORS;
    c->content.item = c->item;
    if (make_metadata(c, e, err) != PONS_OK)
        state_content_clear(c);
    return err->status;
}

void state_content_clear(state_content *c)
{
    free(c->text);
    free(c->pair);
    c->text = NULL;
    c->pair = NULL;
}
