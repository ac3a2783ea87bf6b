/*
 * saved_state.c - the numbers of a training in a checkpoint, read and named.
 */
#include "checkpoint/saved_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRED INT64_MIN

/* The numbers by name, and the default of one that an older checkpoint lacks. */
static const struct { const char *name; size_t offset; int64_t otherwise; } numbers[] = {
    { "step", offsetof(trainer_state, step), REQUIRED },
    { "applied", offsetof(trainer_state, applied), REQUIRED },
    { "validated", offsetof(trainer_state, validated), REQUIRED },
    { "best_step", offsetof(trainer_state, best_step), REQUIRED },
    { "best_undefined", offsetof(trainer_state, best_undefined), 0 },
    { "stale", offsetof(trainer_state, stale), REQUIRED },
    { "finished", offsetof(trainer_state, finished), REQUIRED },
    { "total", offsetof(trainer_state, total), REQUIRED },
    { "scale", offsetof(trainer_state, scale), 16 },
    { "sound", offsetof(trainer_state, sound), 0 },
};
enum { NUMBER_COUNT = sizeof numbers / sizeof numbers[0] };
static const char *const choice_names[SAVED_CHOICES] = { "micro_batches", "threads", "channels" };

static pons_status read_number(const safetensors *file, const char *path, const char *name,
                               int64_t *out, pons_error *err)
{
    const safetensor *t = safetensors_find(file, name);

    if (t == NULL || t->type != SAFETENSORS_I64 || t->count != 1)
        return pons_fail(err, PONS_DATA, "'%s' has no number '%s'", path, name);
    memcpy(out, t->data, sizeof *out);
    return PONS_OK;
}

static pons_status read_all(saved_state *s, const char *path, pons_error *err)
{
    const safetensor *best = safetensors_find(s->file, "best");
    const char *text = safetensors_metadata(s->file, "precision");
    int64_t choice[SAVED_CHOICES];

    for (int i = 0; i < NUMBER_COUNT; i++) {
        int64_t *to = (int64_t *)((char *)&s->state + numbers[i].offset);
        *to = numbers[i].otherwise;
        if ((*to == REQUIRED || safetensors_find(s->file, numbers[i].name) != NULL)
            && read_number(s->file, path, numbers[i].name, to, err) != PONS_OK)
            return err->status;
    }
    for (int i = 0; i < SAVED_CHOICES; i++) {
        if (read_number(s->file, path, choice_names[i], &choice[i], err) != PONS_OK)
            return err->status;
    }
    if (best == NULL || best->type != SAFETENSORS_F64 || best->count != 1)
        return pons_fail(err, PONS_DATA, "'%s' has no number 'best'", path);
    memcpy(&s->state.best, best->data, sizeof s->state.best);
    s->micro_batches = (int)choice[0];
    s->threads = (int)choice[1];
    s->channels = (int)choice[2];
    s->precision = text != NULL ? precision_named(text) : PRECISION_AUTO;
    s->debug = safetensors_metadata(s->file, SAVED_STATE_DEBUG) != NULL;
    return PONS_OK;
}

pons_status saved_state_read(const char *checkpoint, saved_state *out, pons_error *err)
{
    saved_state s = { .file = NULL };
    char *path = NULL;

    if (asprintf(&path, "%s/" SAVED_STATE_FILE, checkpoint) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (safetensors_open(path, &s.file, err) == PONS_OK && read_all(&s, path, err) == PONS_OK)
        *out = s;
    else
        safetensors_close(s.file);
    free(path);
    return err->status;
}

void saved_state_clear(saved_state *s)
{
    safetensors_close(s->file);
    *s = (saved_state){ .file = NULL };
}

_Static_assert((int)NUMBER_COUNT + (int)SAVED_CHOICES + 1 == (int)SAVED_TENSORS,
               "a tensor for each number");

void saved_state_tensors(const trainer_state *state, const int64_t choices[SAVED_CHOICES],
                         safetensor out[SAVED_TENSORS])
{
    int n = 0;

    for (int i = 0; i < NUMBER_COUNT; i++)
        out[n++] = (safetensor){ .name = numbers[i].name, .type = SAFETENSORS_I64,
                                 .data = (const char *)state + numbers[i].offset };
    for (int i = 0; i < SAVED_CHOICES; i++)
        out[n++] = (safetensor){ .name = choice_names[i], .type = SAFETENSORS_I64,
                                 .data = &choices[i] };
    out[n] = (safetensor){ .name = "best", .type = SAFETENSORS_F64, .data = &state->best };
}
