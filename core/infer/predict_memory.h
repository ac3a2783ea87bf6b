/*
 * predict_memory.h - the bytes on the host that the prediction of a case takes besides its image,
 * its networks and the program.
 */
#ifndef CORE_INFER_PREDICT_MEMORY_H
#define CORE_INFER_PREDICT_MEMORY_H

#include "infer/predict.h"

typedef struct predict_memory {
    double planes;      /* logits of windows in work, and planes that are resampled               */
    double sums;        /* over networks or samples, of the whole preprocessed grid               */
    double result;      /* on the file's grid: decisions and further outputs                      */
} predict_memory;

/*
 * Estimate for 'networks' networks like that of 'e' and the outputs that 'w' asks for. 'extent' is
 * that of the preprocessed case, 'written' that of the file.
 */
void predict_memory_make(const experiment *e, int networks, const predict_work *w,
                         const int64_t extent[3], const int64_t written[3], predict_memory *out);

#endif
