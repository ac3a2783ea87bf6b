/*
 * tiny_run.c - see tiny_run.h.
 */
#include "support/run/tiny_run.h"

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

void make_tiny_run(void)
{
    make_root();
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "4", "--extent", "12,11,10");
    write_text("e.ini", tiny_ini);
}

int steps_recorded(const char *run)
{
    char name[128];
    int count = 0;

    snprintf(name, sizeof name, "runs/%s/metrics.jsonl", run);
    if (!root_has(name))
        return 0;
    for (const char *at = root_text(name); (at = strstr(at, "\"kind\":\"step\"")) != NULL; at++)
        count++;
    return count;
}
