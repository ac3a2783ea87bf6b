/*
 * volumes.c - print the volume of each class that a network finds in an image.
 *
 *     ./volumes runs/spleen ct.nii.gz
 *
 * Ctrl-C stops the prediction. The exit codes are those of pons.
 */
#include <pons/predict.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t stopped;

static void note_signal(int number)
{
    stopped = number;
}

static bool stop(void *context)
{
    return stopped != 0;
}

static void progress(void *context, double share)
{
    fprintf(stderr, "\r%3.0f %%", 100 * share);
}

static void print_volumes(const pons_predictor *p, const pons_volume *v)
{
    int64_t *voxels = calloc((size_t)pons_predictor_classes(p), sizeof *voxels);
    double spacing[3];

    pons_volume_spacing(v, spacing);
    for (int64_t n = 0; voxels != NULL && n < pons_volume_count(v) * v->channels; n++) {
        int value = ((const uint8_t *)v->voxels)[n];
        if (!pons_predictor_has_regions(p))
            voxels[value]++;
        else
            voxels[n % v->channels] += value;
    }
    for (int c = 0; voxels != NULL && c < pons_predictor_classes(p); c++)
        printf("%s: %lld voxels, %.3f ml\n", pons_predictor_class(p, c, NULL),
               (long long)voxels[c], (double)voxels[c] * spacing[0] * spacing[1] * spacing[2] / 1e3);
    free(voxels);
}

int main(int argc, char **argv)
{
    pons_predictor_settings settings = { .size = sizeof settings, .run = argc == 3 ? argv[1] : "" };
    pons_predict_request request = { .size = sizeof request, .file_count = 1, .stop = stop,
                                     .file = (const char *const *)&argv[2], .progress = progress };
    pons_predictor *predictor = NULL;
    pons_prediction *result = NULL;
    pons_error err = PONS_ERROR_INIT;

    signal(SIGINT, note_signal);
    if (pons_predictor_open(&settings, &predictor, &err) == PONS_OK
        && pons_predictor_run(predictor, &request, &result, &err) == PONS_OK)
        print_volumes(predictor, pons_prediction_volume(result, PONS_RESULT_CLASSES));
    if (err.status != PONS_OK)
        fprintf(stderr, "\nvolumes: %s\n", err.text);
    pons_prediction_free(result);
    pons_predictor_close(predictor);
    return (int)err.status;
}
