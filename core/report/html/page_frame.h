/*
 * page_frame.h - the frame of an HTML page: its head with the style sheet, sections and its end.
 */
#ifndef CORE_REPORT_HTML_PAGE_FRAME_H
#define CORE_REPORT_HTML_PAGE_FRAME_H

#include <stdio.h>

/* Begin a page; 'title' is its name and its heading. */
void page_begin(FILE *to, const char *title);
void page_end(FILE *to);
/* Begin a section with a heading, which #id reaches; NULL ends the last one. */
void page_section(FILE *to, const char *id, const char *heading);
/* Begin a table of 'columns' names in a box that scrolls; 'label' names the box. */
void page_table_begin(FILE *to, const char *label, int columns, const char *const *column);
void page_table_end(FILE *to);
/* Begin and end a row whose heading is 'name'. */
void page_row(FILE *to, const char *name);
/* A cell with a text, one with a number of four digits, and one with four decimals. */
void page_cell(FILE *to, const char *text);
void page_number(FILE *to, double value);
void page_score(FILE *to, double value);

#endif
