/*
 * nifti_read.h - volumes out of NIfTI files.
 */
#ifndef CORE_DATA_NIFTI_NIFTI_READ_H
#define CORE_DATA_NIFTI_NIFTI_READ_H

#include "data/volume/volume.h"

/*
 * Check header and length and read the facts, not the voxels (.nii.gz: only its first block is
 * inflated). Every refusal is PONS_DATA: path, field, found, expected.
 */
pons_status volume_read_facts(const char *path, volume_facts *facts, pons_error *err);
/* Read an image: F32, channels = the fourth axis. 'facts' may be NULL. */
pons_status volume_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err);
/* Read a label: I32, one channel. Values that are not whole numbers are refused. */
pons_status volume_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err);
/* The same as U8 where every id is one of 0 to 255, which takes a quarter of the memory. */
pons_status volume_read_ids(const char *path, volume *out, volume_facts *facts, pons_error *err);
/*
 * One image of several files with the same grid (a comma list, channels of one case); 'grid', which
 * may be NULL, is the first one's. A 4D file adds all its channels.
 */
pons_status volume_read_channels(int count, const char *const *path, volume *out,
                                 volume_grid *grid, pons_error *err);

#endif
