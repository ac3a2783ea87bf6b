/*
 * init_plan.c - choose the patch and the batch whose training fits the memory.
 *
 * Patches shrink in the steps of nnU-Net. Each candidate is judged by its own INI file: the
 * programs of the experiment are compiled, and their memory is estimated as 'pons explain' does.
 */
#include "cli/init/init_plan.h"

#include <math.h>

#include "base/system/memory_limit.h"
#include "base/text/text.h"
#include "bench/memory_estimate.h"
#include "device/local_comm.h"
#include "experiment/experiment.h"

/* Share of the memory that a plan may fill, and share of that for preprocessed cases. */
static const double fill_share = 0.8, cache_share = 0.25;

const char *const init_style_words[] = { "nnunet", "resenc_m", "resenc_l", "resenc_xl", "monai",
                                         NULL };

enum { PLANS_MAX = 512 };

/* ---- forecast -------------------------------------------------------------------------------- */

/* Compile the programs of an experiment and estimate. */
static pons_status estimate(const experiment *e, double cropped_share, memory_estimate *out,
                            pons_error *err)
{
    program_seat seat = { &e->device, NULL, experiment_device_extracts(e) };
    program *training = NULL, *evaluation = NULL, *loss = NULL;
    local_comm *comm = NULL;
    storage *s = NULL;

    if (e->replicas > 1 && local_comm_new(e->replicas, &comm, err) == PONS_OK)
        seat.collective = local_comm_collective(comm, 0);
    if (err->status == PONS_OK && storage_new(&e->device, &s, err) == PONS_OK
        && programs_build_training(e, &seat, s, &training, err) == PONS_OK
        && (e->data->validation_count == 0
            || (programs_build_evaluation(e, &e->device, s, false, &evaluation, err) == PONS_OK
                && (!e->sections.train.validate_loss
                    || programs_build_loss(e, &e->device, s, &loss, err) == PONS_OK))))
        memory_estimate_make(e, s, training, evaluation, loss, cropped_share, out, err);
    program_free(loss);
    program_free(evaluation);
    program_free(training);
    if (s != NULL)
        storage_free(s);
    local_comm_free(comm);
    return err->status;
}

/* The memory that bounds a plan: --memory, or a share of the device's or this machine's. */
static void set_limit(init_plan *x, const pons_device_facts *facts)
{
    double size = facts->host_memory ? memory_limit_bytes() : (double)facts->memory_size;

    x->limit = x->memory_size > 0 ? (double)x->memory_size : size > 0 ? fill_share * size
                                                                     : INFINITY;
    x->limit_reason = x->memory_size > 0 ? "--memory"
                      : size <= 0 ? "the memory is unknown"
                      : facts->host_memory ? "80 % of this machine's memory"
                                           : "80 % of the device's memory";
}

/*
 * Put the least resident size of all candidates in place of that of the last one: kernels of
 * earlier candidates stay in this process, and a training has only its own.
 */
static void correct_libraries(init_plan *x, memory_estimate *f)
{
    x->libraries = x->libraries > 0 ? fmin(x->libraries, f->libraries) : f->libraries;
    f->peak += x->libraries - f->libraries;
}

/* The memory of a candidate. Devices with memory of their own hold no cases and micro-batches. */
static pons_status forecast(init_plan *x, const network_plan *network, double *bytes,
                            pons_error *err)
{
    logger quiet = { .level = LOG_QUIET };
    experiment_overrides known = { 0 };
    ini_text text = { .memory = x->memory };
    memory_estimate found;
    experiment *e = NULL;
    config *c = NULL;

    init_plan_ini(x, network, &text);
    if (ini_text_open(&text, &c, err) == PONS_OK
        && experiment_open(c, EXPERIMENT_TRAIN, &known, &quiet, &e, err) == PONS_OK
        && estimate(e, x->statistics->cropped_share, &found, err) == PONS_OK) {
        set_limit(x, &e->device.facts);
        correct_libraries(x, &found);
        *bytes = e->device.facts.host_memory ? found.peak
                 : (found.arena + found.parameters + found.scratch + found.sums)
                   / e->device_count;
    }
    experiment_close(e);
    config_close(c);
    return err->status;
}

