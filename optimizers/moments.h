/*
 * moments.h - the update of adam and adamw: options, slots and nodes.
 */
#ifndef OPTIMIZERS_MOMENTS_H
#define OPTIMIZERS_MOMENTS_H

#include <pons/optimizer.h>

/* The first member of each plugin's configuration. */
typedef struct moments {
    double beta1, beta2, eps, weight_decay;
    bool amsgrad;
} moments;

/* DECAY: the default of weight_decay. */
#define MOMENTS_OPTIONS(DECAY)                                                                    \
    PONS_REAL(moments, beta1, "0.9", 0, 0.9999999, "Share of the last mean gradient that is "     \
              "kept."),                                                                           \
    PONS_REAL(moments, beta2, "0.999", 0, 0.9999999, "Share of the last mean squared gradient "   \
              "kept."),                                                                           \
    PONS_REAL(moments, eps, "1e-8", 0, 1, "Added to the root of the mean squared gradient."),     \
    PONS_REAL(moments, weight_decay, DECAY, 0, 1e6, "Decay of the weights."),                     \
    PONS_FLAG(moments, amsgrad, "no", "Divide by the largest mean squared gradient so far.")

extern const pons_slot moments_slots[];

/*
 * Assign the parameter and its slots:
 *   g = g + weight_decay p                     decoupled: p = p - lr weight_decay p instead
 *   m = beta1 m + (1 - beta1) g
 *   v = beta2 v + (1 - beta2) g^2
 *   p = p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)    amsgrad: the largest v so far
 */
pons_status moments_update(pons_graph *g, const moments *c, bool decoupled,
                           const pons_parameter *p, pons_error *err);

#endif
