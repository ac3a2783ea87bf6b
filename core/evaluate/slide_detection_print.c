/*
 * slide_detection_print.c - FROC of slides as a table, JSON and CSV.
 */
#include "evaluate/slide_detection.h"

#include <inttypes.h>

#include "base/file/csv_text.h"
#include "base/file/file.h"
#include "base/file/json.h"
#include "base/text/text.h"

static int64_t excluded_targets(const slide_detection *d)
{
    int64_t sum = 0;

    for (int i = 0; i < d->count; i++)
        sum += d->item[i].excluded;
    return sum;
}

static int64_t count_findings(const slide_detection *d)
{
    int64_t sum = 0;

    for (int i = 0; i < d->count; i++)
        sum += d->item[i].finding_count;
    return sum;
}

void slide_detection_print_table(const slide_detection *d, FILE *to)
{
    int64_t found = count_findings(d), small = excluded_targets(d);

    fprintf(to, "%d slide%s, %" PRId64 " target%s (%" PRId64 " more %s too small to count), %"
            PRId64 " detection%s\n\nfalse positives per slide  sensitivity\n", d->count,
            text_plural(d->count), d->sums.targets, text_plural(d->sums.targets), small,
            small == 1 ? "is" : "are", found, text_plural(found));
    for (int i = 0; i < FROC_POINTS; i++)
        fprintf(to, "%25g  %11.4f\n", froc_at[i], froc_curve_sensitivity(&d->curve, froc_at[i]));
    fprintf(to, "%25s  %11.4f\n", "froc", froc_curve_score(&d->curve));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_list(const char *key, const double *value, int64_t count, FILE *to)
{
    fprintf(to, "\"%s\":[", key);
    for (int64_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", to);
        json_put_number(to, value[i]);
    }
    fputc(']', to);
}

static void put_case(const slide_case *c, FILE *to)
{
    int64_t hits = 0;

    for (int64_t i = 0; i < c->finding_count; i++)
        hits += c->finding[i].target > 0 && !c->finding[i].excluded;
    fputs("{\"case\":", to);
    json_put_text(to, c->name);
    fprintf(to, ",\"targets\":%d,\"excluded\":%d,\"detections\":%" PRId64 ",\"hits\":%" PRId64 "}",
            c->targets, c->excluded, c->finding_count, hits);
}

void slide_detection_print_json(const slide_detection *d, FILE *to)
{
    double sensitivity[FROC_POINTS];

    for (int i = 0; i < FROC_POINTS; i++)
        sensitivity[i] = froc_curve_sensitivity(&d->curve, froc_at[i]);
    fputs("{\"cases\":[", to);
    for (int i = 0; i < d->count; i++) {
        fputs(i > 0 ? "," : "", to);
        put_case(&d->item[i], to);
    }
    fprintf(to, "],\"froc\":{\"score\":");
    json_put_number(to, froc_curve_score(&d->curve));
    fprintf(to, ",\"targets\":%" PRId64 ",\"excluded\":%" PRId64 ",", d->sums.targets,
            excluded_targets(d));
    put_list("at", froc_at, FROC_POINTS, to);
    fputc(',', to);
    put_list("sensitivity", sensitivity, FROC_POINTS, to);
    fputs(",\"curve\":{", to);
    put_list("false_positives", d->curve.false_positives, d->curve.count, to);
    fputc(',', to);
    put_list("sensitivity", d->curve.sensitivity, d->curve.count, to);
    fputs("}}}\n", to);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void put_finding(const slide_case *c, const slide_finding *f, FILE *to)
{
    csv_put_text(to, c->name);
    fputc(',', to);
    json_put_number(to, f->probability);
    fputc(',', to);
    json_put_number(to, f->column);
    fputc(',', to);
    json_put_number(to, f->row);
    fprintf(to, ",%d,%s\n", f->target, f->target == 0 ? "miss" : f->excluded ? "excluded" : "hit");
}

pons_status slide_detection_write_csv(const slide_detection *d, const char *path, pons_error *err)
{
    safe_file f;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    fputs("case,probability,x,y,target,verdict\n", f.file);
    for (int i = 0; i < d->count; i++)
        for (int64_t n = 0; n < d->item[i].finding_count; n++)
            put_finding(&d->item[i], &d->item[i].finding[n], f.file);
    return safe_file_commit(&f, err);
}
