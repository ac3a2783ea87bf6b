/*
 * held.c - a transform that never returns, or returns when a file exists. The file held.RANK shows
 * that its process has arrived there.
 */
#include <pons/transform.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct held {
    const char *until;
} held;

static const pons_option options[] = {
    PONS_PATH(held, until, "", "The file; empty: never."),
    PONS_OPTIONS_END
};

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const held *h = config;
    const char *rank = getenv("RANK");
    const struct timespec moment = { .tv_nsec = 10000000 };
    char name[64];

    snprintf(name, sizeof name, "held.%s", rank != NULL ? rank : "0");
    close(open(name, O_WRONLY | O_CREAT, 0666));
    while (h->until == NULL || access(h->until, F_OK) != 0)
        nanosleep(&moment, NULL);
    return PONS_OK;
}

static const pons_transform_operations operations = { .apply = apply };

PONS_TRANSFORM(held, "1.0", "a transform that never returns", options, operations);
