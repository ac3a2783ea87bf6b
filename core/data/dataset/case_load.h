/*
 * case_load.h - image and label of a case, read at the same time.
 */
#ifndef CORE_DATA_DATASET_CASE_LOAD_H
#define CORE_DATA_DATASET_CASE_LOAD_H

#include "data/dataset/dataset.h"
#include "data/volume/volume.h"

typedef struct case_files {
    volume image, label;      /* as they are in the files; no label: empty                        */
    volume_grid grid;         /* of the image                                                     */
    volume_grid label_grid;
    pons_error label_problem; /* why there is no label though there is a file                     */
} case_files;

/* ids: labels as bytes where their ids are (volume_read_ids), else I32. Fails for the image alone,
 * and then holds nothing. */
pons_status case_files_read(const data_case *info, bool ids, case_files *out, pons_error *err);

#endif
