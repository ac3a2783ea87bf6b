/*
 * decisions.h - an evaluation of task = classification: the decision for each image, metrics and
 * confusion matrix of all, and their tables.
 */
#ifndef CORE_EVALUATE_DECISIONS_H
#define CORE_EVALUATE_DECISIONS_H

#include "evaluate/evaluation.h"

/* Images with their classes and probabilities, in the arena of the evaluation. */
struct decisions {
    int count, room;
    const char **name;            /* [count] ids of the cases                                     */
    int32_t *label;
    float *probability;           /* [count][classes]                                             */
};

/* Add an image. The name is copied. */
void decisions_add(evaluation *e, const char *name, int label, const float *probability);
/* Write the images as CSV: case, class, decision and the probability of each class. */
pons_status decisions_write_csv(const evaluation *e, const char *path, pons_error *err);
/*
 * One JSON object; rows of "confusion" are classes, columns decisions. It is null with more than
 * 1,024 classes.
 */
pons_status decisions_print_json(const evaluation *e, FILE *to, pons_error *err);
/*
 * Print metrics and confusion matrix. The table of many classes has the worst ones alone and,
 * in place of a matrix, the most frequent mistakes; 'all' prints every class.
 */
pons_status decisions_print_table(const evaluation *e, bool all, FILE *to, pons_error *err);

#endif
