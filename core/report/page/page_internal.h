/*
 * page_internal.h - the sections of pages, which the page of a run and that of a comparison share.
 */
#ifndef CORE_REPORT_PAGE_PAGE_INTERNAL_H
#define CORE_REPORT_PAGE_PAGE_INTERNAL_H

#include "report/page/report_run.h"

#include <stdio.h>

/* page_curves.c: charts of all numbers of one run, or of several over each other. */
void page_put_curves(FILE *to, arena *memory, int count, const report_run *run);
/* page_cases.c: the table of the last validation, and a card with a picture for each case. */
void page_put_cases(FILE *to, const report_run *r);
/*
 * The picture of a case of the last validation. 'used' counts the bytes of the pictures in a page,
 * which has room for 3.5 MiB; behind that its file is named. A case without a picture has nothing.
 */
void page_put_picture(FILE *to, const report_run *r, int number, size_t *used);
/* The columns, rows and colours of the pictures of a run. */
void page_put_legend(FILE *to, const report_run *r);
/* page_network.c: the levels of the network. */
void page_put_network(FILE *to, const report_run *r);
/* page_time.c: how long the phases took, and the sensors of the devices. */
void page_put_time(FILE *to, const report_run *r);
/* page_facts.c: plugins, versions, settings, and the command that repeats the run. */
void page_put_facts(FILE *to, const report_run *r);

#endif
