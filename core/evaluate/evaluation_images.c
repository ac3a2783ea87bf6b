/*
 * evaluation_images.c - pairs of images: each channel is a class of the evaluation.
 */
#include "evaluate/evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "data/reader/volume_read.h"
#include "data/volume/geometry.h"
#include "metric/image_quality.h"

pons_status evaluation_find_channels(evaluation *e, const char *file, pons_error *err)
{
    volume_facts facts;

    if (volume_read_facts(file, &facts, err) != PONS_OK)
        return err->status;
    if (facts.channels > CLASS_COUNT_MAX)
        return pons_fail(err, PONS_DATA, "'%s' has %d channels, expected at most %d", file,
                         facts.channels, CLASS_COUNT_MAX);
    data_class *classes = arena_alloc(e->memory, (size_t)facts.channels * sizeof *classes);
    for (int c = 0; c < facts.channels; c++)
        classes[c].name = facts.channels > 1 ? arena_format(e->memory, "%d", c) : "image";
    e->class_count = facts.channels;
    e->classes = classes;
    return PONS_OK;
}

pons_status evaluation_score_image(const float *image, const float *truth, const int64_t extent[3],
                                   double range, class_score *score, pons_error *err)
{
    image_quality quality;

    if (image_quality_measure(image, truth, extent, range, &image_quality_window, &quality, err)
        != PONS_OK)
        return err->status;
    score->value[METRIC_PSNR] = quality.psnr;
    score->value[METRIC_SSIM] = quality.ssim;
    score->value[METRIC_MAE] = quality.mae;
    return PONS_OK;
}

/* Read a file and check that it has the evaluation's channels. */
static pons_status read_channels(const evaluation *e, const char *file, volume *out,
                                 volume_facts *facts, pons_error *err)
{
    if (volume_read_image(file, out, facts, err) == PONS_OK && out->channels != e->class_count)
        pons_fail(err, PONS_DATA, "'%s' has %d channel%s, expected %d as in the first file", file,
                  out->channels, out->channels == 1 ? "" : "s", e->class_count);
    return err->status;
}

static double range_of(const float *x, int64_t count)
{
    float low = x[0], high = x[0];

    for (int64_t i = 1; i < count; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return (double)high - low;
}

/* Score the channels of two images on one grid. */
static pons_status score_channels(const evaluation *e, const char *file, const volume *image,
                                  const volume *truth, class_score *score, pons_error *err)
{
    int64_t count = pons_volume_count(truth);
    float *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);

    if (x == NULL || y == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a channel of '%s'", file);
    for (int c = 0; c < e->class_count && err->status == PONS_OK; c++) {
        volume_copy_channel(image, c, x);
        volume_copy_channel(truth, c, y);
        double range = e->range > 0 ? e->range : range_of(y, count);

        score[c] = class_score_of_counts((metric_count){ 0 });
        if (range > 0)
            evaluation_score_image(x, y, truth->extent, range, &score[c], err);
        else
            pons_fail(err, PONS_DATA, "'%s': every voxel of channel %d is %g, expected a range of "
                      "values\nhint: --range gives one", file, c, y[0]);
    }
    free(x);
    free(y);
    return err->status;
}

pons_status evaluation_add_images(evaluation *e, const char *name, const char *prediction,
                                  const char *label, pons_error *err)
{
    class_score *score = arena_alloc(e->memory, (size_t)e->class_count * sizeof *score);
    volume image, truth;
    volume_facts of_image, of_truth;

    memset(&image, 0, sizeof image);
    memset(&truth, 0, sizeof truth);
    if (read_channels(e, prediction, &image, &of_image, err) == PONS_OK
        && read_channels(e, label, &truth, &of_truth, err) == PONS_OK
        && volume_grid_compare(&of_image.grid, prediction, &of_truth.grid, label, err) == PONS_OK
        && score_channels(e, label, &image, &truth, score, err) == PONS_OK)
        evaluation_add_scores(e, name, score, err);
    pons_volume_clear(&image);
    pons_volume_clear(&truth);
    return err->status;
}
