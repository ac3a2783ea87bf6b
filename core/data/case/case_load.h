/*
 * case_load.h - the files of a case as volumes: no check against each other, no mapping of label
 * ids.
 *
 * case_read.h builds on it and gives the case with its target.
 */
#ifndef CORE_DATA_CASE_CASE_LOAD_H
#define CORE_DATA_CASE_CASE_LOAD_H

#include "data/dataset/dataset.h"
#include "data/volume/volume.h"

typedef struct loaded_case {
    volume image, label;      /* voxels of the files; label empty if there is none                */
    volume_grid grid;         /* grid of the image                                                */
    volume_grid label_grid;
    pons_error label_problem; /* the label file's error; PONS_OK: read, or no file                */
} loaded_case;

/*
 * Read image and label at the same time. A grey picture gets 3 channels if 'channels' is 3
 * (picture_match_channels); the caller compares the numbers of others. 'ids': labels whose ids are
 * below 256 are stored as U8 (volume_read_label_compact); else labels are I32. An error of the
 * image is returned and leaves 'out' empty; an error of the label goes to label_problem.
 */
pons_status case_load(const data_case *info, int channels, bool ids, loaded_case *out,
                      pons_error *err);

#endif
