/*
 * effect - a valid schedule whose constructor makes the file that PONS_TEST_EFFECT names. The file
 * shows that code of the plugin has run.
 */
#include <pons/schedule.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct effect {
    double factor;
} effect;

static const pons_option options[] = {
    PONS_REAL(effect, factor, "0.5", 0, 1, "What it returns at all times."),
    PONS_OPTIONS_END
};

__attribute__((constructor)) static void leave_trace(void)
{
    const char *path = getenv("PONS_TEST_EFFECT");
    FILE *f = path != NULL ? fopen(path, "w") : NULL;

    if (f != NULL)
        fclose(f);
}

static double factor(const void *config, double t, double total)
{
    return ((const effect *)config)->factor;
}

static const pons_schedule_operations operations = { .factor = factor };

PONS_SCHEDULE(effect, "1.0", "a constant that leaves a trace", options, operations);
