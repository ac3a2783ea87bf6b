/*
 * augment_profile.c - named lists of random steps: [augment] profile.
 *
 * A profile becomes entries of the configuration before any table reads it, so that resolved.ini
 * shows its steps with all options, and runs again as it is.
 */
#include "config/augment_profile.h"

#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"
#include "config/list.h"

const char *const augment_profile_words[] = { "none", "light", "standard", "heavy", "nnunet",
                                              NULL };

/* An option of a step. A NULL value depends on the patch: plane_value. */
typedef struct profile_option {
    const char *step, *key, *value;
} profile_option;

enum { STEPS_MAX = 64 };

/* ---- profiles -------------------------------------------------------------------------------- */

static const profile_option light[] = {
    { "rotate", "plugin", "affine" }, { "rotate", "probability", "0.2" },
    { "rotate", "rotate_range", NULL },
    { "scale", "plugin", "affine" }, { "scale", "probability", "0.2" },
    { "scale", "scale_range", NULL }, { "scale", "isotropic", "yes" },
    { "gaussian_noise", "probability", "0.1" },
    { "brightness", "probability", "0.1" }, { "brightness", "factors", "0.9 1.1" },
    { "contrast", "probability", "0.1" }, { "contrast", "factors", "0.9 1.1" },
    { NULL, NULL, NULL }
};

static const profile_option standard[] = {
    { "rotate", "plugin", "affine" }, { "rotate", "probability", "0.3" },
    { "rotate", "rotate_range", NULL },
    { "scale", "plugin", "affine" }, { "scale", "probability", "0.3" },
    { "scale", "scale_range", NULL }, { "scale", "isotropic", "yes" },
    { "gaussian_noise", "probability", "0.15" },
    { "gaussian_smooth", "probability", "0.15" },
    { "gaussian_smooth", "sigma_x", "0.5 1" }, { "gaussian_smooth", "sigma_y", "0.5 1" },
    { "gaussian_smooth", "sigma_z", "0.5 1" }, { "gaussian_smooth", "padding_mode", "reflect" },
    { "brightness", "probability", "0.15" },
    { "contrast", "probability", "0.15" },
    { "low_resolution", "probability", "0.15" }, { "low_resolution", "axes", NULL },
    { "low_resolution", "downsample_mode", "nearest-exact" },
    { "adjust_contrast", "probability", "0.2" }, { "adjust_contrast", "gamma", "0.7 1.5" },
    { "adjust_contrast", "around_one", "yes" }, { "adjust_contrast", "retain_stats", "yes" },
    { "adjust_contrast", "channel_wise", "yes" },
    { NULL, NULL, NULL }
};

static const profile_option heavy[] = {
    { "rotate", "plugin", "affine" }, { "rotate", "probability", "0.5" },
    { "rotate", "rotate_range", NULL },
    { "scale", "plugin", "affine" }, { "scale", "probability", "0.5" },
    { "scale", "scale_range", NULL }, { "scale", "isotropic", "yes" },
    { "elastic", "probability", "0.3" }, { "elastic", "sigma_range", "6 10" },
    { "elastic", "magnitude_range", "200 500" },
    { "gaussian_noise", "probability", "0.2" }, { "gaussian_noise", "std", "0.15" },
    { "gaussian_smooth", "probability", "0.2" },
    { "gaussian_smooth", "sigma_x", "0.5 1.5" }, { "gaussian_smooth", "sigma_y", "0.5 1.5" },
    { "gaussian_smooth", "sigma_z", "0.5 1.5" }, { "gaussian_smooth", "padding_mode", "reflect" },
    { "gaussian_sharpen", "probability", "0.1" }, { "gaussian_sharpen", "alpha", "1 5" },
    { "brightness", "probability", "0.3" }, { "brightness", "factors", "0.7 1.3" },
    { "contrast", "probability", "0.3" }, { "contrast", "factors", "0.65 1.5" },
    { "bias_field", "probability", "0.2" }, { "bias_field", "coeff_range", "-0.1 0.1" },
    { "low_resolution", "probability", "0.25" }, { "low_resolution", "axes", NULL },
    { "low_resolution", "downsample_mode", "nearest-exact" },
    { "gamma_inverted", "plugin", "adjust_contrast" },
    { "gamma_inverted", "probability", "0.15" }, { "gamma_inverted", "gamma", "0.7 1.5" },
    { "gamma_inverted", "around_one", "yes" }, { "gamma_inverted", "invert_image", "yes" },
    { "gamma_inverted", "retain_stats", "yes" }, { "gamma_inverted", "channel_wise", "yes" },
    { "adjust_contrast", "probability", "0.3" }, { "adjust_contrast", "gamma", "0.7 1.5" },
    { "adjust_contrast", "around_one", "yes" }, { "adjust_contrast", "retain_stats", "yes" },
    { "adjust_contrast", "channel_wise", "yes" },
    { "coarse_dropout", "probability", "0.1" }, { "coarse_dropout", "holes", "1" },
    { "coarse_dropout", "max_holes", "5" }, { "coarse_dropout", "spatial_size", "4" },
    { "coarse_dropout", "max_spatial_size", "16" },
    { NULL, NULL, NULL }
};

