/*
 * predict_classes.h - the table that pons predict writes for a network of task = classification.
 */
#ifndef CORE_CLI_PREDICT_PREDICT_CLASSES_H
#define CORE_CLI_PREDICT_PREDICT_CLASSES_H

#include "base/file/file.h"
#include "infer/predict.h"

/*
 * A CSV file (RFC 4180) with the columns 'file', 'class' and one for each class, its probability.
 * It replaces an older one only when it is complete.
 */
typedef struct predict_classes {
    const experiment *experiment;
    safe_file file;
    int rows;
    bool open;
} predict_classes;

/* Begin the file. Missing folders of 'path' are made. */
pons_status predict_classes_open(predict_classes *t, const experiment *e, const char *path,
                                 pons_error *err);
/* Add the row of an image. */
void predict_classes_add(predict_classes *t, const char *image, const float *probability);
/* Complete the file. The older one stays if no image has a row, or 'err' tells of a failure. */
pons_status predict_classes_close(predict_classes *t, pons_error *err);

#endif
