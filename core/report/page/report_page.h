/*
 * report_page.h - the page of a run, report.html: one file without scripts, for any browser.
 */
#ifndef CORE_REPORT_PAGE_REPORT_PAGE_H
#define CORE_REPORT_PAGE_REPORT_PAGE_H

#include <pons/plugin.h>

/*
 * Write the page of the run at 'run' to 'path', from its files alone, also while it trains. With
 * NULL the page is RUN/report.html, and a build with libpng writes RUN/progress.png beside it
 * (progress_plot.h). PONS_DATA: the folder is no run.
 */
pons_status report_page_write(const char *run, const char *path, pons_error *err);

#endif
