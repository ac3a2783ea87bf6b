/*
 * pipeline.c - load the transforms of an INI section, fill their options, and run the
 * deterministic ones on a case.
 */
#include "data/transform/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/profile/profile.h"
#include "config/sections.h"
#include "data/transform/case_check.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_options.h"
#include "plugin/plugin_status.h"

/* Format "FILE:LINE: [SECTION] KEY" for a message. */
static void print_location(config *c, const char *section, const char *key, char *out, size_t size)
{
    const char *where = config_origin(c, section, key);

    snprintf(out, size, "%s%s[%s] %s", where ? where : "", where ? ": " : "", section, key);
}

static pons_status set_channels(config *c, const char *section, const pons_integers *list,
                                int channels, pipeline_step *step, pons_error *err)
{
    char where[512];

    step->restricted = list->count > 0;
    print_location(c, section, "channels", where, sizeof where);
    if (list->count && step->operations->geometric)
        return pons_fail(err, PONS_CONFIG, "%s: '%s' moves voxels, so it cannot be restricted to "
                         "channels", where, step->plugin);
    for (int n = 0; n < list->count; n++) {
        if (channels && list->item[n] >= channels)
            return pons_fail(err, PONS_CONFIG, "%s: found channel %lld, expected 0 to %d", where,
                             (long long)list->item[n], channels - 1);
        step->channels[list->item[n] / 64] |= UINT64_C(1) << list->item[n] % 64;
    }
    return PONS_OK;
}

static pons_status check_kind_of_step(const pipeline_step *step, const char *section, bool random,
                                      const char *where, pons_error *err)
{
    if (step->operations->plan == NULL && step->operations->apply == NULL)
        return pons_fail(err, PONS_PLUGIN, "%s: '%s' has neither 'apply' nor 'plan'", where,
                         step->plugin);
    if (random == (step->operations->plan != NULL))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: '%s' is %s, so it does not belong in [%s]\nhint: it "
                     "belongs in [%s]", where, step->plugin, random ? "deterministic" : "random",
                     section, random ? "preprocess" : "augment");
}

/* Steps of [augment] are for training alone. */
static pons_status set_cases(config *c, const char *section, bool random, int chosen,
                             pipeline_step *step, pons_error *err)
{
    static const pipeline_cases cases[] = { PIPELINE_ALL, PIPELINE_TRAINING, PIPELINE_VALIDATION };
    char where[512];

    step->cases = random ? PIPELINE_TRAINING : cases[chosen];
    if (!random || chosen == 0)
        return PONS_OK;
    print_location(c, section, "cases", where, sizeof where);
    return pons_fail(err, PONS_CONFIG, "%s: steps of [augment] change cases of training alone",
                     where);
}

static pons_status step_open(config *c, const char *list_section, const char *name, bool random,
                             int channels, pipeline_step *step, pons_error *err)
{
    char section[256], where[512];
    step_options common = { .plugin = NULL };
    const plugin *loaded;
    pons_status status;

    snprintf(section, sizeof section, "%s.%s", list_section, name);
    status = sections_fill_step(c, section, &common, err);
    if (status)
        return status;
    step->name = name;
    step->plugin = common.plugin ? common.plugin : name;
    print_location(c, common.plugin ? section : list_section, common.plugin ? "plugin" : "steps",
                   where, sizeof where);
    status = plugin_load(PONS_KIND_TRANSFORM, step->plugin, sizeof *step->operations, where,
                         &loaded, err);
    if (status)
        return status;
    step->operations = loaded->operations;
    step->options = loaded->descriptor->options;
    step->sha256 = loaded->sha256;
    step->version = loaded->descriptor->version;
    step->path = loaded->path;
    status = check_kind_of_step(step, list_section, random, where, err);
    if (!status) {
        size_t size = loaded->descriptor->config_size;

        step->config = calloc(1, size ? size : 1);
        if (!step->config)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        status = plugin_options_fill(c, section, loaded, (void *)step->config, err);
    }
    if (!status)
        status = set_channels(c, section, &common.channels, channels, step, err);
    if (!status)
        status = set_cases(c, section, random, common.cases, step, err);
    return status;
}

static pons_status fill_step_list(config *c, const char *section, steps_options *list,
                                  pons_error *err)
{
    for (const section_table *t = section_tables; t->name; t++)
        if (!strcmp(t->name, section))
            return config_fill(c, section, t->options, list, err);
    return pons_fail(err, PONS_FAILURE, "[%s] has no steps", section);
}

/* Step names must differ, since a name is also a section. */
static pons_status check_repeats(config *c, const char *section, const pons_texts *steps,
                                 pons_error *err)
{
    char where[512];

    print_location(c, section, "steps", where, sizeof where);
    for (int n = 0; n < steps->count; n++)
        for (int other = 0; other < n; other++)
            if (!strcmp(steps->item[n], steps->item[other]))
                return pons_fail(err, PONS_CONFIG, "%s: '%s' occurs twice, expected a name of its "
                                 "own for each step\nhint: '%s_2' with [%s.%s_2] plugin = %s",
                                 where, steps->item[n], steps->item[n], section, steps->item[n],
                                 steps->item[n]);
    return PONS_OK;
}

const char *pipeline_cropping_step(const pipeline *augment)
{
    for (int i = 0; augment != NULL && i < augment->count; i++)
        if (augment->step[i].operations->crops)
            return augment->step[i].name;
    return NULL;
}

