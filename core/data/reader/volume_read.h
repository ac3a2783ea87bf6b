/*
 * volume_read.h - read volumes from files of any format: NIfTI, or a picture by the ending of its
 * name (.png, .jpg, .jpeg, .tif, .tiff).
 */
#ifndef CORE_DATA_READER_VOLUME_READ_H
#define CORE_DATA_READER_VOLUME_READ_H

#include "data/volume/volume.h"

/*
 * Types and errors are those of nifti_read.h and picture_read.h. 'facts' of the last three may be
 * NULL.
 */
pons_status volume_read_facts(const char *path, volume_facts *facts, pons_error *err);
/* The facts of a label file: in a picture with a palette the indices are its only channel. */
pons_status volume_read_label_facts(const char *path, volume_facts *facts, pons_error *err);
pons_status volume_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err);
pons_status volume_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err);
pons_status volume_read_label_compact(const char *path, volume *out, volume_facts *facts,
                                      pons_error *err);
/*
 * Read one image from several files with the same grid: channels of one case, or a comma list.
 * 'grid', which may be NULL, receives the first file's grid. A file of several channels contributes
 * all of them.
 */
pons_status volume_read_channels(int count, const char *const *path, volume *out,
                                 volume_grid *grid, pons_error *err);

#endif
