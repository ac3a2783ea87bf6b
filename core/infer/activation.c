/*
 * activation.c - softmax, sigmoid or identity, voxel by voxel, and the decision.
 *
 * No activation changes which class is the largest, so classes are decided from logits.
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

void activation_apply(pons_activation activation, float *x, int64_t voxels, int classes)
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

int activation_decision_count(const experiment *e)
{
    return has_largest(e) ? 1 : e->task.classes;
}

void activation_decide(const experiment *e, const float *x, int64_t voxels, uint8_t *out)
{
    int classes = e->task.classes;

    for (int64_t i = 0; i < voxels && has_largest(e); i++)
        out[i] = largest_class(x + i * classes, classes);
    for (int64_t n = 0; n < voxels * classes && !has_largest(e); n++)
        out[n] = x[n] > 0.5f;
}

void activation_decide_logits(const experiment *e, float *logits, int64_t voxels, uint8_t *out)
{
    if (!has_largest(e))
        activation_apply(e->activation, logits, voxels, e->task.classes);
    activation_decide(e, logits, voxels, out);
}
