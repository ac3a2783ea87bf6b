/*
 * class_ranking.h - metrics of images that have one class each, from the probabilities of a
 * network.
 */
#ifndef CORE_METRIC_CLASS_RANKING_H
#define CORE_METRIC_CLASS_RANKING_H

#include <pons/plugin.h>

#include <stdint.h>

/* The images of an evaluation; 'probability' is [count][classes]. NaN ranks below all numbers. */
typedef struct class_ranking {
    int count, classes;
    const int32_t *label;         /* [count], 0 .. classes - 1                                    */
    const float *probability;
} class_ranking;

/* The most probable class of an image; the first of equals. */
int class_ranking_decide(const class_ranking *r, int image);
/* The rank of an image's label by probability, from 0; the first of equal classes ranks first. */
int class_ranking_place(const class_ranking *r, int image);
/*
 * The area under the ROC curve of 'class' against all others: the probability that an image of the
 * class has a larger value than another one, ties counting half (Mann and Whitney 1947). NaN: all
 * images are of the class, or none. PONS_DEVICE: out of memory.
 */
pons_status class_ranking_auc(const class_ranking *r, int class, double *out, pons_error *err);
/* out [classes][classes]: images of a class in rows, decisions in columns. */
void class_ranking_confusion(const class_ranking *r, int64_t *out);

#endif
