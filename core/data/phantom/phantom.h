/*
 * phantom.h - synthetic heads that a small network can learn, in the Decathlon's layout.
 */
#ifndef CORE_DATA_PHANTOM_PHANTOM_H
#define CORE_DATA_PHANTOM_PHANTOM_H

#include "base/log.h"
#include "data/volume/volume.h"

typedef struct phantom_settings {
    int64_t cases;
    int extent[3];
    int channels;            /* 1 .. 16                                                           */
    int classes;             /* with background, 2 .. 64                                          */
    uint64_t seed;
} phantom_settings;

/* Make one case: image F32 (whole numbers, 0 in air), label U8. Depends on the arguments alone. */
pons_status phantom_make(const phantom_settings *settings, int64_t number, volume *image,
                         volume *label, pons_error *err);
/* Write dataset.json, imagesTr/phantom_000.nii.gz, labelsTr/phantom_000.nii.gz, ... to 'folder'. */
pons_status phantom_write(const char *folder, const phantom_settings *settings, logger *l,
                          pons_error *err);

#endif
