/*
 * tiny_run.h - a training that takes half a millisecond a step and has everything in it that a
 * checkpoint must bring back: augmentation, dropout, running statistics, accumulation, averages,
 * validation, epochs that end inside a step. To be included behind run_pons.h.
 */
#ifndef TESTS_TINY_RUN_H
#define TESTS_TINY_RUN_H

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/json.h"

#include "written_run.h"

static const char tiny_ini[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = data\nvalidation = last:1\nloader_threads = 1\n"
    "[patch]\nextent = 8 8 8\n"
    "[augment]\nsteps = flip gaussian_noise scale_intensity\n"
    "[augment.flip]\naxes = 0 1 2\nprobability = 0.5\n"
    "[augment.gaussian_noise]\nprobability = 0.5\n"
    "[augment.scale_intensity]\nprobability = 0.5\nfactors = 0.1\n"
    "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\nnum_res_units = 1\nnorm = batch\n"
    "dropout = 0.2\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[schedule]\nplugin = cosine\n"
    "[train]\nsteps = 40\nbatch = 1\naccumulate = 4\nprecision = fp32\nema_decay = 0.9\n"
    "validate_steps = 7\n"
    "[distribute]\nthreads = 1\n";

/* Four cases, three of them to train on. */
static inline void make_tiny_run(void)
{
    make_root();
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "4", "--extent", "12,11,10");
    write_text("e.ini", tiny_ini);
}

/* Records of steps that a run has written so far. */
static inline int steps_recorded(const char *run)
{
    char name[128];
    int count = 0;

    snprintf(name, sizeof name, "runs/%s/metrics.jsonl", run);
    if (!exists(name))
        return 0;
    for (const char *at = text_of(name); (at = strstr(at, "\"kind\":\"step\"")) != NULL; at++)
        count++;
    return count;
}

#endif
