/*
 * init_plan_ini.c - the INI file of a plan, with comments that say where each value comes from.
 */
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/text.h"
#include "cli/init/init_plan.h"

#include <pons/model.h>

enum { LEVELS_MIN = 2, UNET_LEVELS = 5, UNET_FEATURES = 16, WINDOW_BATCH = 2 };

/* ---- numbers --------------------------------------------------------------------------------- */

const char *init_plan_triple(const init_plan *x, const int64_t value[3], const char *divider,
                             bool joined)
{
    const int *axis = x->geometry.axis;
    int64_t file[3];

    for (int a = 0; a < 3; a++)
        file[axis[a]] = value[a];
    if (joined && file[0] == file[1] && file[1] == file[2])
        return arena_format(x->memory, "%lld", (long long)file[0]);
    return arena_format(x->memory, "%lld%s%lld%s%lld", (long long)file[0], divider,
                        (long long)file[1], divider, (long long)file[2]);
}

/* Append a word to a list. */
static const char *joined(const init_plan *x, const char *list, const char *word)
{
    return list[0] == '\0' ? word : arena_format(x->memory, "%s %s", list, word);
}

/* The spacing in the order of the file. */
static const char *spacing_text(const init_plan *x)
{
    double file[3];

    for (int a = 0; a < 3; a++)
        file[x->geometry.axis[a]] = x->geometry.spacing[a];
    return arena_format(x->memory, "%.7g %.7g %.7g", file[0], file[1], file[2]);
}

/* Levels 'first' .. 'end' - 1 of strides or kernels. Levels beyond the plan keep the extent. */
static const char *level_list(const init_plan *x, const network_plan *n, bool strides, int first,
                              int end)
{
    const char *list = "";

    for (int level = first; level < end; level++) {
        const int *from = level >= n->levels ? NULL
                          : strides ? n->stride[level] : n->kernel[level];
        int64_t value[3];
        for (int a = 0; a < 3; a++)
            value[a] = from != NULL ? from[a] : strides || a < n->first ? 1 : 3;
        list = joined(x, list, init_plan_triple(x, value, ",", true));
    }
    return list;
}

/* ---- sections -------------------------------------------------------------------------------- */

void init_plan_ini_files(const init_plan *x, ini_text *out)
{
    if (x->source != NULL)
        ini_text_put(out, "data", "source", NULL, "%s", x->source);
    if (x->image != NULL)
        ini_text_put(out, "data", "image", NULL, "%s", x->image);
    if (x->label != NULL)
        ini_text_put(out, "data", "label", NULL, "%s", x->label);
}

static void put_data(const init_plan *x, ini_text *t)
{
    ini_text_put(t, "experiment", "name", "folder of the run in 'runs'", "%s", x->name);
    init_plan_ini_files(x, t);
    ini_text_put(t, "data", "validation", NULL, "%s", x->validation);
    ini_text_put(t, "data", "cache",
                 x->cache_disk ? "preprocessed cases do not fit into memory" : NULL,
                 x->cache_disk ? "disk" : "memory");
}

/* Channels of a scheme as a list; "": none, NULL: all. */
static const char *channels_of(const init_plan *x, plan_scheme scheme)
{
    const dataset *d = x->data;
    const char *list = "";
    int count = 0;

    for (int c = 0; c < d->channels; c++) {
        if (plan_scheme_find(d->channel_names != NULL ? d->channel_names[c] : NULL) != scheme)
            continue;
        list = joined(x, list, arena_format(x->memory, "%d", c));
        count++;
    }
    return count == d->channels ? NULL : list;
}

typedef enum intensity_part { PART_LOW, PART_HIGH, PART_MEAN, PART_STD } intensity_part;

/* One number for each channel. */
static const char *intensity_list(const init_plan *x, intensity_part part)
{
    const char *list = "";

    for (int c = 0; c < x->statistics->channels; c++) {
        const intensity_statistics *s = &x->statistics->intensity[c];
        double value = part == PART_LOW ? s->low : part == PART_HIGH ? s->high
                       : part == PART_MEAN ? s->mean : fmax(s->std, 1e-8);
        list = joined(x, list, arena_format(x->memory, "%.7g", value));
    }
    return list;
}

