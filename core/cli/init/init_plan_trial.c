/*
 * init_plan_trial.c - open the INI file of a plan that is guessed from the header of one case.
 *
 * A wrong --set value is refused so, before all cases are read. The guess has every step that a
 * plan may have.
 */
#include "cli/init/init_plan.h"

#include <string.h>

#include "data/reader/volume_read.h"
#include "experiment/experiment.h"

/* The share of an image that is not 0, so small that a plan crops and masks. */
static const double guessed_share = 0.5;

/* The statistics of a dataset of one case; false: its header cannot be read. */
static bool guess_statistics(const init_plan *x, dataset_statistics *out)
{
    const dataset *d = x->data;
    intensity_statistics *intensity = arena_alloc(x->memory,
                                                  (size_t)d->channels * sizeof *intensity);
    case_statistics *only = arena_alloc(x->memory, sizeof *only);
    bool regions = d->region_count > 0;
    pons_error ignored = PONS_ERROR_INIT;
    volume_facts header;

    if (volume_read_facts(d->cases[0].image[0], &header, &ignored) != PONS_OK)
        return false;
    *only = (case_statistics){ .id = d->cases[0].id, .orientation = "RAS", .foreground = 1 };
    for (int a = 0; a < 3; a++) {
        only->extent[a] = only->cropped[a] = header.grid.extent[a];
        only->spacing[a] = header.grid.spacing[a];
    }
    for (int c = 0; c < d->channels; c++)
        intensity[c] = (intensity_statistics){ .std = 1, .high = 1, .max = 1 };
    *out = (dataset_statistics){ .memory = x->memory, .case_count = 1, .cases = only,
                                 .channels = d->channels, .intensity = intensity,
                                 .class_count = regions ? d->region_count : d->class_count,
                                 .classes = regions ? d->regions : d->classes, .oriented = true,
                                 .cropped_share = guessed_share };
    return true;
}

/* Only an error of the configuration is one of --set. */
static pons_status open_text(ini_text *text, pons_error *err)
{
    pons_error cause = PONS_ERROR_INIT;
    logger quiet = { .level = LOG_QUIET };
    experiment_overrides known = { 0 };
    experiment *e = NULL;
    config *c = NULL;

    if (ini_text_open(text, &c, &cause) == PONS_OK)
        experiment_open(c, EXPERIMENT_TRAIN, &known, &quiet, &e, &cause);
    experiment_close(e);
    config_close(c);
    if (cause.status == PONS_CONFIG || cause.status == PONS_PLUGIN)
        return pons_fail(err, cause.status, "%s", cause.text);
    return PONS_OK;
}

pons_status init_plan_try(const init_plan *x, pons_error *err)
{
    init_plan guess = *x;
    dataset_statistics statistics;
    network_plan network;
    pons_error ignored = PONS_ERROR_INIT;
    ini_text text = { .memory = x->memory };

    if (x->call->set_count == 0 || !guess_statistics(x, &statistics))
        return PONS_OK;
    guess.statistics = &statistics;
    if (plan_geometry_make(statistics.cases, 1, &guess.geometry, &ignored) != PONS_OK)
        return PONS_OK;
    guess.flat = !plan_geometry_is_3d(&guess.geometry);
    network_plan_make(x->rule, &guess.geometry, guess.flat,
                      statistics.class_count + (x->data->region_count > 0), x->data->case_count,
                      &network);
    init_plan_ini(&guess, &network, &text);
    return open_text(&text, err);
}
