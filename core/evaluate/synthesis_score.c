/*
 * synthesis_score.c - the target of a case, and the metrics of the image that takes its place.
 */
#include "evaluate/synthesis_score.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/volume/volume.h"
#include "evaluate/evaluation.h"
#include "infer/diffusion_sampler.h"

/* Percentiles are mapped to -1 and 1. */
static const double RANGE = 2;

static int draw_target(const experiment *e, const char *name)
{
    uint32_t drawn[4];

    random_data((uint64_t)e->sections.experiment.seed ^ random_stream_hash(name),
                random_stream_hash("diffusion.validation"), 0, 0, 0, 0, drawn);
    return e->targets[drawn[0] % (uint32_t)e->target_count];
}

pons_status synthesis_score_case(const replicas *network, const pons_case *c,
                                 const synthesis_watch *watch, class_score *score,
                                 pons_error *err)
{
    const experiment *e = network->experiment;
    int target = draw_target(e, c->name);
    int64_t count = pons_volume_count(&c->image);
    float *made = malloc((size_t)count * sizeof *made);
    float *truth = malloc((size_t)count * sizeof *truth);
    diffusion_request request = { .network = network, .image = c->image.voxels, .target = target,
                                  .name = c->name, .stop = watch->stop,
                                  .context = watch->context };

    for (int i = 0; i < e->class_count; i++)
        score[i] = class_score_of_counts((metric_count){ 0 });
    memcpy(request.extent, c->image.extent, sizeof request.extent);
    if (made == NULL || truth == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for case '%s'", c->name);
    } else if (diffusion_sample(&request, made, err) == PONS_OK) {
        volume_copy_channel(&c->image, target, truth);
        if (evaluation_score_image(made, truth, c->image.extent, RANGE, &score[target], err)
                == PONS_OK && watch->made != NULL)
            watch->made(watch->context, target, &score[target], made, truth);
    }
    free(made);
    free(truth);
    return err->status;
}