/* A step of the plugin 'normalize', in the order of application. */
typedef struct step_plan {
    const char *name;
    plan_scheme scheme;
    const char *word;         /* value of the option 'scheme' */
} step_plan;

static const step_plan value_steps[] = {
    { "normalize_ct", PLAN_CT, "ct" },
    { "normalize", PLAN_ZSCORE, "zscore" },
    { "rescale", PLAN_RESCALE, "rescale_to_0_1" },
    { "rgb", PLAN_RGB, "rgb_to_0_1" },
};

static void put_ct_values(const init_plan *x, const char *section, ini_text *t)
{
    ini_text_put(t, section, "lower", "percentile 0.5 of the foreground", "%s",
                 intensity_list(x, PART_LOW));
    ini_text_put(t, section, "upper", "percentile 99.5 of the foreground", "%s",
                 intensity_list(x, PART_HIGH));
    ini_text_put(t, section, "subtrahend", "mean of the foreground", "%s",
                 intensity_list(x, PART_MEAN));
    ini_text_put(t, section, "divisor", "deviation of the foreground", "%s",
                 intensity_list(x, PART_STD));
}

static void put_value_step(const init_plan *x, const step_plan *s, ini_text *t)
{
    const char *section = arena_format(x->memory, "preprocess.%s", s->name);
    const char *channels = channels_of(x, s->scheme);

    if (strcmp(s->name, "normalize") != 0)
        ini_text_put(t, section, "plugin", NULL, "normalize");
    if (channels != NULL)
        ini_text_put(t, section, "channels", NULL, "%s", channels);
    ini_text_put(t, section, "scheme", NULL, "%s", s->word);
    if (s->scheme == PLAN_CT)
        put_ct_values(x, section, t);
    if (s->scheme == PLAN_ZSCORE && plan_masks_zscore(x->statistics->cropped_share))
        ini_text_put(t, section, "use_mask_for_norm", "much of the images is 0", "yes");
}

static bool is_used(const init_plan *x, plan_scheme scheme)
{
    const char *channels = channels_of(x, scheme);

    return channels == NULL || channels[0] != '\0';
}

/* nnU-Net crops any image, normalises, then resamples. A plan like MONAI's crops where it helps. */
static void put_preprocess(const init_plan *x, ini_text *t)
{
    bool crops = x->style != INIT_MONAI || x->statistics->cropped_share < 1;
    const char *steps = x->statistics->oriented ? "orient" : "";

    if (crops)
        steps = joined(x, steps, "crop_foreground");
    for (size_t i = 0; i < sizeof value_steps / sizeof *value_steps; i++)
        if (is_used(x, value_steps[i].scheme))
            steps = joined(x, steps, value_steps[i].name);
    ini_text_put(t, "preprocess", "steps", NULL, "%s", joined(x, steps, "spacing"));
    if (x->statistics->oriented)
        ini_text_put(t, "preprocess.orient", "axes", "orientations of the files differ", "RAS");
    if (crops)
        ini_text_put(t, "preprocess.crop_foreground", "select",
                     arena_format(x->memory, "the box keeps %.0f %% of the median case",
                                  100 * x->statistics->cropped_share), "nonzero");
    for (size_t i = 0; i < sizeof value_steps / sizeof *value_steps; i++)
        if (is_used(x, value_steps[i].scheme))
            put_value_step(x, &value_steps[i], t);
    ini_text_put(t, "preprocess.spacing", "mm", "median of the cases", "%s", spacing_text(x));
    if (x->style != INIT_MONAI)
        ini_text_put(t, "preprocess.spacing", "method", NULL, "nnunet");
}

/* Cases of a micro-batch, and patches of each case. */
static void init_plan_batch(const init_plan *x, const network_plan *network, int64_t *cases,
                            int64_t *per_case)
{
    *cases = max_i64(1, min_i64(network->batch, x->data->training_count));
    *per_case = max_i64(1, network->batch / *cases);
}

