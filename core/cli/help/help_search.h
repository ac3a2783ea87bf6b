/*
 * help_search.h - a word that is no topic, looked for in names and sentences of the help.
 */
#ifndef CORE_CLI_HELP_HELP_SEARCH_H
#define CORE_CLI_HELP_HELP_SEARCH_H

/* Print the flags and keys that have the word, a line each. Return their number. */
int help_search_print(const char *word);

#endif
