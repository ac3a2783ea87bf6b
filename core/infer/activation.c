/*
 * activation.c - softmax, sigmoid or nothing, voxel by voxel; no activation changes which class of
 * labels is the largest, so that labels are decided from logits.
 */
#include "infer/activation.h"

#include <math.h>

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

void logits_activate(pons_activation activation, float *x, int64_t voxels, int classes)
{
    static void (*const activate[])(float *x, int classes) = {
        [PONS_ACTIVATION_SOFTMAX] = softmax, [PONS_ACTIVATION_SIGMOID] = sigmoid,
        [PONS_ACTIVATION_NONE] = identity
    };

    for (int64_t i = 0; i < voxels; i++)
        activate[activation](x + i * classes, classes);
}

static uint8_t largest_class(const float *x, int classes)
{
    int best = 0;

    for (int c = 1; c < classes; c++)
        best = x[c] > x[best] ? c : best;
    return (uint8_t)best;
}

static bool has_largest(const experiment *e)
{
    return !e->regions && e->task.classes > 1;
}

int logits_decisions(const experiment *e)
{
    return has_largest(e) ? 1 : e->task.classes;
}

void activated_decide(const experiment *e, const float *x, int64_t voxels, uint8_t *out)
{
    int classes = e->task.classes;

    for (int64_t i = 0; i < voxels && has_largest(e); i++)
        out[i] = largest_class(x + i * classes, classes);
    for (int64_t n = 0; n < voxels * classes && !has_largest(e); n++)
        out[n] = x[n] > 0.5f;
}

void logits_decide(const experiment *e, float *logits, int64_t voxels, uint8_t *out)
{
    if (!has_largest(e))
        logits_activate(e->activation, logits, voxels, e->task.classes);
    activated_decide(e, logits, voxels, out);
}
