/*
 * case_pictures.h - pictures of the first validation cases for the sinks that take them.
 *
 * Every rank cuts slices of its cases. They are the same slices in each validation, so that the
 * pictures of a case show what has been learnt. Rank 0 has a thread of low priority that draws them
 * and gives them to the sinks. It spends at most 0.5 % of a processor: after the pictures of a
 * validation it rests as long as its share asks for, and validations that end meanwhile have none
 * but the last one of the run.
 */
#ifndef CORE_REPORT_SINKS_CASE_PICTURES_H
#define CORE_REPORT_SINKS_CASE_PICTURES_H

#include "report/metrics.h"
#include "train/trainer.h"

typedef struct case_pictures case_pictures;

/*
 * *out is NULL where no sink takes pictures, the build lacks libpng, or the task is a
 * classification, whose pictures show no prediction. 'm' outlives it; NULL: rank 0 has it.
 */
pons_status case_pictures_open(const experiment *e, metrics *m, case_pictures **out,
                               pons_error *err);
/* Keep slices of a case of a validation; any thread. NULL: nothing happens, as below. */
void case_pictures_add(case_pictures *p, const scored_case *c);
/* Begin to give the pictures of a validation to the sinks. Collective. */
pons_status case_pictures_send(case_pictures *p, const validated_cases *v, pons_error *err);
/* Give those that wait to the sinks, and close. */
void case_pictures_close(case_pictures *p);

#endif
