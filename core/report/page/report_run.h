/*
 * report_run.h - the facts about a run in the files of its folder, for its report.
 */
#ifndef CORE_REPORT_PAGE_REPORT_RUN_H
#define CORE_REPORT_PAGE_REPORT_RUN_H

#include "report/page/case_scores.h"
#include "report/history/run_history.h"

typedef struct run_fact {
    const char *name, *value;
} run_fact;

/* A line of resolved.ini. */
typedef struct run_setting {
    const char *section, *key, *value, *origin;
} run_setting;

typedef struct report_run {
    arena *memory;
    const char *path, *name;  /* the folder as it was given, and its last part                    */
    run_history history;
    case_scores cases;
    const char *resolved;     /* the text of resolved.ini; "": there is none                      */
    int setting_count, comment_count, fact_count;
    const run_setting *setting;
    const char **comment;     /* the comments above the first section, such as "pons 0.2.0"       */
    const run_fact *fact;     /* what the newest checkpoint was made with                         */
} report_run;

/*
 * Read the files of a run, also while it is training. PONS_DATA: the folder has no metrics.jsonl.
 * Other files may be missing. Everything lies in 'memory'.
 */
pons_status report_run_read(arena *memory, const char *path, report_run *out, pons_error *err);
/* A key of resolved.ini; NULL: there is none. */
const run_setting *report_run_find(const report_run *r, const char *section, const char *key);
/* Its value; "" if there is none. */
const char *report_run_setting(const report_run *r, const char *section, const char *key);
/* The number of the metric that the run's best checkpoint is chosen by, else of the first. */
int report_run_metric(const report_run *r);
/* The rest of the comment of resolved.ini that begins with a word such as "host"; NULL: none. */
const char *report_run_comment(const report_run *r, const char *word);
/* The last line of log.txt that is no hint; NULL: there is none. */
const char *report_run_last_line(const report_run *r);
/*
 * The place of the best value in the series of validations that the best checkpoint is chosen by;
 * -1: it has none. *series is NULL for a run without such a series.
 */
int report_run_best(const report_run *r, const history_series **series);

#endif
