/*
 * volumes.c - print the volume of each class that a network finds in an image.
 *
 *     ./volumes runs/spleen ct.nii.gz
 *
 * Ctrl-C stops the prediction. The exit codes are those of pons. The file is C11 and C++20.
 */
#include <pons/pons.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t stopped;

static void note_signal(int number)
{
    stopped = number;
}

static bool stop(void *context)
{
    return stopped != 0;
}

static void print_volumes(const pons_predictor *p, const pons_volume *v)
{
    bool regions = pons_predictor_has_regions(p);
    double mm[3];

    pons_volume_spacing(v, mm);
    for (int c = 0; c < pons_predictor_classes(p); c++) {
        int64_t count = 0;

        for (int64_t n = regions ? c : 0; n < pons_volume_count(v) * v->channels; n += v->channels)
            count += ((const uint8_t *)v->voxels)[n] == (regions ? 1 : c);
        printf("%s: %lld voxels, %.3f ml\n", pons_predictor_class(p, c, NULL), (long long)count,
               (double)count * mm[0] * mm[1] * mm[2] / 1000);
    }
}

int main(int argc, char **argv)
{
    pons_predictor_settings settings = { .size = sizeof settings, .run = argv[1] };
    pons_predict_request request = { .size = sizeof request, .file_count = 1,
                                     .file = (const char *const *)&argv[2], .stop = stop };
    pons_predictor *predictor = NULL;
    pons_prediction *result = NULL;
    pons_error err = PONS_ERROR_INIT;

    if (argc != 3) {
        fprintf(stderr, "usage: %s RUN IMAGE\n", argv[0]);
        return PONS_USAGE;
    }
    pons_process_prepare();
    signal(SIGINT, note_signal);
    if (pons_predictor_open(&settings, &predictor, &err) == PONS_OK
        && pons_predictor_run(predictor, &request, &result, &err) == PONS_OK)
        print_volumes(predictor, pons_prediction_volume(result, PONS_RESULT_CLASSES));
    if (err.status != PONS_OK)
        fprintf(stderr, "volumes: %s\n", err.text);
    pons_prediction_free(result);
    pons_predictor_close(predictor);
    return (int)err.status;
}
