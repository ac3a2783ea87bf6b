/*
 * case_file.h - one image of a case: a file, an image of a stack or a patch of a slide.
 */
#ifndef CORE_DATA_DATASET_CASE_FILE_H
#define CORE_DATA_DATASET_CASE_FILE_H

#include "data/dataset/dataset.h"

/* Whether the image is a part of a file, which it shares with other cases. */
static inline bool case_file_is_part(const data_case *c)
{
    return c->stack != NULL || c->patch != NULL;
}

/* The facts of image 'file' of a case, without its voxels. */
pons_status case_file_facts(const data_case *c, int file, volume_facts *out, pons_error *err);
/* Image 'file' of a case as F32. */
pons_status case_file_image(const data_case *c, int file, volume *out, volume_facts *facts,
                            pons_error *err);

#endif
