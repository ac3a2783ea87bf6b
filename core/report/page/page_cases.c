/*
 * page_cases.c - the cases of the last validation, worst first. Pictures are within the page, as
 * far as its size allows.
 */
#include "report/page/page_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "base/text/text.h"
#include "report/html/html.h"
#include "report/html/page_frame.h"
#include "report/picture/class_marks.h"

enum { CLASSES_MAX = 12, CASES_MAX = 200 }; /* columns of the table; cases                        */
static const size_t picture_limit = 1 << 20, pictures_limit = 7 << 19; /* a file; all files       */

typedef struct case_list {
    FILE *to;
    const report_run *run;
    const case_scores *scores;
    int metric;
    const int *order;
    int shown;                /* cases                                                            */
    size_t pictures;          /* bytes of the pictures in the page                                */
} case_list;

static void put_case_link(const case_list *l, int number)
{
    fprintf(l->to, "<tr><th scope=\"row\"><a href=\"#case-%d\">", number + 1);
    html_put_text(l->to, l->scores->name[number]);
    fputs("</a></th>", l->to);
}

/* The images of a classification. */
static void put_image_table(const case_list *l)
{
    const case_scores *s = l->scores;
    const char *column[] = { "case", "class", "decision", "probability of the class" };

    page_table_begin(l->to, "Cases of the last validation", 4, column);
    for (int n = 0; n < l->shown; n++) {
        int number = l->order[n];

        put_case_link(l, number);
        page_cell(l->to, s->label[number]);
        page_cell(l->to, s->decision[number]);
        page_score(l->to, case_scores_value(s, number, 0, l->metric));
        page_row(l->to, NULL);
    }
    page_table_end(l->to);
}

static void put_table(const case_list *l)
{
    const case_scores *s = l->scores;
    int mean = s->class_count - 1, classes = min_int(mean, CLASSES_MAX);
    const char *column[CLASSES_MAX + 2] = { "case", "mean" };

    if (s->label != NULL) {
        put_image_table(l);
        return;
    }
    for (int c = 0; c < classes; c++)
        column[c + 2] = s->class[c];
    page_table_begin(l->to, "Cases of the last validation", classes + 2, column);
    for (int n = 0; n < l->shown; n++) {
        int number = l->order[n];

        put_case_link(l, number);
        page_score(l->to, case_scores_value(s, number, mean, l->metric));
        for (int c = 0; c < classes; c++)
            page_score(l->to, case_scores_value(s, number, c, l->metric));
        page_row(l->to, NULL);
    }
    page_table_end(l->to);
    if (classes < mean)
        fprintf(l->to, "<p class=\"soft\">The first %d of %d classes; all of them are in "
                "validation/cases.csv.</p>\n", classes, mean);
}

/* ---- legend ---------------------------------------------------------------------------------- */

static void put_color(FILE *to, const uint8_t *color, const char *name)
{
    fprintf(to, "<li><span class=\"swatch\" style=\"background:#%02x%02x%02x\"></span> ", color[0],
            color[1], color[2]);
    html_put_text(to, name);
    fputs("</li>", to);
}

void page_put_legend(FILE *to, const report_run *r)
{
    int classes = r->cases.class_count - 1;

    if (r->cases.label != NULL)
        return;
    if (strcmp(report_run_setting(r, "experiment", "task"), "synthesis") == 0) {
        fputs("<p class=\"soft\">Columns of a picture: image, the modality to be made, the made "
              "one and their difference, white at half the range. Rows: the slices with the "
              "largest differences across axes 0, 1 and 2.</p>\n", to);
        return;
    }
    fputs("<p class=\"soft\">Columns of a picture: image, label, prediction and error. Rows: the "
          "slices with most wrong voxels across axes 0, 1 and 2.</p>\n<ul class=\"legend\" "
          "aria-label=\"Colours of the pictures\">", to);
    for (int c = 0; c < classes && c < CLASSES_MAX; c++)
        put_color(to, mark_class_color(c), r->cases.class[c]);
    for (int n = MARK_MISSED; n < MARK_ERROR_COUNT; n++)
        put_color(to, mark_error_color((mark_error)n),
                  arena_format(r->memory, "error: %s", mark_error_name((mark_error)n)));
    fputs("</ul>\n", to);
}

