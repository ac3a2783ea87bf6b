/*
 * init_plan_table.c - print the spread of a dataset and its plan.
 */
#include <inttypes.h>
#include <math.h>

#include "base/text/quote.h"
#include "base/text/text.h"
#include "cli/init/init_plan.h"
#include "plan/percentile.h"

/* ---- the dataset ----------------------------------------------------------------------------- */

static double extent_of(const case_statistics *c, int axis)
{
    return (double)c->extent[axis];
}

static double cropped_of(const case_statistics *c, int axis)
{
    return (double)c->cropped[axis];
}

static double spacing_of(const case_statistics *c, int axis)
{
    return c->spacing[axis];
}

/* Millilitres of a class. */
static double volume_of(const case_statistics *c, int class)
{
    return (double)c->class_voxels[class] * c->spacing[0] * c->spacing[1] * c->spacing[2] / 1000;
}

/* The least, median and largest number of all cases. */
static void find_spread(const init_plan *x, double (*number)(const case_statistics *, int),
                        int index, double spread[3])
{
    int count = x->statistics->case_count;
    double *list = arena_alloc(x->memory, (size_t)count * sizeof *list);

    for (int i = 0; i < count; i++)
        list[i] = number(&x->statistics->cases[i], index);
    for (int i = 0; i < 3; i++)
        spread[i] = percentile_find(list, count, 50 * i);
}

static void print_axes(const init_plan *x, const char *name,
                       double (*number)(const case_statistics *, int))
{
    printf("%-12s", name);
    for (int axis = 0; axis < 3; axis++) {
        double spread[3];
        find_spread(x, number, axis, spread);
        printf("  %c %6.4g %6.4g %6.4g", "ijk"[axis], spread[0], spread[1], spread[2]);
    }
    printf("\n");
}

static void print_intensities(const init_plan *x)
{
    static const char *const schemes[] = { "z-score", "CT", "unchanged", "0 to 1", "RGB" };
    const dataset *d = x->data;

    printf("\nintensities of the foreground\n%-16s %9s %9s %9s %9s %9s %9s %9s  %s\n", "channel",
           "mean", "std", "min", "0.5 %", "median", "99.5 %", "max", "normalised");
    for (int c = 0; c < d->channels; c++) {
        const intensity_statistics *s = &x->statistics->intensity[c];
        const char *name = d->channel_names != NULL ? d->channel_names[c] : NULL;
        quote_print(stdout, "%-2d %-13.40s %9.4g %9.4g %9.4g %9.4g %9.4g %9.4g %9.4g  %s\n", c,
                    name != NULL ? name : "", s->mean, s->std, s->min, s->low, s->median, s->high,
                    s->max, schemes[plan_scheme_find(name)]);
    }
}

static void print_classes(const init_plan *x)
{
    const dataset_statistics *s = x->statistics;

    printf("\n%-24s %6s %14s %10s %10s %10s\n", s->classes == x->data->regions ? "region" : "class",
           "cases", "voxels", "least ml", "median ml", "largest ml");
    for (int class = 0; class < s->class_count; class++) {
        int64_t voxels = 0;
        int cases = 0;
        double spread[3];
        for (int i = 0; i < s->case_count; i++) {
            voxels += s->cases[i].class_voxels[class];
            cases += s->cases[i].class_voxels[class] > 0;
        }
        find_spread(x, volume_of, class, spread);
        quote_print(stdout, "%-24.40s %6d %14" PRId64 " %10.4g %10.4g %10.4g\n",
                    s->classes[class].name, cases, voxels, spread[0], spread[1], spread[2]);
    }
}

void init_plan_print_dataset(const init_plan *x)
{
    const dataset *d = x->data;

    quote_print(stdout, "%.4000s\n", dataset_layout_text(d));
    printf("%d case%s, %d channel%s\n\nleast, median and largest%s\n", d->case_count,
           text_plural(d->case_count), d->channels, text_plural(d->channels),
           x->statistics->oriented ? ", along the axes of RAS" : "");
    print_axes(x, "extent", extent_of);
    print_axes(x, "not zero", cropped_of);
    print_axes(x, "spacing mm", spacing_of);
    print_intensities(x);
    print_classes(x);
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Numbers of a plan in the order of the file. */
static void print_plan_axes(const init_plan *x, const char *name, const double value[3])
{
    double file[3];

    for (int a = 0; a < 3; a++)
        file[x->geometry.axis[a]] = value[a];
    printf("%-12s %.4g x %.4g x %.4g", name, file[0], file[1], file[2]);
}

void init_plan_print(const init_plan *x)
{
    const network_plan *n = &x->network;
    network_plan low;
    char need[32], have[32];

    printf("\nplan like %s\n", init_style_words[x->style]);
    print_plan_axes(x, "spacing", x->geometry.spacing);
    printf(" mm\n");
    print_plan_axes(x, "median case", x->geometry.extent);
    printf(" voxels\n%-12s %s voxels, %d levels%s\n", "patch",
           init_plan_triple(x, n->patch, " x ", false), n->levels,
           x->reference || x->memory_size > 0 ? "" : ", smaller than nnU-Net's for this memory");
    printf("%-12s %" PRId64 " patches\n%-12s %s of %s (%s)\n", "batch", n->batch, "forecast",
           text_amount(x->forecast, "B", need),
           isfinite(x->limit) ? text_amount(x->limit, "B", have) : "unlimited memory",
           x->limit_reason);
    if (network_plan_make_lowres(x->rule, n, x->statistics->case_count, &low)) {
        print_plan_axes(x, "note", low.spacing);
        printf(" mm is the resolution at which nnU-Net would train a second network first\n");
    }
}
