/*
 * held.c - a transform that never returns: how far its process is can be seen by a file, held.RANK.
 */
#include <pons/transform.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct held {
    int none;
} held;

static const pons_option options[] = { PONS_OPTIONS_END };

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const char *rank = getenv("RANK");
    char name[64];

    snprintf(name, sizeof name, "held.%s", rank != NULL ? rank : "0");
    close(open(name, O_WRONLY | O_CREAT, 0666));
    while (pause() != 0)
        continue;
    return PONS_OK;
}

PONS_TRANSFORM(held, "1.0", "a transform that never returns", options, false, NULL, apply)
