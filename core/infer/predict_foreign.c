/*
 * predict_foreign.c - compare images with those of the training, after preprocessing, as the
 * network sees both.
 */
#include "infer/infer_internal.h"

#include <string.h>

#include "data/check/dataset_check.h"

/* ---- unknown orientations -------------------------------------------------------------------- */

/* The steps of 'chain' as in 'steps', with 'step' in front unless it is one of them. */
static const char *steps_with(arena *memory, const char *step, const pipeline *chain)
{
    const char *text = step;

    for (int i = 0; chain != NULL && i < chain->count; i++)
        if (strcmp(chain->step[i].name, step) != 0)
            text = arena_format(memory, "%s %s", text, chain->step[i].name);
    return text;
}

/* The orientations that all networks saw in training. */
static const char *common_orientations(arena *memory, const predict_member *m)
{
    case_geometry common = { .orientations = m->all[m->at]->seen.orientations };

    for (int i = 0; i < m->count; i++)
        if (m->all[i]->compares)
            common.orientations &= m->all[i]->seen.orientations;
    return case_geometry_orientations(memory, &common);
}

/* True if the steps of all networks are equal apart from 'orient', so one --set fits all. */
static bool has_common_steps(arena *memory, const predict_member *m)
{
    const char *text = steps_with(memory, "orient", m->all[0]->experiment->preprocess);

    for (int i = 1; i < m->count; i++)
        if (strcmp(steps_with(memory, "orient", m->all[i]->experiment->preprocess), text) != 0)
            return false;
    return true;
}

/* A hint that suits all networks of an ensemble, which share --set and the file. */
static const char *orientation_hint(arena *memory, const predict_member *m)
{
    const char *axes = common_orientations(memory, m);

    if (*axes == '\0')
        return "the networks saw different orientations in training, so no step 'orient' fits all";
    if (!has_common_steps(memory, m))
        return arena_format(memory, "the networks have different [preprocess] steps, and --set "
                            "would give all of them the same: turn the file to %.3s", axes);
    return arena_format(memory, "--set 'preprocess.steps=%s' --set preprocess.orient.axes=%.3s "
                        "turns it", steps_with(memory, "orient", m->all[0]->experiment->preprocess),
                        axes);
}

static pons_status check_orientation(arena *memory, const predict_member *m, const pons_case *c,
                                     const case_geometry *image, bool force, pons_error *err)
{
    const case_geometry *seen = &m->all[m->at]->seen;

    if (force || !case_geometry_is_turned(seen, image))
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "case '%s' has orientation %s, expected %s as in training\n"
                     "hint: %s; --force takes it as it is", c->name,
                     case_geometry_orientations(memory, image),
                     case_geometry_orientations(memory, seen), orientation_hint(memory, m));
}

/* ---- warnings; true: one was logged ---------------------------------------------------------- */

/* The advice to add a step; "" if [preprocess] has it already. */
static const char *step_advice(const predictor *p, const char *step, const char *text)
{
    return pipeline_has(p->experiment->preprocess, step) ? "" : text;
}

static bool warn_orientation(arena *memory, const predictor *p, const pons_case *c,
                             const case_geometry *image, logger *l)
{
    if (!case_geometry_is_turned(&p->seen, image))
        return false;
    log_warning(l, "case '%s' has orientation %s, training saw %s%.60s", c->name,
                case_geometry_orientations(memory, image),
                case_geometry_orientations(memory, &p->seen),
                step_advice(p, "orient", "; step 'orient' would turn it"));
    return true;
}

static bool warn_spacing(arena *memory, const predictor *p, const pons_case *c,
                         const case_geometry *image, logger *l)
{
    if (!case_geometry_is_scaled(&p->seen, image)
        || dataset_resizes_whole(task_rules_of(&p->experiment->sections)->target,
                                 p->experiment->preprocess))
        return false;
    log_warning(l, "case '%s' has voxels of %s mm (left-right, back-front, feet-head), training "
                "saw %s%.60s", c->name, case_geometry_spacings(memory, image),
                case_geometry_spacings(memory, &p->seen),
                step_advice(p, "spacing", "; step 'spacing' would resample it"));
    return true;
}

/* The patient's axis along which the slices of a 2D network are stacked; -1: a 3D network. */
static int axis_across(const predictor *p, const volume *image)
{
    int flat = p->experiment->task.flat_axis, world[3];
    bool negative[3];

    pons_volume_orientation(image, world, negative);
    return flat >= 0 ? world[flat] : -1;
}

static bool warn_field(arena *memory, const predictor *p, const pons_case *c,
                       const case_geometry *image, logger *l)
{
    int side = case_geometry_foreign_field(&p->seen, image, axis_across(p, &c->image));

    if (side == 0)
        return false;
    log_warning(l, "case '%s' has a field of view of %s mm (left-right, back-front, feet-head), "
                "training saw %s%.60s", c->name, case_geometry_fields(memory, image),
                case_geometry_fields(memory, &p->seen), side > 0
                ? step_advice(p, "crop_foreground",
                              "; step 'crop_foreground' would cut off background")
                : step_advice(p, "pad", "; step 'pad' would fill it up"));
    return true;
}

static bool warn_values(arena *memory, const predictor *p, const pons_case *c,
                        const case_geometry *image, logger *l)
{
    int channel = case_geometry_foreign_channel(&p->seen, image);

    if (channel < 0)
        return false;
    const geometry_range *found = &image->value[channel], *seen = &p->seen.value[channel];
    if (found->low == found->high)
        log_warning(l, "case '%s': channel %d is %.4g everywhere after [preprocess], training saw "
                    "%.4g to %.4g; is it the right file, in the same unit?", c->name, channel,
                    found->low, seen->low, seen->high);
    else
        log_warning(l, "case '%s': channel %d holds %.4g to %.4g after [preprocess], training saw "
                    "%.4g to %.4g; is it in the same unit?%.60s", c->name, channel, found->low,
                    found->high, seen->low, seen->high,
                    step_advice(p, "normalize", " step 'normalize' would even it out"));
    return true;
}

static bool warn_foreign(arena *memory, const predictor *p, const pons_case *c,
                         const case_geometry *image, logger *l)
{
    static bool (*const warn[])(arena *, const predictor *, const pons_case *,
                                const case_geometry *, logger *) =
        { warn_orientation, warn_spacing, warn_field, warn_values };
    bool said = false;

    for (size_t i = 0; i < sizeof warn / sizeof *warn; i++)
        said = warn[i](memory, p, c, image, l) || said;
    return said;
}

pons_status predict_foreign(const predict_member *m, const pons_case *c, bool force, bool *said,
                            logger *l, pons_error *err)
{
    const predictor *p = m->all[m->at];
    bool alike = pipeline_moves_alike(p->experiment->preprocess);
    arena *memory = p->compares && alike ? arena_new() : NULL;
    case_geometry image;

    if (!p->compares || !alike)
        return PONS_OK;
    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    case_geometry_of(&c->image, &image);
    if (check_orientation(memory, m, c, &image, force, err) == PONS_OK && !*said)
        *said = warn_foreign(memory, p, c, &image, l);
    arena_free(memory);
    return err->status;
}