/* nnU-Net's trainer, in its order and with its probabilities. */
static const profile_option nnunet[] = {
    { "rotate", "plugin", "affine" }, { "rotate", "probability", "0.2" },
    { "rotate", "rotate_range", NULL }, { "rotate", "rotate_order", "kji" },
    { "rotate", "label_mode", "linear" },
    { "scale", "plugin", "affine" }, { "scale", "probability", "0.2" },
    { "scale", "scale_range", NULL }, { "scale", "isotropic", "yes" },
    { "scale", "label_mode", "linear" },
    { "gaussian_noise", "probability", "0.1" }, { "gaussian_noise", "std", "0.1" },
    { "gaussian_smooth", "probability", "0.2" },
    { "gaussian_smooth", "channel_probability", "0.5" },
    { "gaussian_smooth", "sigma_x", "0.5 1" }, { "gaussian_smooth", "sigma_y", "0.5 1" },
    { "gaussian_smooth", "sigma_z", "0.5 1" }, { "gaussian_smooth", "approx", "sampled" },
    { "gaussian_smooth", "padding_mode", "reflect" }, { "gaussian_smooth", "channel_wise", "yes" },
    { "brightness", "probability", "0.15" }, { "brightness", "factors", "0.75 1.25" },
    { "contrast", "probability", "0.15" }, { "contrast", "factors", "0.75 1.25" },
    { "low_resolution", "probability", "0.25" }, { "low_resolution", "channel_probability", "0.5" },
    { "low_resolution", "zoom_range", "0.5 1" }, { "low_resolution", "axes", NULL },
    { "low_resolution", "downsample_mode", "nearest-exact" },
    { "low_resolution", "channel_wise", "yes" },
    { "gamma_inverted", "plugin", "adjust_contrast" },
    { "gamma_inverted", "probability", "0.1" }, { "gamma_inverted", "gamma", "0.7 1.5" },
    { "gamma_inverted", "around_one", "yes" }, { "gamma_inverted", "invert_image", "yes" },
    { "gamma_inverted", "retain_stats", "yes" }, { "gamma_inverted", "channel_wise", "yes" },
    { "gamma", "plugin", "adjust_contrast" },
    { "gamma", "probability", "0.3" }, { "gamma", "gamma", "0.7 1.5" },
    { "gamma", "around_one", "yes" }, { "gamma", "retain_stats", "yes" },
    { "gamma", "channel_wise", "yes" },
    { "flip", "axes", "0 1 2" }, { "flip", "probability", "0.5" },
    { NULL, NULL, NULL }
};

static const struct {
    const profile_option *options;
    double angle;             /* radians, of a patch that is not flat                             */
    const char *low, *high;   /* ends of the number added to the scale                            */
} profiles[] = {
    { NULL, 0, "0", "0" }, { light, 0.2618, "-0.1", "0.1" }, { standard, 0.5236, "-0.3", "0.4" },
    { heavy, 0.5236, "-0.3", "0.4" }, { nnunet, 0.5236, "-0.3", "0.4" }
};

/* ---- the patch ------------------------------------------------------------------------------- */

/* The planes in which a patch is changed, if its voxels there are much more than across them. */
typedef struct patch_plane {
    int across;               /* axis across the planes; -1: all axes are alike                   */
    bool oblong;              /* a flat patch is much longer along one axis                       */
} patch_plane;

static bool read_extent(const config *c, double extent[3])
{
    const config_entry *e = config_entry_find(c, "patch", "extent");
    int count = 0;
    char **item = e != NULL ? list_split(c->arena, e->value, &count) : NULL;

    if (item == NULL || (count != 1 && count != 3))
        return false;
    for (int a = 0; a < 3; a++)
        extent[a] = strtod(item[count == 3 ? a : 0], NULL);
    return true;
}

/* nnU-Net's rule: the longest axis has more than three times the voxels of the shortest. */
static patch_plane plane_of(const config *c)
{
    double n[3], longest = 0, shorter = 1e9;
    patch_plane p = { .across = -1 };
    int across = 0;

    if (!read_extent(c, n))
        return p;
    for (int a = 0; a < 3; a++) {
        longest = n[a] > longest ? n[a] : longest;
        across = n[a] < n[across] ? a : across;
    }
    for (int a = 0; a < 3; a++)
        shorter = a != across && n[a] < shorter ? n[a] : shorter;
    if (longest > 3 * n[across])
        p.across = across;
    p.oblong = n[across] == 1 && longest > 1.5 * shorter;
    return p;
}

