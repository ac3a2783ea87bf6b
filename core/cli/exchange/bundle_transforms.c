/*
 * bundle_transforms.c - a rule for each step that MONAI has. Most options have the names of MONAI's
 * arguments.
 */
#include "cli/exchange/bundle_transforms.h"

#include <string.h>

#include "cli/exchange/export_folder.h"
#include "cli/exchange/option_json.h"

#define MONAI "MONAI"

/* The step that is read. */
typedef struct step_reader {
    const char *section;
    json_t *options;
    int channels;
    json_t *list;             /* of transforms                                                    */
    pons_error *err;
} step_reader;

static json_t *option(const step_reader *r, const char *name)
{
    return json_object_get(r->options, name);
}

static bool is_word(const step_reader *r, const char *name, const char *word)
{
    return strcmp(json_string_value(option(r, name)), word) == 0;
}

/* The number of a list that has one at most; null: none. */
static json_t *only_number(const step_reader *r, const char *name)
{
    json_t *list = option(r, name);

    if (json_array_size(list) > 1)
        export_refuse(r->section, name, list, "one number for all channels as " MONAI " has it",
                      r->err);
    return json_array_size(list) == 1 ? json_incref(json_array_get(list, 0)) : json_null();
}

/* Append a transform of the image; further arguments are its own. */
static json_t *add(const step_reader *r, const char *target)
{
    json_t *t = json_pack("{s:s, s:s}", "_target_", target, "keys", "image");

    json_array_append_new(r->list, t);
    return t;
}

/* Copy options under their own names. */
static void copy(const step_reader *r, json_t *transform, const char *const *names)
{
    for (; *names != NULL; names++)
        json_object_set(transform, *names, option(r, *names));
}

/* ---- the grid -------------------------------------------------------------------------------- */

static void orient(const step_reader *r)
{
    json_object_set(add(r, "Orientationd"), "axcodes", option(r, "axes"));
}

static void spacing(const step_reader *r)
{
    static const char *const bounds[] = { "min_pixdim", "max_pixdim" };
    json_t *t;

    if (export_expect(r->section, r->options, "method", "\"monai\"", MONAI, r->err) != PONS_OK)
        return;
    t = add(r, "Spacingd");
    json_object_set(t, "pixdim", option(r, "mm"));
    json_object_set(t, "diagonal", option(r, "diagonal"));
    json_object_set_new(t, "mode", json_string("bilinear"));
    for (int i = 0; i < 2; i++)
        if (json_number_value(json_array_get(option(r, bounds[i]), 0)) != 0)
            json_object_set(t, bounds[i], option(r, bounds[i]));
}

static void resize(const step_reader *r)
{
    json_t *t, *extent = option(r, "extent");
    bool longest = is_word(r, "size_mode", "longest");

    if (is_word(r, "size_mode", "shortest"))
        export_refuse(r->section, "size_mode", option(r, "size_mode"), "all or longest", r->err);
    else if (is_word(r, "mode", "antialias"))
        export_refuse(r->section, "mode", option(r, "mode"), "trilinear, area or nearest", r->err);
    if (r->err->status != PONS_OK)
        return;
    t = add(r, "Resized");
    json_object_set(t, "spatial_size", longest ? json_array_get(extent, 0) : extent);
    json_object_set(t, "size_mode", option(r, "size_mode"));
    json_object_set(t, "mode", option(r, "mode"));
}

static void crop(const step_reader *r)
{
    static const char *const same[] = { "margin", "k_divisible", "allow_smaller", NULL };
    json_t *t, *channels = option(r, "channel_indices");

    if (export_expect(r->section, r->options, "source", "\"image\"", MONAI, r->err) != PONS_OK)
        return;
    t = add(r, "CropForegroundd");
    json_object_set_new(t, "source_key", json_string("image"));
    json_object_set_new(t, "select_fn", is_word(r, "select", "nonzero")
                        ? json_string("$lambda x: x != 0")
                        : json_sprintf("$lambda x: x > %.9g",
                                       json_real_value(option(r, "above"))));
    if (json_array_size(channels) > 0)
        json_object_set(t, "channel_indices", channels);
    copy(r, t, same);
}

static void pad(const step_reader *r)
{
    json_t *t = add(r, "SpatialPadd");

    json_object_set(t, "spatial_size", option(r, "extent"));
    json_object_set(t, "method", option(r, "method"));
    json_object_set_new(t, "mode", json_string("constant"));
    json_object_set(t, "value", option(r, "value"));
}

/* ---- values ---------------------------------------------------------------------------------- */

static void put_range(const step_reader *r, json_t *t, const char *low, const char *high)
{
    json_t *from = option(r, "from"), *to = option(r, "to");

    json_object_set(t, low, json_array_get(from, 0));
    json_object_set(t, high, json_array_get(from, 1));
    json_object_set_new(t, "b_min", json_array_size(to) > 0 ? json_incref(json_array_get(to, 0))
                                                            : json_null());
    json_object_set_new(t, "b_max", json_array_size(to) > 0 ? json_incref(json_array_get(to, 1))
                                                            : json_null());
    json_object_set(t, "clip", option(r, "clip"));
}

