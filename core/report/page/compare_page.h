/*
 * compare_page.h - a page of several runs: their differences in settings, their curves over each
 * other, and a paired test of their validation cases.
 */
#ifndef CORE_REPORT_PAGE_COMPARE_PAGE_H
#define CORE_REPORT_PAGE_COMPARE_PAGE_H

#include <pons/plugin.h>

enum { COMPARE_RUNS_MAX = 16 };

/* 'count' is 2 to COMPARE_RUNS_MAX. The first run is the one that others are compared with. */
pons_status compare_page_write(int count, const char *const *run, const char *path,
                               pons_error *err);

#endif
