/*
 * dataset_check_mixture.c - warnings that images differ in spacing, orientation or extent.
 *
 * The network sees images after [preprocess]. To predict their geometry without reading them, a
 * volume of one voxel at the position of a case's first voxel runs through the geometric steps.
 * nnU-Net's grids have a rounded extent, which one voxel does not predict, and so a spacing beside
 * 'mm'. A step 'spacing' with one 'mm' for each axis therefore counts as one spacing.
 */
#include "data/check/dataset_check.h"

#include <string.h>

static void add_warning(dataset_report *r, const char *text)
{
    dataset_problem *more = arena_alloc(r->memory, ((size_t)r->problem_count + 1) * sizeof *more);

    if (r->problem_count > 0)
        memcpy(more, r->problem, (size_t)r->problem_count * sizeof *more);
    more[r->problem_count++] = (dataset_problem){ .text = text, .warning = true };
    r->problem = more;
}

/* A case of one foreground voxel, at the position of the first voxel. */
static pons_status make_voxel_case(const dataset_facts *f, int channels, pons_case *out,
                                   pons_error *err)
{
    static const int64_t extent[3] = { 1, 1, 1 };

    *out = (pons_case){ .size = sizeof *out };
    if (pons_volume_init(&out->image, PONS_F32, channels, extent, err) != PONS_OK
        || pons_volume_init(&out->label, PONS_U8, 1, extent, err) != PONS_OK)
        return err->status;
    for (int channel = 0; channel < channels; channel++)
        ((float *)out->image.voxels)[channel] = 1;
    *(uint8_t *)out->label.voxels = 1;
    memcpy(out->image.affine, f->affine, sizeof f->affine);
    memcpy(out->label.affine, f->affine, sizeof f->affine);
    return PONS_OK;
}

/* The geometry of a one-voxel volume after the geometric steps; false: a step refuses it. */
static bool geometry_of_case_after(const dataset_facts *f, const pipeline *moves, int channels,
                                   case_geometry *out)
{
    pons_error inner = PONS_ERROR_INIT;
    pons_case c;
    bool good = make_voxel_case(f, channels, &c, &inner) == PONS_OK
                && pipeline_apply(moves, PIPELINE_TRAINING, &c, NULL, &inner) == PONS_OK;

    if (good)
        case_geometry_of_position(&c.image, out);
    pons_volume_clear(&c.image);
    pons_volume_clear(&c.label);
    return good;
}

/* The geometry of all images after the steps; false: one voxel is not enough to predict it. */
static bool geometry_after(const dataset_report *r, const pipeline *chain, int channels,
                           case_geometry *out)
{
    pipeline moves = { 0, arena_alloc(r->memory, (size_t)chain->count * sizeof *moves.step
                                                         + 1) };
    case_geometry place;

    for (int i = 0; i < chain->count; i++)
        if (chain->step[i].operations->geometric)
            moves.step[moves.count++] = chain->step[i];
    case_geometry_init(out);
    for (int i = 0; i < r->facts_count; i++) {
        if (r->facts[i].orientation[0] == '\0')
            continue;
        if (!geometry_of_case_after(&r->facts[i], &moves, channels, &place))
            return false;
        case_geometry_join(out, &place);
    }
    return true;
}

bool dataset_resizes_whole(dataset_target target, const pipeline *chain)
{
    return target == TARGET_OF_CASE && pipeline_has(chain, "resize");
}

/* Whether a step 'spacing' gives every image the same spacing along each axis. */
static bool fixes_spacing(const pipeline_step *s)
{
    const double *mm = pipeline_step_axes(s, "mm"), *low = pipeline_step_axes(s, "min_pixdim"),
                 *high = pipeline_step_axes(s, "max_pixdim");

    if (mm == NULL || low == NULL || high == NULL)
        return false;
    for (int a = 0; a < 3; a++)
        if (mm[a] <= 0 || low[a] > 0 || high[a] > 0)
            return false;
    return true;
}

bool dataset_spacing_is_fixed(const pipeline *chain)
{
    bool fixed = false;

    for (int i = 0; chain != NULL && i < chain->count; i++) {
        const pipeline_step *s = &chain->step[i];
        if (strcmp(s->plugin, "spacing") == 0 && s->cases == PIPELINE_ALL)
            fixed = fixes_spacing(s);
        else if (strcmp(s->plugin, "spacing") == 0 || strcmp(s->plugin, "resize") == 0)
            fixed = false;
    }
    return fixed;
}

const char *dataset_spacing_remedy(const pipeline *chain)
{
    return pipeline_has(chain, "spacing")
               ? "one 'mm' above 0 for each axis of step 'spacing', without 'min_pixdim' and "
                 "'max_pixdim', makes them alike"
               : "step 'spacing' in [preprocess] makes them alike";
}

void dataset_report_add_mixtures(dataset_report *r, const dataset *d, const pipeline *chain)
{
    case_geometry after;
    bool predicted = geometry_after(r, chain, d->channels, &after);
    const case_geometry *g = predicted ? &after : &r->geometry;
    const char *when = predicted && chain->count > 0 ? " after [preprocess]" : "";

    if ((predicted || !pipeline_has(chain, "orient")) && case_geometry_orientation_count(g) > 1)
        add_warning(r, arena_format(r->memory, "images have different orientations%s (%s), and no "
                                    "step 'orient' in [preprocess] turns them alike", when,
                                    case_geometry_orientations(r->memory, g)));
    if ((predicted || !pipeline_has(chain, "spacing")) && case_geometry_spacing_varies(g)
        && !dataset_spacing_is_fixed(chain) && !dataset_resizes_whole(d->target, chain))
        add_warning(r, arena_format(r->memory, "images have different spacings%s (%s mm along "
                                    "left-right, back-front, feet-head); %s", when,
                                    case_geometry_spacings(r->memory, g),
                                    dataset_spacing_remedy(chain)));
}

static bool changes_grid(const pipeline *chain)
{
    for (int i = 0; i < chain->count; i++)
        if (chain->step[i].operations->geometric)
            return true;
    return false;
}

static const char *extent_text(arena *memory, const dataset_facts *f)
{
    return arena_format(memory, "%d x %d x %d", f->extent[0], f->extent[1], f->extent[2]);
}

void dataset_report_add_extents(dataset_report *r, const dataset *d, const pipeline *chain)
{
    const dataset_facts *first = NULL, *other = NULL;

    for (int i = 0; i < r->facts_count && other == NULL; i++) {
        const dataset_facts *f = &r->facts[i];

        if (!f->readable)
            continue;
        if (first == NULL)
            first = f;
        else if (memcmp(f->extent, first->extent, sizeof f->extent) != 0)
            other = f;
    }
    if (d->target != TARGET_OF_CASE || changes_grid(chain) || other == NULL)
        return;
    add_warning(r, arena_format(r->memory, "images have different extents, as '%s' with %s voxels "
                                "and '%s' with %s; a step of [preprocess] such as resize makes "
                                "them alike", d->cases[first->rank].id,
                                extent_text(r->memory, first), d->cases[other->rank].id,
                                extent_text(r->memory, other)));
}
