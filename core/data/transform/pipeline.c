/*
 * volume_chain - turn 'steps' of an INI section into loaded plugins with filled options, and run
 * the deterministic ones over a case.
 */
#include "data/transform/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "config/sections.h"
#include "data/transform/case_check.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_status.h"

/* "FILE:LINE: [SECTION] KEY", for messages. */
static void where_of(config *c, const char *section, const char *key, char *out, size_t size)
{
    const char *where = config_where(c, section, key);

    snprintf(out, size, "%s%s[%s] %s", where ? where : "", where ? ": " : "", section, key);
}

static pons_status take_channels(config *c, const char *section, const pons_integers *list,
                                 int channels, volume_step *step, pons_error *err)
{
    char where[512];

    step->channels = list->count ? 0 : PONS_CHANNELS_ALL;
    where_of(c, section, "channels", where, sizeof where);
    if (list->count && step->operations->geometric)
        return pons_fail(err, PONS_CONFIG, "%s: '%s' moves voxels, so it cannot be restricted to "
                         "channels", where, step->plugin);
    for (int n = 0; n < list->count; n++) {
        if (channels && list->item[n] >= channels)
            return pons_fail(err, PONS_CONFIG, "%s: found channel %lld, expected 0 to %d", where,
                             (long long)list->item[n], channels - 1);
        step->channels |= UINT64_C(1) << list->item[n];
    }
    return PONS_OK;
}

static pons_status check_half(const volume_step *step, const char *section, bool random,
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

static pons_status check_options(config *c, const volume_step *step, const char *section,
                                 pons_error *err)
{
    pons_error inner = PONS_ERROR_INIT;

    if (step->operations->check == NULL
        || plugin_answer(step->operations->check(step->config, &inner), "the transform", "check",
                         &inner) == PONS_OK)
        return PONS_OK;
    pons_fail(err, inner.status, "[%s] %s", section, inner.text);
    return config_blame(c, section, NULL, err);
}

static pons_status step_open(config *c, const char *list_section, const char *name, bool random,
                             int channels, volume_step *step, pons_error *err)
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
    where_of(c, common.plugin ? section : list_section, common.plugin ? "plugin" : "steps", where,
             sizeof where);
    status = plugin_load(PONS_KIND_TRANSFORM, step->plugin, sizeof *step->operations, where,
                         &loaded, err);
    if (status)
        return status;
    step->operations = loaded->operations;
    step->options = loaded->descriptor->options;
    step->sha256 = loaded->sha256;
    step->version = loaded->descriptor->version;
    status = check_half(step, list_section, random, where, err);
    if (!status) {
        size_t size = loaded->descriptor->config_size;

        step->config = calloc(1, size ? size : 1);
        if (!step->config)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        status = config_fill(c, section, step->options, (void *)step->config, err);
    }
    if (!status)
        status = take_channels(c, section, &common.channels, channels, step, err);
    if (!status)
        status = check_options(c, step, section, err);
    return status;
}

static pons_status list_fill(config *c, const char *section, steps_options *list, pons_error *err)
{
    for (const section_table *t = section_tables; t->name; t++)
        if (!strcmp(t->name, section))
            return config_fill(c, section, t->options, list, err);
    return pons_fail(err, PONS_FAILURE, "[%s] has no steps", section);
}

/* A step's name is that of its section. */
static pons_status check_repeats(config *c, const char *section, const pons_texts *steps,
                                 pons_error *err)
{
    char where[512];

    where_of(c, section, "steps", where, sizeof where);
    for (int n = 0; n < steps->count; n++)
        for (int other = 0; other < n; other++)
            if (!strcmp(steps->item[n], steps->item[other]))
                return pons_fail(err, PONS_CONFIG, "%s: '%s' occurs twice, expected a name of its "
                                 "own for each step\nhint: '%s_2' with [%s.%s_2] plugin = %s",
                                 where, steps->item[n], steps->item[n], section, steps->item[n],
                                 steps->item[n]);
    return PONS_OK;
}

pons_status volume_chain_open(config *c, const char *section, bool random, int channels,
                              volume_chain **out, pons_error *err)
{
    steps_options list = { .steps = { 0, NULL } };
    volume_chain *chain;
    pons_status status = list_fill(c, section, &list, err);

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
        volume_step *step = &chain->step[chain->count++];

        status = step_open(c, section, list.steps.item[chain->count - 1], random, channels, step,
                           err);
    }
    if (status) {
        volume_chain_close(chain);
        return status;
    }
    *out = chain;
    return PONS_OK;
}

void volume_chain_close(volume_chain *chain)
{
    if (!chain)
        return;
    for (int n = 0; n < chain->count; n++)
        free((void *)chain->step[n].config);
    free(chain->step);
    free(chain);
}

typedef struct receiver {
    logger *l;
    const char *name;
} receiver;

static void receive_warning(void *target, const char *text)
{
    const receiver *r = target;

    log_warning(r->l, "case '%s': %s", r->name, text);
}

bool volume_chain_has(const volume_chain *chain, const char *plugin)
{
    for (int i = 0; chain != NULL && i < chain->count; i++)
        if (strcmp(chain->step[i].plugin, plugin) == 0)
            return true;
    return false;
}

pons_status volume_chain_apply(const volume_chain *chain, pons_case *c, logger *l, pons_error *err)
{
    receiver to = { l, c->name ? c->name : "?" };

    for (int n = 0; n < chain->count; n++) {
        const volume_step *step = &chain->step[n];
        pons_transform_scope scope = { .size = sizeof scope, .channels = step->channels,
                                       .warn = l ? receive_warning : NULL, .receiver = &to };
        pons_case was = *c;
        pons_error inner = PONS_ERROR_INIT;
        pons_status status = step->operations->apply(step->config, &scope, c, &inner);

        if (plugin_answer(status, "the transform", "apply", &inner) != PONS_OK
            || case_check(c, &was, &inner) != PONS_OK)
            return pons_fail(err, inner.status, "case '%s', step '%s': %s", to.name, step->name,
                             inner.text);
    }
    return PONS_OK;
}

pons_status volume_chain_check_device(const volume_chain *augment, pons_error *err)
{
    for (int i = 0; i < augment->count; i++) {
        const volume_step *s = &augment->step[i];
        const pons_transform_operations *o = s->operations;
        bool told = o->build != NULL && o->numbers != NULL;

        if (!told && (o->apply_patch != NULL || o->build != NULL))
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