static void put_patch(const init_plan *x, const network_plan *n, ini_text *t)
{
    double share = 1;
    int64_t cases, per_case;

    init_plan_batch(x, n, &cases, &per_case);
    for (int a = 0; a < 3; a++)
        share *= fmin(1, (double)n->patch[a] / n->extent[a]);
    ini_text_put(t, "patch", "extent",
                 arena_format(x->memory, "%.0f %% of the median case", 100 * share), "%s",
                 init_plan_triple(x, n->patch, " ", false));
    if (per_case > 1)
        ini_text_put(t, "patch", "per_case", "fewer cases than patches in a batch", "%lld",
                     (long long)per_case);
    ini_text_put(t, "patch", "foreground_share", "centred on a voxel of a random class",
                 "0.33");
    if (x->style != INIT_MONAI)
        ini_text_put(t, "patch", "far_end", "as nnU-Net; inside wastes no voxels of a patch",
                     "beyond");
}

/* The axes of a network, as in "0 1 2", or those within slices. */
static const char *axes_text(const init_plan *x, bool within_slices)
{
    static const char *const within[] = { "1 2", "0 2", "0 1" };

    return within_slices ? within[x->geometry.axis[0]] : "0 1 2";
}

/* Whether nnU-Net augments slices instead of volumes: they are few, or single. */
static bool augments_slices(const network_plan *n)
{
    return n->first != 0 || max_i64(n->patch[1], n->patch[2]) > 3 * n->patch[0];
}

/*
 * Angles around the axes of the file: 30 degrees each, or 180 within slices. Single slices that are
 * more than 1.5 times as long as wide turn by 15.
 */
static const char *rotation_text(const init_plan *x, const network_plan *n)
{
    double file[3] = { 0 }, longest = (double)max_i64(n->patch[1], n->patch[2]);
    bool narrow = n->first != 0 && longest > 1.5 * (double)min_i64(n->patch[1], n->patch[2]);

    if (!augments_slices(n))
        return "0.5235988";
    file[x->geometry.axis[0]] = narrow ? M_PI / 12 : M_PI;
    return arena_format(x->memory, "%.7g %.7g %.7g", file[0], file[1], file[2]);
}

static void put_lines(const ini_line *line, ini_text *t)
{
    for (; line->section != NULL; line++)
        ini_text_put(t, line->section, line->key, line->comment, "%s", line->value);
}

static const ini_line monai_values[] = {
    { "augment.scale_intensity", "probability", "1", NULL },
    { "augment.scale_intensity", "factors", "0.1", NULL },
    { "augment.shift_intensity", "probability", "1", NULL },
    { "augment.shift_intensity", "offsets", "0.1", NULL },
    { NULL, NULL, NULL, NULL }
};

/* Whether [augment] profile rotates a patch as the plan does: within slices, or about all axes. */
static bool profile_has_planes(const network_plan *n)
{
    int64_t within = min_i64(n->patch[1], n->patch[2]);
    int64_t longest = max_i64(n->patch[0], max_i64(n->patch[1], n->patch[2]));

    if (augments_slices(n))
        return n->patch[0] < within;
    return longest <= 3 * min_i64(n->patch[0], within);
}

/* The options of the profile that depend on the planes. */
static void put_planes(const init_plan *x, const network_plan *n, ini_text *t)
{
    const char *scale[3] = { "-0.3 0.4", "-0.3 0.4", "-0.3 0.4" };

    if (augments_slices(n))
        scale[x->geometry.axis[0]] = "0 0";
    ini_text_put(t, "augment.rotate", "rotate_range",
                 augments_slices(n) ? "radians, within slices" : "radians around each axis", "%s",
                 rotation_text(x, n));
    ini_text_put(t, "augment.scale", "scale_range", NULL, "%s %s %s", scale[0], scale[1],
                 scale[2]);
    ini_text_put(t, "augment.low_resolution", "axes", NULL, "%s",
                 axes_text(x, augments_slices(n)));
}