/* A candidate that the machine cannot even hold does not fit. */
static pons_status fits(init_plan *x, const network_plan *network, bool *yes, pons_error *err)
{
    pons_error cause = PONS_ERROR_INIT;
    double bytes = INFINITY;

    if (forecast(x, network, &bytes, &cause) != PONS_OK && cause.status != PONS_DEVICE)
        return pons_fail(err, cause.status, "%s", cause.text);
    *yes = cause.status == PONS_OK && bytes <= x->limit;
    if (*yes) {
        x->network = *network;
        x->forecast = bytes;
    }
    return PONS_OK;
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* Bytes of all preprocessed cases in memory. */
static double cache_bytes(const init_plan *x)
{
    const plan_geometry *g = &x->geometry;
    const dataset *d = x->data;
    double voxels = 0;

    for (int i = 0; i < x->statistics->case_count; i++) {
        const case_statistics *c = &x->statistics->cases[i];
        double product = 1;
        for (int a = 0; a < 3; a++)
            product *= (double)c->cropped[g->axis[a]] * c->spacing[g->axis[a]] / g->spacing[a];
        voxels += product;
    }
    return voxels * (4.0 * d->channels + dataset_target_channels(d));
}

static bool wants_disk(const init_plan *x)
{
    double memory = x->memory_size > 0 ? (double)x->memory_size
                                       : fill_share * memory_limit_bytes();

    return memory > 0 && cache_bytes(x) > cache_share * memory;
}

/* ---- choose ---------------------------------------------------------------------------------- */

/* No plan fits: report what the smallest needs. */
static pons_status refuse_memory(init_plan *x, const network_plan *smallest, pons_error *err)
{
    char need[32], have[32];
    double bytes = 0;

    if (forecast(x, smallest, &bytes, err) != PONS_OK)
        return err->status;
    return pons_fail(err, PONS_DEVICE, "training with the smallest patch, %s voxels, needs %s, "
                     "expected at most %s (%s)",
                     init_plan_triple(x, smallest->patch, " x ", false),
                     text_amount(bytes, "B", need), text_amount(x->limit, "B", have),
                     x->limit_reason);
}

/* The first of the plans from 'low' on that fits, with the smallest batch. */
static pons_status choose_patch(init_plan *x, const network_plan *plan, int count, int low,
                                int *chosen, pons_error *err)
{
    int high = low;
    bool yes;

    if (fits(x, &plan[low], &yes, err) != PONS_OK)
        return err->status;
    if (!yes) {
        high = count - 1;
        if (fits(x, &plan[high], &yes, err) != PONS_OK)
            return err->status;
        if (!yes)
            return refuse_memory(x, &plan[high], err);
    }
    while (low < high) {
        int middle = (low + high) / 2;
        if (fits(x, &plan[middle], &yes, err) != PONS_OK)
            return err->status;
        low = yes ? low : middle + 1;
        high = yes ? middle : high;
    }
    *chosen = high;
    return PONS_OK;
}

/* The largest batch up to 'most' that fits. */
static pons_status choose_batch(init_plan *x, network_plan plan, int64_t most, pons_error *err)
{
    int64_t low = PLAN_BATCH_MIN, high = most;
    bool yes;

    for (int64_t batch = most; low < high; batch = (low + high + 1) / 2) {
        plan.batch = batch;
        if (fits(x, &plan, &yes, err) != PONS_OK)
            return err->status;
        low = yes ? batch : low;
        high = yes ? high : batch - 1;
    }
    plan.batch = low;
    return fits(x, &plan, &yes, err);
}

/* All patches from the largest on; the number of them. */
static int list_plans(const init_plan *x, network_plan plan[PLANS_MAX])
{
    int heads = x->statistics->class_count + (x->data->region_count > 0), count = 1;

    network_plan_begin(x->rule, &x->geometry, x->flat, heads, &plan[0]);
    for (; count < PLANS_MAX; count++) {
        plan[count] = plan[count - 1];
        if (!network_plan_shrink(&plan[count]))
            break;
    }
    return count;
}

/* The largest batch of a patch: by all rules, or with --memory by the dataset's size alone. */
static int64_t batch_limit(const init_plan *x, const network_plan *plan)
{
    plan_rule rule = *x->rule;
    network_plan p = *plan;

    if (x->memory_size > 0)
        rule.reference[0] = rule.reference[1] = INFINITY;
    network_plan_set_batch(&rule, x->statistics->case_count, &p);
    return p.batch;
}

pons_status init_plan_make(init_plan *x, pons_error *err)
{
    network_plan *plan = arena_alloc(x->memory, PLANS_MAX * sizeof *plan), own;
    int64_t cases = x->statistics->case_count;
    int count, first = 0, chosen = 0;

    if (plan_geometry_make(x->statistics->cases, (int)cases, &x->geometry, err) != PONS_OK)
        return err->status;
    x->flat = !plan_geometry_is_3d(&x->geometry);
    x->cache_disk = wants_disk(x);
    count = list_plans(x, plan);
    network_plan_make(x->rule, &x->geometry, x->flat, plan[0].heads, cases, &own);
    while (first < count - 1 && plan[first].activations > own.activations)
        first++;
    if (choose_patch(x, plan, count, x->memory_size > 0 ? 0 : first, &chosen, err) != PONS_OK
        || choose_batch(x, plan[chosen], batch_limit(x, &plan[chosen]), err) != PONS_OK)
        return err->status;
    x->reference = chosen == first && x->network.batch == own.batch;
    return PONS_OK;
}
