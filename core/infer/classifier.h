/*
 * classifier.h - the logits of whole images, batch by batch on the devices of this process.
 */
#ifndef CORE_INFER_CLASSIFIER_H
#define CORE_INFER_CLASSIFIER_H

#include "replica/replicas.h"

/*
 * Batch b holds images b N .. b N + N - 1, with N of [window] batch; an incomplete one is filled
 * with its last image. The batches of a process are first, first + step and so on. The images of
 * a batch depend on neither devices nor processes, so the bits of the result do not either.
 */
typedef struct classifier_work {
    int count;                /* images                                                           */
    int first, step;
    /* Write image 'number', [window][channels]. Several threads may call it at once. */
    pons_status (*read)(void *context, int number, float *to, pons_error *err);
    bool parallel;            /* several threads read the images of a batch                       */
    bool (*stop)(void *context);  /* called before every batch, by any device; may be NULL        */
    void *context;
} classifier_work;

/*
 * out [count][classes]; rows of other processes' batches stay. PONS_INTERRUPTED: 'stop' returned
 * true.
 */
pons_status classifier_run(replicas *r, const classifier_work *work, float *out, pons_error *err);
/* The number of batches. */
int classifier_batches(const experiment *e, int count);
/*
 * Check that a preprocessed image is as large as the window. PONS_DATA: the case with its file, and
 * the extents found and expected.
 */
pons_status classifier_check(const experiment *e, const char *name, const char *file,
                             const pons_volume *image, pons_error *err);

#endif
