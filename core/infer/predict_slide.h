/*
 * predict_slide.h - the probabilities of the classes over a whole slide, as a map.
 */
#ifndef CORE_INFER_PREDICT_SLIDE_H
#define CORE_INFER_PREDICT_SLIDE_H

#include "data/slide/slide_thumbnail.h"
#include "infer/predict.h"

typedef struct predict_slide_work {
    const char *slide, *map;      /* files                                                        */
    slide_thumbnail *overlay;     /* written: the slide with the map over it; the caller clears   */
    int64_t stride;               /* pixels of the patches' level from point to point of the map; */
                                  /* 0: a patch                                                   */
} predict_slide_work;

/*
 * Predict the patches of a slide that networks of task = classification were trained on, each
 * around the centre of a point of the map (map_file.h). Points whose square has no tissue
 * (slide_thumbnail.h) are 0. A map of two classes has the probability of the second, else those of
 * all. The overlay shows the probability that the class is not the first one.
 *
 * Memory holds the thumbnail, a row of the map's tiles and some batches of patches. Patches depend
 * on neither devices nor processes; the first process writes. PONS_CONFIG: the networks see other
 * images than patches, or their patches differ.
 */
pons_status predict_slide_run(int count, predictor *const *p, const predict_slide_work *work,
                              pons_error *err);

#endif
