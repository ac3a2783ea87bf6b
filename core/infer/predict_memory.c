/*
 * predict_memory.c - the memory of a case, estimated before its windows are predicted.
 */
#include "infer/infer_internal.h"

#include <math.h>
#include <sys/resource.h>

#include "base/integer.h"
#include "base/system/memory_limit.h"
#include "graph/program/explain.h"
#include "infer/activation.h"
#include "infer/window_scheduler.h"
#include "window/window_blend.h"

static double voxel_count(const int64_t extent[3])
{
    return (double)extent[0] * (double)extent[1] * (double)extent[2];
}

/* Bytes of the maps and packed weights of all replicas of a network on the host. */
static double network_bytes(const predictor *p)
{
    double sum = 0;

    for (int i = 0; i < p->replicas.count; i++) {
        const replica *one = &p->replicas.item[i];
        program_facts facts;

        program_describe(one->evaluation, &facts);
        if (one->device->facts.host_memory)
            sum += (double)facts.arena + (double)facts.packed + (double)facts.inputs;
    }
    return sum;
}

/*
 * Bytes of a case's outputs on the file's grid, and of the planes that are resampled to it: those
 * of two windows, if the writer is late, and one more that is kept.
 */
static double result_bytes(const experiment *e, const predict_work *w, const int64_t extent[3],
                           const volume_grid *grid)
{
    double values = 4.0 * e->task.classes * (w->logits + w->probabilities);
    int64_t slab = window_scheduler_slab(extent, e->task.classes);
    double planes = 1 + (double)min_i64(slab, min_i64(2 * e->window[0], extent[0]));

    return voxel_count(grid->extent) * (values + activation_decision_count(e))
           + planes * (double)extent[1] * (double)extent[2] * 4.0 * e->task.classes
             * (1 + w->logits);
}

/* Bytes of sums over windows, and over networks or samples, which are of the whole grid. */
static double sums_bytes(const experiment *e, const predict_work *w, int networks,
                         const int64_t extent[3])
{
    bool ensemble = networks > 1 || w->uncertainty;
    int volumes = ensemble ? 1 + (networks > 1 && w->logits) + w->uncertainty : 0;
    window_settings settings;

    experiment_window_settings(e, &settings);
    return (double)window_blend_bytes(&settings, extent, e->task.classes)
           + volumes * 4.0 * e->task.classes * voxel_count(extent);
}

void predict_memory_tell(int count, predictor *const *p, const predict_work *w, const pons_case *c,
                         const volume_grid *grid, double *process)
{
    const experiment *e = p[0]->experiment;
    const int64_t *extent = c->image.extent;
    double image = 4.0 * c->image.channels * voxel_count(extent), network = 0, sums, result, most;
    struct rusage used;

    if (*process == 0)
        *process = fmax(memory_resident_bytes() - image, 1);
    for (int i = 0; i < count; i++)
        network += network_bytes(p[i]);
    sums = sums_bytes(e, w, count, extent);
    result = result_bytes(e, w, extent, grid);
    most = *process + network + image + sums + result;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        most = fmax(most, 1024.0 * (double)used.ru_maxrss);
    log_detail(p[0]->log, "case '%s': %lld x %lld x %lld voxels; memory about %.3g GB: program "
               "and weights %.2g, network %.2g, sums of windows %.2g, image and result %.2g",
               c->name, (long long)extent[0], (long long)extent[1], (long long)extent[2],
               most / 1e9, *process / 1e9, network / 1e9, sums / 1e9, (image + result) / 1e9);
}
