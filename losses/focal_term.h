/*
 * focal_term.h - the focal loss (Lin et al. 2017, arXiv:1708.02002, as in MONAI's FocalLoss).
 *
 * The loss is binary in every channel, with s = sigmoid of the logit towards the target g:
 *   (1 - s)^gamma (-log s)                  times alpha for g = 1 and 1 - alpha for g = 0
 * That of exclusive classes, with q = softmax of the logits of all classes that count, is
 *   (1 - q)^gamma (-log q) g                times alpha, but 1 - alpha in class 0
 *
 * The factor alpha is there if it is given, and the weight of each class. The reduction is the mean
 * over cases, classes and voxels, or the sum over cases and classes of the mean over voxels.
 */
#ifndef LOSSES_FOCAL_TERM_H
#define LOSSES_FOCAL_TERM_H

#include "classes.h"
#include "voxels.h"

typedef struct focal_term {
    bool include_background, softmax;
    reduction reduction;
    double gamma;
    pons_reals alpha, weight; /* of classes that count                                            */
} focal_term;

/* x, t: logits and target, [N, D, H, W, C]; valid: see voxels.h. */
pons_node *focal_term_value(pons_graph *g, const focal_term *f, const pons_task *task,
                            pons_node *x, pons_node *t, pons_node *valid);

#endif
