/*
 * roff.h - the text of a man page, in the macros of man(7).
 */
#ifndef CORE_CLI_MANUAL_ROFF_H
#define CORE_CLI_MANUAL_ROFF_H

#include <stdio.h>

/* Begin the page 'name' of a section, such as "pons-train" of "1". */
void roff_begin(FILE *to, const char *name, const char *section);
void roff_heading(FILE *to, const char *title);    /* .SH */
void roff_subheading(FILE *to, const char *title); /* .SS */
/* A paragraph of its own, of whole sentences. */
void roff_paragraph(FILE *to, const char *text);
/* Lines that keep their form. 'text' ends with a newline. */
void roff_example(FILE *to, const char *text);
/* A term in bold with what follows it ("= 16", NULL: nothing), above its description. */
void roff_term(FILE *to, const char *term, const char *rest, const char *description);
/* A further line of a term's description. */
void roff_break(FILE *to, const char *title, const char *text);
/* Print text with roff's own characters escaped, and a line break. */
void roff_line(FILE *to, const char *text);

#endif
