/*
 * report_page.c - the page of one run: its state, then a section for each subject.
 */
#include "report/page/report_page.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file/file.h"
#include "base/text/text.h"
#include "report/html/html.h"
#include "report/html/page_frame.h"
#include "report/page/page_internal.h"
#include "report/page/progress_plot.h"
#include "report/picture/png_write.h"

/* The best value of the series that selects checkpoints, and its step. */
static void put_best(FILE *to, const report_run *r)
{
    const history_series *s;
    int best = report_run_best(r, &s);

    if (best < 0)
        return;
    fputs("<p>Best ", to);
    html_put_text(to, s->name);
    fprintf(to, ": <strong>%.4f</strong> after step %.0f</p>\n", s->value[best], s->step[best]);
}

/* The time that the run has taken, and the date of its last record. */
static void put_times(FILE *to, const report_run *r)
{
    const run_history *h = &r->history;
    double seconds = history_series_sum(run_history_find(h, "step", "seconds"))
                     + history_series_sum(run_history_find(h, "validation", "seconds"));
    char date[32];
    struct stat file;
    struct tm day;

    fputs("<p>", to);
    html_put_number(to, seconds, 4);
    fputs(" s of steps and validations", to);
    if (stat(arena_format(r->memory, "%s/metrics.jsonl", r->path), &file) == 0
        && localtime_r(&file.st_mtim.tv_sec, &day) != NULL
        && strftime(date, sizeof date, "%F %T", &day) > 0)
        fprintf(to, ", the last one at %s", date);
    fputs("</p>\n", to);
}

/* The host and its devices. Runs of earlier versions do not have them. */
static void put_machine(FILE *to, const report_run *r)
{
    const char *host = report_run_comment(r, "host");
    const char *devices = report_run_comment(r, "devices");

    if (host == NULL)
        return;
    fputs("<p>On ", to);
    html_put_text(to, host);
    if (devices != NULL) {
        fputs("; ", to);
        html_put_text(to, devices);
    }
    fputs("</p>\n", to);
}

/* Write ' of N' behind the steps or the epochs of a run, whichever [train] gives as its length. */
static void put_length(FILE *to, const report_run *r, const char *key)
{
    const char *length = report_run_setting(r, "train", key);

    if (length[0] > '0') {
        fputs(" of ", to);
        html_put_text(to, length);
    }
}

/* The end of log.txt says how the run ended, or where it is. */
static void put_last_line(FILE *to, const report_run *r)
{
    const char *line = report_run_last_line(r);

    if (line == NULL)
        return;
    fputs("<p class=\"soft\">The log ends with: ", to);
    html_put_text(to, line);
    fputs("</p>\n", to);
}

static void put_head(FILE *to, const report_run *r)
{
    static const char *const part[][2] = {
        { "curves", "Curves" }, { "cases", "Cases" }, { "network", "Network" },
        { "time", "Time" },
        { "plugins", "Plugins" }, { "settings", "Settings" }, { "repeat", "Run it again" }
    };

    fprintf(to, "<p>Step %" PRId64, r->history.steps);
    put_length(to, r, "steps");
    fprintf(to, ", epoch %" PRId64, r->history.epochs);
    put_length(to, r, "epochs");
    fputs("</p>\n", to);
    put_last_line(to, r);
    put_times(to, r);
    put_machine(to, r);
    put_best(to, r);
    fputs("<nav aria-label=\"Parts of the page\"><ul>", to);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        fprintf(to, "<li><a href=\"#%s\">%s</a></li>", part[i][0], part[i][1]);
    fputs("</ul></nav>\n</header>\n<main>\n", to);
}

static void put_page(FILE *to, const report_run *r)
{
    page_begin(to, arena_format(r->memory, "Run %s", r->name));
    put_head(to, r);
    page_put_curves(to, r->memory, 1, r);
    page_put_cases(to, r);
    page_put_network(to, r);
    page_put_time(to, r);
    page_put_facts(to, r);
    page_end(to);
}

static pons_status write_page(const report_run *r, const char *path, pons_error *err)
{
    safe_file f;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    f.unsynced = true;
    put_page(f.file, r);
    return safe_file_commit(&f, err);
}

/* The run's own page has the picture of curves beside it; a page elsewhere leaves the run alone. */
static pons_status write_own(const report_run *r, pons_error *err)
{
    if (write_page(r, arena_format(r->memory, "%s/report.html", r->path), err) == PONS_OK
        && png_available())
        progress_plot_write(r, arena_format(r->memory, "%s/progress.png", r->path), err);
    return err->status;
}

pons_status report_page_write(const char *run, const char *path, pons_error *err)
{
    arena *memory = arena_new();
    locale_t before;
    report_run r;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a report");
    before = text_locale_begin();
    if (report_run_read(memory, run, &r, err) == PONS_OK) {
        if (path != NULL)
            write_page(&r, path, err);
        else
            write_own(&r, err);
    }
    text_locale_end(before);
    arena_free(memory);
    return err->status;
}