/* A value for each axis, 'none' across the planes. */
static const char *value_of_axes(config *c, int across, const char *value, const char *none)
{
    return arena_format(c->arena, "%s %s %s", across == 0 ? none : value,
                        across == 1 ? none : value, across == 2 ? none : value);
}

/*
 * Values that depend on the patch. In planes a patch turns by any angle around the axis across
 * them, a flat oblong one by up to 15 degrees.
 */
static const char *plane_value(config *c, int profile, const char *key)
{
    static const char *const others[] = { "1 2", "0 2", "0 1" };
    patch_plane p = plane_of(c);
    const char *angle;

    if (strcmp(key, "axes") == 0)
        return p.across < 0 ? "0 1 2" : others[p.across];
    if (strcmp(key, "scale_range") == 0)
        return value_of_axes(c, p.across,
                             arena_format(c->arena, "%s %s", profiles[profile].low,
                                          profiles[profile].high), "0 0");
    angle = arena_format(c->arena, "%g", profiles[profile].angle);
    if (p.across < 0)
        return value_of_axes(c, -1, angle, "0");
    angle = p.oblong ? "0.2618" : "3.14159";
    return arena_format(c->arena, "%s %s %s", p.across == 0 ? angle : "0",
                        p.across == 1 ? angle : "0", p.across == 2 ? angle : "0");
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool is_listed(int count, const char *const *item, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(item[i], name) == 0)
            return true;
    return false;
}

/* The step that a section is of: "flip" of "augment.flip"; NULL: none. */
static const char *step_of(const char *section)
{
    return strncmp(section, "augment.", 8) == 0 ? section + 8 : NULL;
}

/* Names of steps, each once. */
typedef struct step_list {
    int count;
    const char *name[STEPS_MAX];
} step_list;

static void list_add(step_list *l, const char *name)
{
    if (name != NULL && l->count < STEPS_MAX && !is_listed(l->count, l->name, name))
        l->name[l->count++] = name;
}

/* Sections in the order of their lines; 'last' is the last one. */
static void list_add_sections(step_list *l, const section_line *last)
{
    if (last == NULL)
        return;
    list_add_sections(l, last->next);
    list_add(l, step_of(last->name));
}

/* The steps of a profile, then those of other sections. */
static void list_steps(const config *c, const profile_option *options, step_list *out)
{
    out->count = 0;
    for (const profile_option *o = options; o->step != NULL; o++)
        list_add(out, o->step);
    list_add_sections(out, c->section);
    for (int i = 0; i < c->entry_count; i++)
        list_add(out, step_of(c->entry[i].section));
}

static pons_status add_entry(config *c, int profile, const char *section, const char *key,
                             const char *value, pons_error *err)
{
    config_entry e = { .section = section, .key = key, .value = value, .folder = c->folder,
                       .file = arena_format(c->arena, "profile %s",
                                            augment_profile_words[profile]) };

    return config_given(c, section, key) ? PONS_OK : config_entry_add(c, e, err);
}

/* Whether the file gives the step another transform than the profile. */
static bool is_replaced(const config *c, const profile_option *options, const char *section,
                        const char *step)
{
    const config_entry *e = config_entry_find(c, section, "plugin");
    const char *plugin = step;

    for (const profile_option *o = options; o->step != NULL; o++)
        if (strcmp(o->step, step) == 0 && strcmp(o->key, "plugin") == 0)
            plugin = o->value;
    return e != NULL && strcmp(e->value, plugin) != 0;
}

static pons_status add_options(config *c, int profile, int count, const char *const *step,
                               pons_error *err)
{
    const profile_option *options = profiles[profile].options;

    for (const profile_option *o = options; o->step != NULL; o++) {
        const char *section = arena_format(c->arena, "augment.%s", o->step);
        const char *value = o->value != NULL ? o->value : plane_value(c, profile, o->key);
        if (!is_listed(count, step, o->step) || is_replaced(c, options, section, o->step))
            continue;
        if (add_entry(c, profile, section, o->key, value, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* The number of the profile that the file names; 0: none, or no known one. */
static int find_profile(const config *c)
{
    const config_entry *e = config_entry_find(c, "augment", "profile");

    for (int i = 1; e != NULL && augment_profile_words[i] != NULL; i++)
        if (strcmp(e->value, augment_profile_words[i]) == 0)
            return i;
    return 0;
}

pons_status augment_profile_expand(config *c, pons_error *err)
{
    const config_entry *given = config_entry_find(c, "augment", "steps");
    int profile = find_profile(c), count = 0;
    step_list list;
    char **item;

    if (profile == 0)
        return PONS_OK;
    if (given != NULL) {
        item = list_split(c->arena, given->value, &count);
        return add_options(c, profile, item != NULL ? count : 0, (const char *const *)item, err);
    }
    list_steps(c, profiles[profile].options, &list);
    if (add_entry(c, profile, "augment", "steps", list_join(c->arena, list.count, list.name), err)
        != PONS_OK)
        return err->status;
    return add_options(c, profile, list.count, list.name, err);
}
