/*
 * predict_memory.c - the memory of a case, estimated before its windows are predicted.
 */
#include "infer/predict_memory.h"

#include <math.h>

#include "base/integer.h"
#include "base/system/memory_limit.h"
#include "graph/program/explain.h"
#include "infer/activation.h"
#include "infer/infer_internal.h"
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
 * Bytes of the sums of windows, and of the planes that are resampled to the file's grid: those of
 * two windows, if the writer is late, and one more that is kept.
 */
static double plane_bytes(const experiment *e, bool logits, const int64_t extent[3])
{
    int64_t slab = window_scheduler_slab(extent, e->task.classes);
    double planes = 1 + (double)min_i64(slab, min_i64(2 * e->window[0], extent[0]));
    window_settings settings;

    experiment_window_settings(e, &settings);
    return (double)window_blend_bytes(&settings, extent, e->task.classes)
           + planes * (double)extent[1] * (double)extent[2] * 4.0 * e->task.classes * (1 + logits);
}

/*
 * Bytes of a voxel of the outputs: decisions as uint8, and further ones as float32. The ids that
 * are written take memory that the image has left.
 */
static double output_bytes(const experiment *e, const predict_work *w)
{
    return activation_decision_count(e)
           + 4.0 * e->task.classes * (w->logits + w->probabilities) + 4.0 * 2 * w->uncertainty;
}

void predict_memory_make(const experiment *e, int networks, const predict_work *w,
                         const int64_t extent[3], const int64_t written[3], predict_memory *out)
{
    bool ensemble = networks > 1 || w->uncertainty;
    int volumes = ensemble ? 1 + (networks > 1 && w->logits) + w->uncertainty : 0;

    *out = (predict_memory){
        .planes = plane_bytes(e, w->logits, extent),
        .sums = volumes * 4.0 * e->task.classes * voxel_count(extent),
        .result = voxel_count(written) * output_bytes(e, w)
    };
}

void predict_memory_tell(int count, predictor *const *p, const predict_work *w, const pons_case *c,
                         const volume_grid *grid, double *process)
{
    const experiment *e = p[0]->experiment;
    const int64_t *extent = c->image.extent;
    double image = 4.0 * c->image.channels * voxel_count(extent), network = 0, most;
    predict_memory m;

    if (*process == 0)
        *process = fmax(memory_resident_bytes() - image, 1);
    for (int i = 0; i < count; i++)
        network += network_bytes(p[i]);
    predict_memory_make(e, count, w, extent, grid->extent, &m);
    most = fmax(*process + network + image + m.planes + m.sums + m.result, memory_peak_bytes());
    log_detail(p[0]->log, "case '%s': %lld x %lld x %lld voxels; memory about %.3g GB: program "
               "and weights %.2g, network %.2g, sums of windows %.2g, image and result %.2g",
               c->name, (long long)extent[0], (long long)extent[1], (long long)extent[2],
               most / 1e9, *process / 1e9, network / 1e9, (m.planes + m.sums) / 1e9,
               (image + m.result) / 1e9);
}
