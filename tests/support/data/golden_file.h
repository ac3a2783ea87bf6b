/*
 * golden_file.h - files of tests/golden.
 */
#ifndef TESTS_GOLDEN_FILE_H
#define TESTS_GOLDEN_FILE_H

#include "base/file/json.h"

/* The absolute path of a file or folder. The last two results stay valid. */
const char *golden_path(const char *name);

/* The document of a file. The caller releases it. */
json_t *golden_json(const char *name);

#endif
