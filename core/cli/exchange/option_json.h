/*
 * option_json.h - the options that a plugin was given, as JSON.
 */
#ifndef CORE_CLI_EXCHANGE_OPTION_JSON_H
#define CORE_CLI_EXCHANGE_OPTION_JSON_H

#include "base/file/json.h"

/* The value of an option: a number, truth value, text or list; a choice is its word. */
json_t *option_json_value(const pons_option *o, const void *config);
/* A list of whole numbers. */
json_t *option_json_integers(int count, const int *item);
/* An object of all options in the order of the table. */
json_t *option_json_object(const pons_option *options, const void *config);

#endif