/* Two boxes of one patch would contradict each other. */
static pons_status check_crops(const pipeline *chain, pons_error *err)
{
    const char *first = pipeline_cropping_step(chain);

    for (int i = 0; i < chain->count; i++)
        if (chain->step[i].operations->crops && strcmp(chain->step[i].name, first) != 0)
            return pons_fail(err, PONS_CONFIG, "[augment] '%s' and '%s' both choose the box of a "
                             "patch, expected one such step", first, chain->step[i].name);
    return PONS_OK;
}

pons_status pipeline_open(config *c, const char *section, bool random, int channels,
                          pipeline **out, pons_error *err)
{
    steps_options list = { .steps = { 0, NULL } };
    pipeline *chain;
    pons_status status = fill_step_list(c, section, &list, err);

    if (!status)
        status = check_repeats(c, section, &list.steps, err);
    if (status)
        return status;
    chain = calloc(1, sizeof *chain);
    if (chain)
        chain->step = calloc((size_t)list.steps.count + 1, sizeof *chain->step);
    if (!chain || !chain->step) {
        free(chain);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    while (chain->count < list.steps.count && !status) {
        pipeline_step *step = &chain->step[chain->count++];

        status = step_open(c, section, list.steps.item[chain->count - 1], random, channels, step,
                           err);
    }
    if (!status)
        status = check_crops(chain, err);
    if (status) {
        pipeline_close(chain);
        return status;
    }
    *out = chain;
    return PONS_OK;
}

void pipeline_close(pipeline *chain)
{
    if (!chain)
        return;
    for (int n = 0; n < chain->count; n++)
        free((void *)chain->step[n].config);
    free(chain->step);
    free(chain);
}

typedef struct warning_receiver {
    logger *l;
    const char *name;
} warning_receiver;

static void receive_warning(void *target, const char *text)
{
    const warning_receiver *r = target;

    log_warning(r->l, "case '%s': %s", r->name, text);
}

pons_transform_scope volume_step_scope(const pipeline_step *step)
{
    return (pons_transform_scope){ .size = sizeof(pons_transform_scope),
                                   .word_count = STEP_CHANNEL_WORDS,
                                   .channels = step->restricted ? step->channels : NULL };
}

bool pipeline_moves_alike(const pipeline *chain)
{
    for (int i = 0; chain != NULL && i < chain->count; i++)
        if (chain->step[i].operations->geometric && chain->step[i].cases != PIPELINE_ALL)
            return false;
    return true;
}

bool pipeline_tells_cases(const pipeline *chain)
{
    for (int i = 0; chain != NULL && i < chain->count; i++)
        if (chain->step[i].cases != PIPELINE_ALL)
            return true;
    return false;
}

const double *pipeline_step_axes(const pipeline_step *step, const char *name)
{
    const pons_option *o = option_find(step->options, name);

    return o != NULL && o->type == PONS_OPTION_REAL_AXES
           ? (const void *)((const char *)step->config + o->offset) : NULL;
}

bool pipeline_has(const pipeline *chain, const char *plugin)
{
    for (int i = 0; chain != NULL && i < chain->count; i++)
        if (strcmp(chain->step[i].plugin, plugin) == 0)
            return true;
    return false;
}

pons_status pipeline_apply(const pipeline *chain, pipeline_cases cases, pons_case *c, logger *l,
                           pons_error *err)
{
    warning_receiver to = { l, c->name ? c->name : "?" };

    for (int n = 0; n < chain->count; n++) {
        const pipeline_step *step = &chain->step[n];
        pons_transform_scope scope = volume_step_scope(step);
        pons_case was = *c;
        pons_error inner = PONS_ERROR_INIT;
        pons_status status;

        if ((step->cases & cases) == 0)
            continue;
        scope.warn = l ? receive_warning : NULL;
        scope.receiver = &to;
        host_range_begin(RANGE_TRANSFORM, step->name);
        status = step->operations->apply(step->config, &scope, c, &inner);
        host_range_end();
        if (plugin_status(status, "the transform", "apply", &inner) != PONS_OK
            || case_check(c, &was, &inner) != PONS_OK)
            return pons_fail(err, inner.status, "case '%s', step '%s': %s", to.name, step->name,
                             inner.text);
    }
    return PONS_OK;
}

/* A transform that only turns the map needs no nodes. */
bool pipeline_device_can(const pons_transform_operations *o)
{
    bool told = o->build != NULL && o->numbers != NULL;

    return !o->resamples && !o->crops && (told || (o->apply_patch == NULL && o->build == NULL));
}

pons_status pipeline_check_device(const pipeline *augment, pons_error *err)
{
    for (int i = 0; i < augment->count; i++) {
        const pipeline_step *s = &augment->step[i];
        const pons_transform_operations *o = s->operations;

        if (!pipeline_device_can(o))
            return pons_fail(err, PONS_CONFIG, "[augment] '%s': transform '%s' works on the host "
                             "only, which [data] cache = device does not allow\n"
                             "hint: --set data.cache=memory, or steps without '%s'", s->name,
                             s->plugin, s->name);
        if (o->build != NULL && (o->number_count < (o->voxel_normals ? 0 : 1)
                                 || o->number_count > PONS_SAMPLE_PARAMS_MAX))
            return pons_fail(err, PONS_PLUGIN, "transform '%s' has %d numbers, expected 1 to %d",
                             s->plugin, o->number_count, PONS_SAMPLE_PARAMS_MAX);
    }
    return PONS_OK;
}