static void put_augment(const init_plan *x, const network_plan *n, ini_text *t)
{
    if (x->style == INIT_MONAI) {
        ini_text_put(t, "augment", "steps", NULL, "scale_intensity shift_intensity flip");
        put_lines(monai_values, t);
    } else {
        ini_text_put(t, "augment", "profile", "nnU-Net's random steps; resolved.ini lists them",
                     "nnunet");
        if (!profile_has_planes(n))
            put_planes(x, n, t);
    }
    ini_text_put(t, "augment.flip", "axes", "leave out left-right if classes have sides", "%s",
                 axes_text(x, x->flat));
    ini_text_put(t, "augment.flip", "probability", NULL, "0.5");
}

static void put_unet(const init_plan *x, const network_plan *n, ini_text *t)
{
    int levels = min_int(UNET_LEVELS, max_int(n->levels, LEVELS_MIN));
    const char *channels = "";
    int64_t kernel[3];

    for (int level = 0; level < levels; level++)
        channels = joined(x, channels, arena_format(x->memory, "%d", UNET_FEATURES << level));
    for (int a = 0; a < 3; a++)
        kernel[a] = a < n->first ? 1 : 3;
    ini_text_put(t, "model", "plugin", NULL, "unet");
    ini_text_put(t, "model", "channels", NULL, "%s", channels);
    ini_text_put(t, "model", "strides", NULL, "%s", level_list(x, n, true, 1, levels));
    ini_text_put(t, "model", "kernel_size", NULL, "%s", init_plan_triple(x, kernel, " ", true));
    ini_text_put(t, "model", "up_kernel_size", NULL, "%s",
                 init_plan_triple(x, kernel, " ", true));
    ini_text_put(t, "model", "num_res_units", NULL, "2");
    ini_text_put(t, "model", "norm", NULL, "batch");
}

/* nnU-Net's residual encoders have 1 3 4 6 6 ... blocks. */
static const char *block_counts(const init_plan *x, int levels)
{
    static const int first[] = { 1, 3, 4 };
    const char *counts = "";

    for (int level = 0; level < levels; level++)
        counts = joined(x, counts, arena_format(x->memory, "%d", level < 3 ? first[level] : 6));
    return counts;
}

static void put_nnunet(const init_plan *x, const network_plan *n, ini_text *t)
{
    int levels = max_int(n->levels, LEVELS_MIN);
    int64_t most = x->flat ? 512 : 320;
    const char *features = "";

    for (int level = 0; level < levels; level++)
        features = joined(x, features,
                          arena_format(x->memory, "%lld",
                                       (long long)min_i64(most, INT64_C(32) << level)));
    ini_text_put(t, "model", "plugin", NULL, n->residual ? "residual_unet" : "plain_unet");
    ini_text_put(t, "model", "features_per_stage", NULL, "%s", features);
    ini_text_put(t, "model", "kernel_sizes", NULL, "%s", level_list(x, n, false, 0, levels));
    ini_text_put(t, "model", "strides", NULL, "%s", level_list(x, n, true, 0, levels));
    if (n->residual)
        ini_text_put(t, "model", "n_blocks_per_stage", NULL, "%s", block_counts(x, levels));
    if (levels == 2)
        ini_text_put(t, "model", "deep_supervision", NULL, "no");
}

/* Each output weighs half of the one above, the deepest nothing. The sum is 1. */
static void put_heads(const init_plan *x, const network_plan *n, ini_text *t)
{
    int outputs = max_int(n->levels, LEVELS_MIN) - 1, shown = min_int(outputs, PONS_OUTPUTS_MAX);
    double sum = 2 - exp2(2 - outputs);
    const char *weights = "";

    if (outputs == 1)
        return;
    for (int i = 0; i < shown; i++)
        weights = joined(x, weights, i == outputs - 1
                                         ? "0" : arena_format(x->memory, "%.6g", exp2(-i) / sum));
    ini_text_put(t, "loss", "heads", "weights of the outputs, the full extent first; 0: not "
                 "trained", "%s", weights);
}

