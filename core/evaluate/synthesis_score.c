/*
 * synthesis_score.c - the target of a case, and the metrics of the image that takes its place.
 */
#include "evaluate/synthesis_score.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "infer/diffusion_sampler.h"
#include "metric/image_quality.h"

/* Percentiles are mapped to -1 and 1. */
static const double RANGE = 2;
static const ssim_window WINDOW = { 11, 1.5 };

static int draw_target(const experiment *e, const char *name)
{
    uint32_t drawn[4];

    random_data((uint64_t)e->sections.experiment.seed ^ random_stream_hash(name),
                random_stream_hash("diffusion.validation"), 0, 0, 0, 0, drawn);
    return (int)(drawn[0] % (uint32_t)e->class_count);
}

static void copy_channel(const volume *image, int channel, float *out)
{
    const float *from = image->voxels;
    int64_t count = pons_volume_count(image);

    for (int64_t i = 0; i < count; i++)
        out[i] = from[i * image->channels + channel];
}

pons_status synthesis_score_case(const replicas *network, const pons_case *c,
                                 bool (*stop)(void *context), void *context, class_score *score,
                                 pons_error *err)
{
    const experiment *e = network->experiment;
    int target = draw_target(e, c->name);
    int64_t count = pons_volume_count(&c->image);
    float *made = malloc((size_t)count * sizeof *made);
    float *truth = malloc((size_t)count * sizeof *truth);
    diffusion_request request = { .network = network, .image = c->image.voxels, .target = target,
                                  .name = c->name, .stop = stop, .context = context };
    image_quality quality;

    for (int i = 0; i < e->class_count; i++)
        score[i] = class_score_of_counts((metric_count){ 0 });
    memcpy(request.extent, c->image.extent, sizeof request.extent);
    if (made == NULL || truth == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for case '%s'", c->name);
    } else if (diffusion_sample(&request, made, err) == PONS_OK) {
        copy_channel(&c->image, target, truth);
        if (image_quality_measure(made, truth, c->image.extent, RANGE, &WINDOW, &quality, err)
            == PONS_OK) {
            score[target].value[METRIC_PSNR] = quality.psnr;
            score[target].value[METRIC_SSIM] = quality.ssim;
            score[target].value[METRIC_MAE] = quality.mae;
        }
    }
    free(made);
    free(truth);
    return err->status;
}
