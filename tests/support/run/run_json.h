/*
 * run_json.h - a file of the test's folder as JSON, such as the program's output.
 */
#ifndef TESTS_RUN_JSON_H
#define TESTS_RUN_JSON_H

#include "base/file/json.h"
#include "support/run/run_pons.h"

json_t *root_json(const char *name);

/* A nested member or item, by a path such as "kernels/0/name". */
const json_t *json_at(const json_t *v, const char *path);

#endif
