/*
 * classification_score.h - classify held-out images and score the decisions.
 */
#ifndef CORE_EVALUATE_CLASSIFICATION_SCORE_H
#define CORE_EVALUATE_CLASSIFICATION_SCORE_H

#include "evaluate/validation.h"
#include "metric/class_ranking.h"

/*
 * validation_run of task = classification. accuracy and top5 are means over images.
 * balanced_accuracy is the recall of a class, and the mean over classes. auc is that of a class
 * against all others, and the mean over classes.
 */
pons_status classification_validate(const validation *v, validation_result *result,
                                    pons_error *err);
/* Fill 'classes' [classes + 1], the last for whole images, from the images of a ranking. */
pons_status classification_summarise(const class_ranking *r, metric_summary *classes,
                                     pons_error *err);

#endif
