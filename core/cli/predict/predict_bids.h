/*
 * predict_bids.h - predictions as a derivative of BIDS: names by the entities of the images, and
 * the files that describe them.
 */
#ifndef CORE_CLI_PREDICT_PREDICT_BIDS_H
#define CORE_CLI_PREDICT_PREDICT_BIDS_H

#include "base/arena.h"
#include "cli/predict/label_tables.h"

/*
 * The path of a case in a derivative without its suffix, "sub-01/ses-2/anat/sub-01_ses-2_acq-a" for
 * an image sub-01_ses-2_acq-a_T1w.nii.gz in a folder 'anat'. In a folder that is no data type of
 * BIDS it is 'anat'. PONS_USAGE: the name does not begin with a subject.
 */
pons_status predict_bids_stem(arena *memory, const char *image, const char **out, pons_error *err);
/* PONS_USAGE: the folder is a dataset of BIDS, but no derivative. */
pons_status predict_bids_check(arena *memory, const char *folder, pons_error *err);
/*
 * Write dataset_description.json unless the folder has one, and .bidsignore for the tables of other
 * programs, "labels.*".
 */
pons_status predict_bids_describe(arena *memory, const char *folder, pons_error *err);
/* Write the sidecar of a file; its volumes, if it has several, are named by 'count' entries. */
pons_status predict_bids_sidecar(const char *path, int count, const label_entry *entry,
                                 pons_error *err);

#endif