/* ---- cards ----------------------------------------------------------------------------------- */

void page_put_picture(FILE *to, const report_run *r, int number, size_t *used)
{
    const char *path = case_scores_picture(r->memory, r->path, number);
    pons_error ignored = PONS_ERROR_INIT;
    char *data = NULL;
    size_t size;

    if (access(path, F_OK) != 0
        || file_read(path, picture_limit, &data, &size, PONS_DATA, &ignored) != PONS_OK)
        return;
    if (*used + size <= pictures_limit) {
        *used += size;
        fputs("<img class=\"mosaic\" alt=\"Slices of ", to);
        html_put_text(to, r->cases.name[number]);
        fputs("\" src=\"data:image/png;base64,", to);
        html_put_base64(to, data, size);
        fputs("\">\n", to);
    } else {
        fprintf(to, "<p class=\"soft\">Its picture is validation/case_%04d.png.</p>\n",
                number + 1);
    }
    free(data);
}

/* All metrics of the mean and of the classes. */
static void put_scores(const case_list *l, int number)
{
    const case_scores *s = l->scores;
    arena *memory = l->run->memory;
    const char **column = arena_alloc(memory, (size_t)(s->metric_count + 1) * sizeof *column);

    column[0] = "class";
    memcpy(column + 1, s->metric, (size_t)s->metric_count * sizeof *column);
    page_table_begin(l->to, arena_format(memory, "Scores of %s", s->name[number]),
                     s->metric_count + 1, column);
    for (int i = 0; i < s->class_count && i <= CLASSES_MAX; i++) {
        int class = i == 0 ? s->class_count - 1 : i - 1;

        page_row(l->to, s->label != NULL ? s->label[number] : s->class[class]);
        for (int m = 0; m < s->metric_count; m++)
            page_score(l->to, case_scores_value(s, number, class, m));
        page_row(l->to, NULL);
    }
    page_table_end(l->to);
}

static void put_decision(const case_list *l, int number)
{
    const case_scores *s = l->scores;

    fputs("<p>", l->to);
    html_put_text(l->to, s->label[number]);
    if (strcmp(s->label[number], s->decision[number]) != 0) {
        fputs(" taken for ", l->to);
        html_put_text(l->to, s->decision[number]);
    }
    fputs("</p>\n", l->to);
}

static void put_card(case_list *l, int place)
{
    int number = l->order[place];

    fprintf(l->to, "<article class=\"card\" id=\"case-%d\">\n<h3>", number + 1);
    html_put_text(l->to, l->scores->name[number]);
    fputs("</h3>\n", l->to);
    page_put_picture(l->to, l->run, number, &l->pictures);
    if (l->scores->label != NULL)
        put_decision(l, number);
    put_scores(l, number);
    fputs("</article>\n", l->to);
}

void page_put_cases(FILE *to, const report_run *r)
{
    const case_scores *s = &r->cases;
    case_list l = { .to = to, .run = r, .scores = s };

    page_section(to, "cases", "Validation cases");
    if (s->case_count == 0) {
        fputs("<p>The run has no validation with scores of cases.</p>\n", to);
        page_section(to, NULL, NULL);
        return;
    }
    l.metric = s->label != NULL ? s->metric_count - 1 : report_run_metric(r);
    l.shown = min_int(s->case_count, CASES_MAX);
    l.order = case_scores_sort(r->memory, s, l.metric);
    fprintf(to, "<p>%d case%s after step %" PRId64 ", by ", s->case_count,
            text_plural(s->case_count), s->step);
    html_put_text(to, s->metric[l.metric]);
    fputs(", the worst first", to);
    if (l.shown < s->case_count)
        fprintf(to, "; %d are shown, and all are in validation/cases.csv", l.shown);
    fputs(".</p>\n", to);
    put_table(&l);
    page_put_legend(to, r);
    fputs("<div class=\"grid-box\">\n", to);
    for (int place = 0; place < l.shown; place++)
        put_card(&l, place);
    fputs("</div>\n", to);
    page_section(to, NULL, NULL);
}
