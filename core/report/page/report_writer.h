/*
 * report_writer.h - a thread of low priority that writes the pictures and the page of a report.
 *
 * It spends at most 2 % of a processor: after each page it rests as long as its share asks for, and
 * takes up the newest validation then. At the end of a run it does not rest.
 */
#ifndef CORE_REPORT_PAGE_REPORT_WRITER_H
#define CORE_REPORT_PAGE_REPORT_WRITER_H

#include "report/page/worst_cases.h"

typedef struct report_writer report_writer;

pons_status report_writer_open(const char *folder, report_writer **out, pons_error *err);
/*
 * Have the pictures of a validation of 'cases' written, which the writer takes out of 'shown', and
 * those of other cases removed. They take the place of an earlier validation's that wait.
 */
void report_writer_pictures(report_writer *w, worst_cases *shown, int cases);
/* Have the page written after the pictures that wait. Pages asked for meanwhile are one page. */
void report_writer_page(report_writer *w);
/* The first failure, once. */
pons_status report_writer_check(report_writer *w, pons_error *err);
/* Wait, without any rest, until all pictures and pages are written. */
pons_status report_writer_wait(report_writer *w, pons_error *err);
/* The same, and free the writer; also NULL. */
void report_writer_close(report_writer *w);

#endif
