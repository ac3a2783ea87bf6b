/*
 * activation.c - softmax, sigmoid or nothing, voxel by voxel; no activation changes which class of
 * labels is the largest, so that labels are decided from logits.
 */
#include <config.h>

#include "train/activation.h"

#include "base/parallel.h"
#include "data/class_list.h"

#include <math.h>
#include <string.h>

static void softmax(float *x, int classes)
{
    float largest = x[0], sum = 0;

    for (int c = 1; c < classes; c++)
        largest = fmaxf(largest, x[c]);
    for (int c = 0; c < classes; c++)
        sum += x[c] = expf(x[c] - largest);
    for (int c = 0; c < classes; c++)
        x[c] /= sum;
}

static void sigmoid(float *x, int classes)
{
    for (int c = 0; c < classes; c++)
        x[c] = 1 / (1 + expf(-x[c]));
}

static void identity(float *x, int classes)
{
}

typedef struct logits {
    void (*activate)(float *x, int classes);
    float *x;
    int classes;
} logits;

static void activate_piece(void *context, int64_t first, int64_t end)
{
    const logits *l = context;

    for (int64_t i = first; i < end; i++)
        l->activate(l->x + i * l->classes, l->classes);
}

void logits_activate(pons_activation activation, float *x, int64_t voxels, int classes)
{
    static void (*const activate[])(float *x, int classes) = {
        [PONS_ACTIVATION_SOFTMAX] = softmax, [PONS_ACTIVATION_SIGMOID] = sigmoid,
        [PONS_ACTIVATION_NONE] = identity
    };
    logits l = { activate[activation], x, classes };

    parallel_run(voxels, 1 << 16, activate_piece, &l);
}

static uint8_t largest_class(const float *x, int classes)
{
    int best = 0;

    for (int c = 1; c < classes; c++)
        best = x[c] > x[best] ? c : best;
    return (uint8_t)best;
}

void logits_decide(const experiment *e, const float *logits, int64_t voxels, uint8_t *out)
{
    int classes = e->task.classes;
    float x[CLASS_COUNT_MAX];

    for (int64_t i = 0; i < voxels; i++, logits += classes) {
        if (!e->regions && classes > 1) {
            out[i] = largest_class(logits, classes);
            continue;
        }
        memcpy(x, logits, (size_t)classes * sizeof *x);
        logits_activate(e->activation, x, 1, classes);
        for (int c = 0; c < classes; c++)
            out[i * classes + c] = x[c] > 0.5f;
    }
}
