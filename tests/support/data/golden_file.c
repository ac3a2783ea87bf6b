/*
 * golden_file.c - see golden_file.h.
 */
#include "support/data/golden_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/asserts.h"

const char *golden_path(const char *name)
{
    static char path[2][PATH_MAX];
    static int next;
    const char *folder = getenv("srcdir");
    char joined[PATH_MAX];

    next = !next;
    snprintf(joined, sizeof joined, "%s/tests/golden/%s", folder != NULL ? folder : ".", name);
    ck_assert_msg(realpath(joined, path[next]) != NULL, "no %s", joined);
    return path[next];
}

json_t *golden_json(const char *name)
{
    json_error_t error;
    json_t *document = json_load_file(golden_path(name), 0, &error);

    ck_assert_msg(document != NULL, "%s:%d: %s", name, error.line, error.text);
    return document;
}