static void scale_range(const step_reader *r)
{
    put_range(r, add(r, "ScaleIntensityRanged"), "a_min", "a_max");
}

static void scale_percentiles(const step_reader *r)
{
    static const char *const same[] = { "relative", "channel_wise", NULL };
    json_t *t;

    if (export_expect(r->section, r->options, "above", "[]", MONAI, r->err) != PONS_OK)
        return;
    t = add(r, "ScaleIntensityRangePercentilesd");
    put_range(r, t, "lower", "upper");
    copy(r, t, same);
}

/* Values on the other side of the limit become it. */
static void cut(const step_reader *r, const char *name, bool above)
{
    json_t *limit = only_number(r, name), *t;

    if (!json_is_null(limit)) {
        t = add(r, "ThresholdIntensityd");
        json_object_set(t, "threshold", limit);
        json_object_set_new(t, "above", json_boolean(above));
        json_object_set(t, "cval", limit);
    }
    json_decref(limit);
}

static void clip(const step_reader *r)
{
    cut(r, "lower", true);
    cut(r, "upper", false);
}

/* Numbers of channels become a list for each, else MONAI takes a number. */
static void put_numbers(const step_reader *r, json_t *t, const char *name)
{
    const json_t *list = option(r, name);
    bool apart = json_is_true(json_object_get(t, "channel_wise"));
    json_t *all = json_array();

    for (int c = 0; c < r->channels && json_array_size(list) > 0; c++)
        json_array_append(all, json_array_get(list, json_array_size(list) > 1 ? (size_t)c : 0));
    if (json_array_size(list) > 0)
        json_object_set(t, name, apart ? all : json_array_get(list, 0));
    json_decref(all);
}

static void put_normalize(const step_reader *r, bool apart, bool nonzero)
{
    json_t *t = add(r, "NormalizeIntensityd");

    json_object_set_new(t, "nonzero", json_boolean(nonzero));
    json_object_set_new(t, "channel_wise", json_boolean(apart));
    put_numbers(r, t, "subtrahend");
    put_numbers(r, t, "divisor");
}

static void normalize(const step_reader *r)
{
    bool several = json_array_size(option(r, "subtrahend")) > 1
                   || json_array_size(option(r, "divisor")) > 1;

    if (export_expect(r->section, r->options, "use_mask_for_norm", "false", MONAI, r->err)
        != PONS_OK || is_word(r, "scheme", "nonorm"))
        return;
    if (is_word(r, "scheme", "rescale_to_0_1")) {
        json_object_set_new(add(r, "ScaleIntensityd"), "channel_wise", json_true());
    } else if (is_word(r, "scheme", "rgb_to_0_1")) {
        json_t *t = add(r, "ScaleIntensityRanged");
        json_object_update_new(t, json_pack("{s:i, s:i, s:i, s:i}", "a_min", 0, "a_max", 255,
                                            "b_min", 0, "b_max", 1));
    } else {
        if (is_word(r, "scheme", "ct"))
            clip(r);
        put_normalize(r, several || !is_word(r, "scheme", "monai")
                         || json_is_true(option(r, "channel_wise")),
                      json_is_true(option(r, "nonzero")));
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const struct { const char *plugin; bool moves;
                      void (*add)(const step_reader *r); } rules[] = {
    { "orient", true, orient }, { "spacing", true, spacing }, { "resize", true, resize },
    { "crop_foreground", true, crop }, { "pad", true, pad }, { "scale_range", false, scale_range },
    { "scale_percentiles", false, scale_percentiles }, { "clip", false, clip },
    { "normalize", false, normalize }
};

static pons_status add_step(const experiment *e, const pipeline_step *s, json_t *list, bool *moves,
                            pons_error *err)
{
    char section[256];
    size_t i = 0, count = sizeof rules / sizeof rules[0];
    pons_transform_scope scope = volume_step_scope(s);
    step_reader r = { .section = section, .channels = e->task.channels, .list = list, .err = err };

    snprintf(section, sizeof section, "preprocess.%.200s", s->name);
    while (i < count && strcmp(rules[i].plugin, s->plugin) != 0)
        i++;
    if (i == count)
        return pons_fail(err, PONS_CONFIG, "[preprocess] steps: found '%s', which " MONAI " does "
                         "not have", s->name);
    if (!pons_scope_has_all(&scope, e->task.channels))
        return pons_fail(err, PONS_CONFIG, "[%s] channels: expected all of them as " MONAI " has "
                         "it", section);
    r.options = option_json_object(s->options, s->config);
    *moves = *moves || rules[i].moves;
    rules[i].add(&r);
    json_decref(r.options);
    return err->status;
}

pons_status bundle_transforms_add(const experiment *e, json_t *list, bool *moves, pons_error *err)
{
    *moves = false;
    for (int i = 0; i < e->preprocess->count && err->status == PONS_OK; i++)
        if ((e->preprocess->step[i].cases & PIPELINE_VALIDATION) != 0)
            add_step(e, &e->preprocess->step[i], list, moves, err);
    return err->status;
}
