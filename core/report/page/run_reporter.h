/*
 * run_reporter.h - the report of a run while it trains: pictures and scores of each validation, and
 * the page.
 *
 * Every rank has one and cuts slices of its cases; rank 0 writes. Its thread of low priority writes
 * pictures, and then the page from the run's files. Pages asked for meanwhile are one page, and the
 * last one is written at the end. A failure to write is a warning, once.
 */
#ifndef CORE_REPORT_PAGE_RUN_REPORTER_H
#define CORE_REPORT_PAGE_RUN_REPORTER_H

#include "base/log.h"
#include "train/trainer.h"

typedef struct run_reporter run_reporter;

/*
 * Open the report of the run at 'folder' and write the table of its network. NULL as 'folder': rank
 * 0 has it.
 */
pons_status run_reporter_open(const char *folder, const experiment *e, run_reporter **out,
                              pons_error *err);
/* Keep slices of a case of a validation; any thread (trainer_observer). NULL: nothing happens. */
void run_reporter_draw(run_reporter *r, const scored_case *c);
/* Write the scores of a validation, and begin to write its pictures. Collective. */
pons_status run_reporter_score(run_reporter *r, const validated_cases *v, pons_error *err);
/* Begin to write the page. */
void run_reporter_begin_page(run_reporter *r);
/* Wait for the page and close; 'last' writes it once more, with the last records. */
void run_reporter_close(run_reporter *r, bool last);

#endif
