/*
 * run_parameters.c - read resolved.ini.
 */
#include "sinks/run_parameters.h"

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    void (*take)(void *context, const char *name, const char *value);
    void *context;
} reader;

static int on_value(void *context, const char *section, const char *key, const char *value)
{
    const reader *r = context;
    char name[256];

    snprintf(name, sizeof name, "%s.%s", section, key);
    if (value != NULL && value[0] != '\0')
        r->take(r->context, name, value);
    return 1;
}

void run_parameters_read(const char *folder,
                         void (*take)(void *context, const char *name, const char *value),
                         void *context)
{
    reader r = { take, context };
    char *path = NULL;

    if (asprintf(&path, "%s/resolved.ini", folder) < 0)
        return;
    ini_parse(path, on_value, &r);
    free(path);
}

const char *run_default_name(const char *folder)
{
    const char *slash = strrchr(folder, '/');

    return slash != NULL ? slash + 1 : folder;
}
