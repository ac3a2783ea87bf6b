/*
 * check_report_json.c - the findings of a check as one JSON object.
 */
#include "cli/data/check_report.h"

#include <inttypes.h>

#include "base/file/json.h"
#include "cli/data/check_geometry.h"
#include "data/dataset/class_list.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Write a member's name; 'first': no comma precedes it. */
static void put_name(FILE *to, bool first, const char *name)
{
    fprintf(to, "%s\"%s\":", first ? "" : ",", name);
}

static void put_text(FILE *to, bool first, const char *name, const char *text)
{
    put_name(to, first, name);
    if (text == NULL)
        fputs("null", to);
    else
        json_put_text(to, text);
}

static void put_whole(FILE *to, bool first, const char *name, int64_t number)
{
    put_name(to, first, name);
    fprintf(to, "%" PRId64, number);
}

static void put_numbers(FILE *to, const char *name, const double number[3])
{
    put_name(to, false, name);
    for (int a = 0; a < 3; a++) {
        fputc(a == 0 ? '[' : ',', to);
        json_put_number(to, number[a]);
    }
    fputc(']', to);
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The ids of a class are text, as in 'labels', since 'rest' has thousands. */
static void put_classes(FILE *to, const dataset_report *r, const char *name,
                        const data_class *classes, int count, const label_total *total)
{
    put_name(to, false, name);
    fputc('[', to);
    for (int c = 0; c < count; c++) {
        fputs(c > 0 ? ",{" : "{", to);
        put_text(to, true, "name", classes[c].name);
        put_text(to, false, "ids", class_ids_text(r->memory, &classes[c]));
        put_whole(to, false, "voxels", total[c].voxels);
        put_whole(to, false, "cases", total[c].cases);
        fputc('}', to);
    }
    fputc(']', to);
}

static void put_ids(FILE *to, const dataset *d, const dataset_report *r)
{
    put_name(to, false, "ids");
    fputc('[', to);
    for (int i = 0; i < r->id_count; i++) {
        fputs(i > 0 ? ",{" : "{", to);
        put_whole(to, true, "id", r->id[i]);
        put_text(to, false, "class", check_report_class(d, r->id[i]));
        put_whole(to, false, "voxels", r->id_voxels[i]);
        put_whole(to, false, "cases", r->id_cases[i]);
        fputc('}', to);
    }
    fputc(']', to);
}

/* ---- geometry -------------------------------------------------------------------------------- */

static void put_spread(FILE *to, const char *name, int cases, const double spread[3][3])
{
    static const char *const part[3] = { "least", "median", "largest" };

    put_name(to, false, name);
    if (cases == 0) {
        fputs("null", to);
        return;
    }
    for (int p = 0; p < 3; p++) {
        fprintf(to, "%c\"%s\":[", p == 0 ? '{' : ',', part[p]);
        for (int axis = 0; axis < 3; axis++) {
            fputs(axis > 0 ? "," : "", to);
            json_put_number(to, spread[axis][p]);
        }
        fputc(']', to);
    }
    fputc('}', to);
}

static void put_groups(FILE *to, const dataset_report *r)
{
    const geometry_group *group;
    int count = geometry_groups_find(r, &group);

    put_name(to, false, "geometry");
    fputc('[', to);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? ",{" : "{", to);
        put_text(to, true, "orientation", group[i].orientation);
        put_numbers(to, "spacing", group[i].spacing);
        put_whole(to, false, "cases", group[i].cases);
        fputc('}', to);
    }
    fputc(']', to);
}

/* ---- cases and problems ---------------------------------------------------------------------- */

static void put_case(FILE *to, const data_case *c, const dataset_facts *f, bool validation)
{
    fputc('{', to);
    put_text(to, true, "case", c->id);
    put_text(to, false, "part", validation ? "validation" : "training");
    put_name(to, false, "image");
    fputc('[', to);
    for (int i = 0; i < c->image_count; i++) {
        fputs(i > 0 ? "," : "", to);
        json_put_text(to, c->image[i]);
    }
    fputc(']', to);
    put_text(to, false, "label", c->label);
    put_name(to, false, "readable");
    fputs(f->readable ? "true" : "false", to);
    if (geometry_is_known(f)) {
        fprintf(to, ",\"extent\":[%d,%d,%d]", f->extent[0], f->extent[1], f->extent[2]);
        put_numbers(to, "spacing", f->spacing);
        put_text(to, false, "orientation", f->orientation);
        put_whole(to, false, "foreground", f->foreground);
    }
    fputc('}', to);
}

/* Both lists are sorted by case. */
static void put_cases(FILE *to, const dataset *d, const dataset_report *r)
{
    int next = 0;

    put_name(to, false, "cases");
    fputc('[', to);
    for (int i = 0; i < r->facts_count; i++) {
        bool validation = next < d->validation_count && d->validation[next] == i;

        fputs(i > 0 ? "," : "", to);
        put_case(to, &d->cases[i], &r->facts[i], validation);
        next += validation;
    }
    fputc(']', to);
}

static void put_problems(FILE *to, const dataset_report *r)
{
    put_name(to, false, "problems");
    fputc('[', to);
    for (int i = 0; i < r->problem_count; i++) {
        const dataset_problem *p = &r->problem[i];

        fputs(i > 0 ? ",{" : "{", to);
        put_text(to, true, "kind", p->warning ? "warning" : "error");
        put_text(to, false, "case", p->case_id);
        put_text(to, false, "file", p->file);
        put_text(to, false, "text", p->text);
        fputc('}', to);
    }
    fputc(']', to);
}

void check_report_print_json(const dataset *d, const dataset_report *r, FILE *to)
{
    geometry_spread spread;

    geometry_spread_find(r, &spread);
    fputc('{', to);
    put_text(to, true, "layout", d->layout);
    put_text(to, false, "origin", d->origin);
    put_text(to, false, "recognised", d->recognised);
    put_whole(to, false, "training", d->training_count);
    put_whole(to, false, "validation", d->validation_count);
    put_whole(to, false, "other", d->unused_count);
    put_whole(to, false, "channels", d->channels);
    put_name(to, false, "channel_names");
    fputc('[', to);
    for (int c = 0; c < d->channels && d->channel_names != NULL; c++) {
        fputs(c > 0 ? "," : "", to);
        json_put_text(to, d->channel_names[c]);
    }
    fputc(']', to);
    put_classes(to, r, "classes", d->classes, d->class_count, r->class_total);
    put_classes(to, r, "ignored", d->ignored, d->ignored != NULL, &r->ignored_total);
    put_classes(to, r, "regions", d->regions, d->region_count, r->region_total);
    put_ids(to, d, r);
    put_spread(to, "extent", spread.cases, (const double (*)[3])spread.extent);
    put_spread(to, "spacing", spread.cases, (const double (*)[3])spread.spacing);
    put_groups(to, r);
    put_cases(to, d, r);
    put_problems(to, r);
    put_whole(to, false, "errors", r->error_count);
    put_whole(to, false, "warnings", r->problem_count - r->error_count);
    fputs("}\n", to);
}
