/*
 * report_writer.h - a thread of low priority that writes the pictures and the page of a report.
 */
#ifndef CORE_REPORT_PAGE_REPORT_WRITER_H
#define CORE_REPORT_PAGE_REPORT_WRITER_H

#include "report/page/mosaic.h"

typedef struct report_writer report_writer;

pons_status report_writer_open(const char *folder, report_writer **out, pons_error *err);
/*
 * Have a picture written, whose pixels the writer frees; any thread. It takes the place of one of
 * this case that waits. At most 128 pictures wait; the caller writes one more itself.
 */
void report_writer_picture(report_writer *w, int number, const mosaic_picture *picture);
/* Have the page written after the pictures that wait. Pages asked for meanwhile are one page. */
void report_writer_page(report_writer *w);
/* Keep a failure of the caller; any thread. */
void report_writer_note(report_writer *w, const pons_error *problem);
/* The first failure, once. */
pons_status report_writer_check(report_writer *w, pons_error *err);
/* Wait until all pictures and pages are written. */
pons_status report_writer_wait(report_writer *w, pons_error *err);
/* The same, and free the writer; also NULL. */
void report_writer_close(report_writer *w);

#endif
