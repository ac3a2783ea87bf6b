/*
 * pages.h - the man pages of pons.
 */
#ifndef CORE_CLI_MANUAL_PAGES_H
#define CORE_CLI_MANUAL_PAGES_H

#include <stdio.h>

#include "cli/command.h"
#include "cli/manual/option_tables.h"

void page_command(FILE *to, const command *c);                /* pons-train(1)                    */
void page_group(FILE *to, const char *group);                 /* pons-data(1)                     */
void page_pons(FILE *to, const option_tables *tables);        /* pons(1)                          */
void page_ini(FILE *to, const option_tables *tables);         /* pons.ini(5)                      */
void page_plugin(FILE *to, const option_tables *tables);      /* pons-plugin(7)                   */

#endif
