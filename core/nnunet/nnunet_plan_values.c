/*
 * nnunet_plan_values.c - the normalisation of each channel as steps of [preprocess].
 *
 * Channels of one scheme share a step. Those under a mask come first, since the mask is found in
 * the image as it was read.
 */
#include "nnunet/nnunet_plan.h"

#include <math.h>
#include <string.h>

typedef struct value_scheme {
    const char *class;        /* nnU-Net's                                                        */
    const char *step;
    const char *word;         /* value of the option 'scheme'                                     */
    bool mask;
} value_scheme;

static const value_scheme schemes[] = {
    { "ZScoreNormalization", "normalize_masked", "zscore", true },
    { "ZScoreNormalization", "normalize", "zscore", false },
    { "CTNormalization", "normalize_ct", "ct", false },
    { "RescaleTo01Normalization", "rescale", "rescale_to_0_1", false },
    { "RGBTo01Normalization", "rgb", "rgb_to_0_1", false },
    { "NoNormalization", "nonorm", "nonorm", false },
};

enum { SCHEMES = sizeof schemes / sizeof *schemes, CHANNELS_MAX = 1024 };

typedef struct channel_schemes {
    int count;
    const value_scheme *of[CHANNELS_MAX];
} channel_schemes;

/* The row of a channel; NULL: there is none. Only z-scores know the mask. */
static const value_scheme *scheme_of(const char *class, bool mask)
{
    for (int i = 0; class != NULL && i < SCHEMES; i++)
        if (strcmp(schemes[i].class, class) == 0
            && (schemes[i].mask == mask || strcmp(schemes[i].word, "zscore") != 0))
            return &schemes[i];
    return NULL;
}

static void read_schemes(const nnunet_plan *p, const nnunet_json *c, channel_schemes *out)
{
    const json_t *names = nnunet_json_member(c, "normalization_schemes");
    const json_t *masks = nnunet_json_member(c, "use_mask_for_norm");

    if (c->err->status != PONS_OK)
        return;
    if ((int)json_array_size(names) != p->channels || p->channels > CHANNELS_MAX)
        nnunet_json_refuse(c, "normalization_schemes",
                           arena_format(p->memory, "one for each of %d channels", p->channels));
    if ((int)json_array_size(masks) != p->channels)
        nnunet_json_refuse(c, "use_mask_for_norm",
                           arena_format(p->memory, "one for each of %d channels", p->channels));
    for (out->count = 0; out->count < p->channels && c->err->status == PONS_OK; out->count++) {
        const json_t *mask = json_array_get(masks, (size_t)out->count);
        const char *name = json_string_value(json_array_get(names, (size_t)out->count));
        out->of[out->count] = scheme_of(name, json_is_true(mask));
        if (!json_is_boolean(mask))
            nnunet_json_refuse(c, "use_mask_for_norm", "true or false for each channel");
        if (out->of[out->count] == NULL)
            nnunet_json_refuse(c, "normalization_schemes", "ZScoreNormalization, CTNormalization, "
                               "RescaleTo01Normalization, RGBTo01Normalization or NoNormalization");
    }
}

static const char *channels_of(const nnunet_plan *p, const channel_schemes *s,
                               const value_scheme *scheme)
{
    const char *list = "";

    for (int n = 0; n < s->count; n++)
        if (s->of[n] == scheme)
            list = nnunet_plan_join(p, list, arena_format(p->memory, "%d", n));
    return list;
}

/* A number for each channel; of other schemes it is not read. */
static void put_intensities(nnunet_plan *p, const nnunet_json *all, const channel_schemes *s,
                            const value_scheme *scheme, const char *section)
{
    static const struct { const char *option, *key; } rows[] = {
        { "lower", "percentile_00_5" }, { "upper", "percentile_99_5" }, { "subtrahend", "mean" },
        { "divisor", "std" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *list = "";
        for (int n = 0; n < s->count && all->err->status == PONS_OK; n++) {
            double value = 1;
            if (s->of[n] == scheme) {
                nnunet_json one = nnunet_json_object(all, arena_format(p->memory, "%d", n));
                const json_t *found = nnunet_json_member(&one, rows[i].key);
                value = json_number_value(found);
                if (found != NULL && (!json_is_number(found) || !isfinite(value)))
                    nnunet_json_refuse(&one, rows[i].key, "a number");
            }
            if (strcmp(rows[i].option, "divisor") == 0)
                value = fmax(value, 1e-8);
            list = nnunet_plan_join(p, list, arena_format(p->memory, "%.17g", value));
        }
        nnunet_plan_put(p, section, rows[i].option, "%s", list);
    }
}

const char *nnunet_values_put(nnunet_plan *p, const nnunet_json *plans,
                              const nnunet_json *configuration)
{
    static const char per_channel[] = "foreground_intensity_properties_per_channel";
    static const char by_modality[] = "foreground_intensity_properties_by_modality";
    channel_schemes all = { .count = 0 };
    const char *steps = "";

    read_schemes(p, configuration, &all);
    for (int i = 0; i < SCHEMES && configuration->err->status == PONS_OK; i++) {
        const value_scheme *s = &schemes[i];
        const char *channels = channels_of(p, &all, s);
        const char *section = arena_format(p->memory, "preprocess.%s", s->step);
        if (channels[0] == '\0' || strcmp(s->word, "nonorm") == 0)
            continue;
        steps = nnunet_plan_join(p, steps, s->step);
        nnunet_plan_put(p, section, "plugin", "normalize");
        nnunet_plan_put(p, section, "channels", "%s", channels);
        nnunet_plan_put(p, section, "scheme", "%s", s->word);
        if (s->mask)
            nnunet_plan_put(p, section, "use_mask_for_norm", "yes");
        if (strcmp(s->word, "ct") == 0) {
            nnunet_json values = nnunet_json_object(plans, nnunet_json_has(plans, by_modality)
                                                           ? by_modality : per_channel);
            if (values.err->status == PONS_OK)
                put_intensities(p, &values, &all, s, section);
        }
    }
    return steps;
}
