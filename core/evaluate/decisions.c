/*
 * decisions.c - collect images, and print metrics and confusion matrix.
 */
#include "evaluate/decisions.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/csv_text.h"
#include "base/file/file.h"
#include "base/file/json.h"
#include "base/integer.h"
#include "evaluate/classification_score.h"
#include "evaluate/value_text.h"

enum { CLASSES_PRINTED = 12, COLUMN_WIDTH = 6, MATRIX_MAX = 64, CONFUSION_MAX = 1024 };

void decisions_add(evaluation *e, const char *name, int label, const float *probability)
{
    size_t row = (size_t)e->class_count * sizeof *probability;
    struct decisions *d = e->decisions;

    if (d == NULL)
        d = e->decisions = arena_alloc(e->memory, sizeof *d);
    if (d->count == d->room) {
        size_t n = (size_t)d->count, room = 2 * n + 64;
        d->name = arena_grow(e->memory, d->name, n * sizeof *d->name, room * sizeof *d->name);
        d->label = arena_grow(e->memory, d->label, n * sizeof *d->label, room * sizeof *d->label);
        d->probability = arena_grow(e->memory, d->probability, n * row, room * row);
        d->room = (int)room;
    }
    d->name[d->count] = arena_string(e->memory, name);
    d->label[d->count] = label;
    memcpy((char *)d->probability + (size_t)d->count * row, probability, row);
    d->count++;
}

static class_ranking ranking_of(const evaluation *e)
{
    const struct decisions *d = e->decisions;

    return (class_ranking){ d->count, e->class_count, d->label, d->probability };
}

/* The value of a metric over all images; the mean over classes for a metric of classes. */
static double mean_of(const evaluation *e, const metric_summary *s, int kind)
{
    if (metric_facts[kind].source == METRIC_OF_CASE)
        return metric_summary_mean(&s[e->class_count], (metric_kind)kind);
    return metric_summary_mean_of(s, 0, e->class_count, (metric_kind)kind);
}

static bool is_of_class(const evaluation *e, int kind)
{
    return metric_set_has(e->metrics, (metric_kind)kind)
           && metric_facts[kind].source != METRIC_OF_CASE;
}

/* The metrics and the confusion matrix. The caller frees both. */
typedef struct decision_sums {
    metric_summary *summary;      /* [classes + 1]                                                */
    int64_t *images;              /* [classes]                                                    */
    int64_t *confusion;           /* [classes][classes]; NULL: more than CONFUSION_MAX classes    */
} decision_sums;

static pons_status sum_up(const evaluation *e, decision_sums *out, pons_error *err)
{
    class_ranking r = ranking_of(e);
    size_t classes = (size_t)e->class_count;

    out->summary = calloc(classes + 1, sizeof *out->summary);
    out->images = calloc(classes + 1, sizeof *out->images);
    if (e->class_count <= CONFUSION_MAX)
        out->confusion = calloc(classes * classes, sizeof *out->confusion);
    if (out->summary == NULL || out->images == NULL
        || (out->confusion == NULL && e->class_count <= CONFUSION_MAX))
        return pons_fail(err, PONS_DEVICE, "out of memory for a table of %d classes",
                         e->class_count);
    for (int i = 0; i < r.count; i++)
        out->images[r.label[i]]++;
    if (out->confusion != NULL)
        class_ranking_confusion(&r, out->confusion);
    return classification_summarise(&r, out->summary, err);
}

static void free_sums(decision_sums *s)
{
    free(s->summary);
    free(s->images);
    free(s->confusion);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

pons_status decisions_write_csv(const evaluation *e, const char *path, pons_error *err)
{
    const struct decisions *d = e->decisions;
    class_ranking r = ranking_of(e);
    safe_file f;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    fputs("case,class,decision", f.file);
    for (int c = 0; c < e->class_count; c++) {
        fputc(',', f.file);
        csv_put_text(f.file, e->classes[c].name);
    }
    for (int i = 0; i < d->count; i++) {
        fputc('\n', f.file);
        csv_put_text(f.file, d->name[i]);
        fputc(',', f.file);
        csv_put_text(f.file, e->classes[d->label[i]].name);
        fputc(',', f.file);
        csv_put_text(f.file, e->classes[class_ranking_decide(&r, i)].name);
        for (int c = 0; c < e->class_count; c++) {
            fputc(',', f.file);
            json_put_number(f.file, d->probability[(int64_t)i * e->class_count + c]);
        }
    }
    fputc('\n', f.file);
    return safe_file_commit(&f, err);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_image(const evaluation *e, const class_ranking *r, int image, FILE *to)
{
    const struct decisions *d = e->decisions;

    fputs(image > 0 ? ",{\"case\":" : "{\"case\":", to);
    json_put_text(to, d->name[image]);
    fputs(",\"class\":", to);
    json_put_text(to, e->classes[d->label[image]].name);
    fputs(",\"decision\":", to);
    json_put_text(to, e->classes[class_ranking_decide(r, image)].name);
    fputs(",\"probability\":{", to);
    for (int c = 0; c < e->class_count; c++) {
        fputs(c > 0 ? "," : "", to);
        json_put_text(to, e->classes[c].name);
        fputc(':', to);
        json_put_number(to, d->probability[(int64_t)image * e->class_count + c]);
    }
    fputs("}}", to);
}

static void put_class(const evaluation *e, const decision_sums *s, int class, FILE *to)
{
    fputs(class > 0 ? "," : "", to);
    json_put_text(to, e->classes[class].name);
    fprintf(to, ":{\"images\":%" PRId64, s->images[class]);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!is_of_class(e, kind))
            continue;
        fprintf(to, ",\"%s\":", metric_facts[kind].name);
        json_put_number(to, metric_summary_mean(&s->summary[class], (metric_kind)kind));
    }
    fputc('}', to);
}

