/*
 * memory_hints.c - the keys that determine the memory of a run, the most effective first.
 */
#include "config/memory_hints.h"

#include <stdio.h>
#include <string.h>

enum { FP32 = 1, TF32 = 2 }; /* values of [train] precision */

typedef struct knob {
    const char *text;                       /* as the hint prints it                              */
    bool training, predicting;              /* the commands that it helps                         */
    bool (*helps)(const sections *s);
    int64_t (*value)(const sections *s);    /* value after the text; NULL: none                   */
} knob;

static bool has_batches(const sections *s)
{
    return s->train.batch > 1;
}

static int64_t batch(const sections *s)
{
    return s->train.batch;
}

static bool has_patches(const sections *s)
{
    return s->patch.per_case > 1;
}

static int64_t per_case(const sections *s)
{
    return s->patch.per_case;
}

static bool is_always_possible(const sections *s)
{
    return true;
}

static bool keeps_all(const sections *s)
{
    return !s->train.recompute;
}

static bool is_float(const sections *s)
{
    return s->train.precision == FP32 || s->train.precision == TF32;
}

static bool holds_cases(const sections *s)
{
    return s->data.cache == CACHE_MEMORY || s->data.cache == CACHE_SMART
           || s->data.cache == CACHE_DEVICE;
}

static bool replaces_cases(const sections *s)
{
    return s->data.cache == CACHE_SMART;
}

static bool has_windows(const sections *s)
{
    return s->window.batch > 1;
}

static int64_t windows(const sections *s)
{
    return s->window.batch;
}

static const knob knobs[] = {
    { "[train] a smaller batch", true, false, has_batches, batch },
    { "[train] precision = bf16", true, true, is_float, NULL },
    { "[train] recompute = yes", true, false, keeps_all, NULL },
    { "[patch] a smaller per_case", true, false, has_patches, per_case },
    { "[patch] a smaller extent", true, false, is_always_possible, NULL },
    { "[window] a smaller batch", true, true, has_windows, windows },
    { "[window] a smaller extent", false, true, is_always_possible, NULL },
    { "[data] a smaller smart_share", true, false, replaces_cases, NULL },
    { "[data] a cache_limit, or cache = disk", true, false, holds_cases, NULL },
};

void memory_hints_add(const sections *s, memory_hints_command where, pons_error *err)
{
    size_t used = strlen(err->text), room = sizeof err->text;
    const char *between = "\nhint: what needs less memory: ";

    if (err->status != PONS_DEVICE || strstr(err->text, "out of memory") == NULL
        || strstr(err->text, "\nhint: ") != NULL)
        return;
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs && used < room; i++) {
        const knob *k = &knobs[i];

        if (!(where == MEMORY_HINTS_PREDICT ? k->predicting : k->training)
            || (s != NULL && !k->helps(s)))
            continue;
        used += (size_t)snprintf(err->text + used, room - used, "%s%s", between, k->text);
        if (s != NULL && k->value != NULL && used < room)
            used += (size_t)snprintf(err->text + used, room - used, " (now %lld)",
                                     (long long)k->value(s));
        between = "; ";
    }
    if (where == MEMORY_HINTS_TRAIN && used < room)
        snprintf(err->text + used, room - used, "; 'pons explain' says how much");
}