/* Lines that do not depend on the data. */
static const ini_line nnunet_lines[] = {
    { "optimizer", "plugin", "sgd", NULL },
    { "optimizer", "lr", "0.01", NULL },
    { "optimizer", "momentum", "0.99", NULL },
    { "optimizer", "nesterov", "yes", NULL },
    { "optimizer", "weight_decay", "3e-5", NULL },
    { "schedule", "plugin", "poly", NULL },
    { "schedule", "power", "0.9", NULL },
    { "train", "steps", "250000", "nnU-Net's 1000 epochs of 250 steps; fewer do for a first look" },
    { "train", "clip_norm", "12", NULL },
    { "train", "validate_steps", "5000", NULL },
    { NULL, NULL, NULL, NULL }
};

static const ini_line monai_lines[] = {
    { "optimizer", "plugin", "adam", NULL },
    { "optimizer", "lr", "1e-4", NULL },
    { "train", "epochs", "300", NULL },
    { "train", "validate_every", "5", NULL },
    { NULL, NULL, NULL, NULL }
};

/*
 * Whether nnU-Net's Dice is that of a batch: of slices, and where it would train a low resolution.
 */
static bool has_batch_dice(const init_plan *x, const network_plan *n)
{
    network_plan low;

    return x->flat || network_plan_make_lowres(x->rule, n, x->statistics->case_count, &low);
}

static void put_training(const init_plan *x, const network_plan *n, ini_text *t)
{
    int64_t cases, per_case, steps, every;

    init_plan_batch(x, n, &cases, &per_case);
    steps = ceil_div_i64(max_i64(x->data->training_count, 1), cases);
    every = x->style == INIT_MONAI ? 5 : max_i64(1, 2500 / steps);
    ini_text_put(t, "loss", "plugin", NULL, x->style != INIT_MONAI ? "nnunet"
                 : x->data->region_count > 0 ? "dice" : "dice_ce");
    if (x->style != INIT_MONAI) {
        ini_text_put(t, "loss", "batch_dice",
                     "yes for slices, and where a patch sees little of a case, as nnU-Net",
                     has_batch_dice(x, n) ? "yes" : "no");
        put_heads(x, n, t);
    }
    put_lines(x->style == INIT_MONAI ? monai_lines : nnunet_lines, t);
    ini_text_put(t, "train", "batch", NULL, "%lld", (long long)cases);
    ini_text_put(t, "train", "checkpoint_every",
                 arena_format(x->memory, "an epoch has %lld step%s", (long long)steps,
                              text_plural(steps)), "%lld", (long long)every);
}

static void put_window(const init_plan *x, const network_plan *n, ini_text *t)
{
    ini_text_put(t, "window", "extent", NULL, "%s", init_plan_triple(x, n->patch, " ", false));
    ini_text_put(t, "window", "overlap", NULL, x->style == INIT_MONAI ? "0.25" : "0.5");
    ini_text_put(t, "window", "mode", NULL, x->style == INIT_MONAI ? "gaussian" : "nnunet");
    ini_text_put(t, "window", "batch", NULL, "%d", WINDOW_BATCH);
    if (x->style == INIT_MONAI)
        return;
    ini_text_comment(t, "window", "The next line averages the predictions of %d flips, as nnU-Net "
                     "does.", x->flat ? 4 : 8);
    ini_text_comment(t, "window", "mirror = %s", axes_text(x, x->flat));
    ini_text_put(t, "predict", "resample", NULL, "logits");
    ini_text_put(t, "predict", "separate_slices", NULL, "auto");
}

void init_plan_ini(const init_plan *x, const network_plan *network, ini_text *out)
{
    put_data(x, out);
    put_preprocess(x, out);
    put_patch(x, network, out);
    put_augment(x, network, out);
    if (x->style == INIT_MONAI)
        put_unet(x, network, out);
    else
        put_nnunet(x, network, out);
    put_training(x, network, out);
    put_window(x, network, out);
    for (int i = 0; i < x->call->set_count; i++)
        ini_text_set(out, x->call->set[i]);
}