static void put_means(const evaluation *e, const decision_sums *s, FILE *to)
{
    const char *comma = "";

    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!metric_set_has(e->metrics, (metric_kind)kind))
            continue;
        fprintf(to, "%s\"%s\":", comma, metric_facts[kind].name);
        json_put_number(to, mean_of(e, s->summary, kind));
        comma = ",";
    }
}

static void put_confusion(const evaluation *e, const decision_sums *s, FILE *to)
{
    fputs(s->confusion != NULL ? "[" : "null", to);
    for (int row = 0; row < e->class_count && s->confusion != NULL; row++) {
        fputs(row > 0 ? ",[" : "[", to);
        for (int c = 0; c < e->class_count; c++)
            fprintf(to, "%s%" PRId64, c > 0 ? "," : "",
                    s->confusion[(int64_t)row * e->class_count + c]);
        fputc(']', to);
    }
    fputs(s->confusion != NULL ? "]" : "", to);
}

pons_status decisions_print_json(const evaluation *e, FILE *to, pons_error *err)
{
    class_ranking r = ranking_of(e);
    decision_sums s = { NULL };

    if (sum_up(e, &s, err) == PONS_OK) {
        fputs("{\"cases\":[", to);
        for (int i = 0; i < r.count; i++)
            put_image(e, &r, i, to);
        fputs("],\"summary\":{", to);
        for (int c = 0; c < e->class_count; c++)
            put_class(e, &s, c, to);
        fputs("},\"mean\":{", to);
        put_means(e, &s, to);
        fputs("},\"confusion\":", to);
        put_confusion(e, &s, to);
        fputs("}\n", to);
    }
    free_sums(&s);
    return err->status;
}

/* ---- table ----------------------------------------------------------------------------------- */

/* The characters of a text in UTF-8. */
static int character_count(const char *text)
{
    int count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static int name_width(const evaluation *e)
{
    int width = (int)strlen("class");

    for (int c = 0; c < e->class_count; c++)
        width = max_int(width, character_count(e->classes[c].name));
    return width;
}

/* printf counts bytes, not characters. */
static void print_name(const char *name, int width, FILE *to)
{
    fprintf(to, "%s%*s", name, max_int(width - character_count(name), 0), "");
}

/* The index of the class with the lowest share of right decisions that is not yet printed. */
static int next_worst(const evaluation *e, const decision_sums *s, const bool *printed)
{
    int worst = -1;
    double least = INFINITY;

    for (int c = 0; c < e->class_count; c++) {
        double value = metric_summary_mean(&s->summary[c], METRIC_BALANCED_ACCURACY);
        if (!printed[c] && value < least) {
            worst = c;
            least = value;
        }
    }
    return worst;
}

/* A column has its name or a value, with two blanks before it. */
static int column_width(int kind)
{
    return 2 + max_int((int)strlen(metric_facts[kind].name), COLUMN_WIDTH);
}

static void print_class(const evaluation *e, const decision_sums *s, int class, int width, FILE *to)
{
    print_name(e->classes[class].name, width, to);
    for (int n = 0; n < METRIC_KIND_COUNT; n++)
        if (is_of_class(e, e->column[n]))
            value_print(to, column_width(e->column[n]),
                        metric_summary_mean(&s->summary[class], e->column[n]));
    fputc('\n', to);
}

static void print_classes(const evaluation *e, const decision_sums *s, bool all, FILE *to)
{
    int width = name_width(e), count = all ? e->class_count : CLASSES_PRINTED;
    bool *printed = calloc((size_t)e->class_count, sizeof *printed);

    fprintf(to, "%-*s", width, "class");
    for (int n = 0; n < METRIC_KIND_COUNT; n++)
        if (is_of_class(e, e->column[n]))
            fprintf(to, "%*s", column_width(e->column[n]), metric_facts[e->column[n]].name);
    fputc('\n', to);
    for (int n = 0; n < count && printed != NULL; n++) {
        int class = all ? n : next_worst(e, s, printed);
        if (class < 0)
            break;
        printed[class] = true;
        print_class(e, s, class, width, to);
    }
    if (!all)
        fprintf(to, "the worst of %d classes; --all prints every one\n", e->class_count);
    free(printed);
}

/* A row of the matrix begins with its class; the columns have names if all of them fit. */
static void print_confusion(const evaluation *e, const decision_sums *s, FILE *to)
{
    int width = name_width(e);
    bool numbered = false;

    for (int c = 0; c < e->class_count; c++)
        numbered = numbered || character_count(e->classes[c].name) > COLUMN_WIDTH;
    fprintf(to, "\nconfusion: classes in rows, decisions in columns%s\n%*s",
            numbered ? ", numbered as the rows" : "",
            width + (numbered ? COLUMN_WIDTH + 1 : 0), "");
    for (int c = 0; c < e->class_count; c++)
        if (numbered)
            fprintf(to, " %*d", COLUMN_WIDTH, c + 1);
        else
            fprintf(to, " %*s%s", COLUMN_WIDTH - character_count(e->classes[c].name), "",
                    e->classes[c].name);
    for (int row = 0; row < e->class_count; row++) {
        fputc('\n', to);
        if (numbered)
            fprintf(to, "%*d ", COLUMN_WIDTH, row + 1);
        print_name(e->classes[row].name, width, to);
        for (int c = 0; c < e->class_count; c++)
            fprintf(to, " %*" PRId64, COLUMN_WIDTH,
                    s->confusion[(int64_t)row * e->class_count + c]);
    }
    fputc('\n', to);
}

/* A kind of mistake: images of one class that were taken for another one. */
typedef struct mistake {
    int32_t class, decision;
    int count;
} mistake;

static int compare_kinds(const void *a, const void *b)
{
    const mistake *x = a, *y = b;

    return x->class != y->class ? (x->class > y->class) - (x->class < y->class)
                                : (x->decision > y->decision) - (x->decision < y->decision);
}

static int compare_counts(const void *a, const void *b)
{
    const mistake *x = a, *y = b;

    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : compare_kinds(a, b);
}

/* Sort the mistakes of all images into 'list', the most frequent first. Returns their number. */
static int list_mistakes(const class_ranking *r, mistake *list)
{
    int single = 0, kinds = 0;

    for (int i = 0; i < r->count; i++) {
        int decision = class_ranking_decide(r, i);

        if (decision != r->label[i])
            list[single++] = (mistake){ r->label[i], decision, 1 };
    }
    qsort(list, (size_t)single, sizeof *list, compare_kinds);
    for (int i = 0; i < single; i++)
        if (kinds > 0 && compare_kinds(&list[kinds - 1], &list[i]) == 0)
            list[kinds - 1].count++;
        else
            list[kinds++] = list[i];
    qsort(list, (size_t)kinds, sizeof *list, compare_counts);
    return kinds;
}

/* The matrix of many classes has more zeros than a reader wants: its largest entries. */
static void print_mistakes(const evaluation *e, FILE *to)
{
    class_ranking r = ranking_of(e);
    mistake *list = calloc((size_t)r.count + 1, sizeof *list);
    int kinds = list != NULL ? list_mistakes(&r, list) : 0;

    if (kinds > 0)
        fprintf(to, "\nthe most frequent of %d kinds of mistakes\n", kinds);
    for (int i = 0; i < kinds && i < CLASSES_PRINTED; i++)
        fprintf(to, "%*d %s taken for %s\n", COLUMN_WIDTH, list[i].count,
                e->classes[list[i].class].name, e->classes[list[i].decision].name);
    free(list);
}

pons_status decisions_print_table(const evaluation *e, bool all, FILE *to, pons_error *err)
{
    decision_sums s = { NULL };

    all = all || e->class_count <= CLASSES_PRINTED;
    if (sum_up(e, &s, err) == PONS_OK) {
        fprintf(to, "%d images, %d classes\n", e->decisions->count, e->class_count);
        for (int n = 0; n < METRIC_KIND_COUNT; n++)
            if (metric_set_has(e->metrics, e->column[n])) {
                fprintf(to, "%-18s ", metric_facts[e->column[n]].name);
                value_print(to, 0, mean_of(e, s.summary, e->column[n]));
                fputc('\n', to);
            }
        fputc('\n', to);
        print_classes(e, &s, all, to);
        if (all && e->class_count <= MATRIX_MAX)
            print_confusion(e, &s, to);
        else
            print_mistakes(e, to);
    }
    free_sums(&s);
    return err->status;
}
