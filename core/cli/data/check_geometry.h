/*
 * check_geometry.h - the spread of extents, spacings and orientations over the cases of a check.
 */
#ifndef CORE_CLI_DATA_CHECK_GEOMETRY_H
#define CORE_CLI_DATA_CHECK_GEOMETRY_H

#include "data/check/dataset_check.h"

/* The least, median and largest number along each axis of the file. */
typedef struct geometry_spread {
    int cases;                  /* readable ones; 0: the numbers are unspecified                  */
    double extent[3][3];        /* [axis][least, median, largest], voxels                         */
    double spacing[3][3];       /* millimetres                                                    */
} geometry_spread;

/* The cases of one orientation and one spacing, which is rounded to three digits. */
typedef struct geometry_group {
    char text[64];              /* "RAS          1 x 1 x 3"                                       */
    const char *orientation;
    const double *spacing;      /* of the first case                                              */
    int cases;
} geometry_group;

void geometry_spread_find(const dataset_report *r, geometry_spread *out);
/* Set *out to the groups, the largest first, in the memory of the report. Return their number. */
int geometry_groups_find(const dataset_report *r, const geometry_group **out);
/* Whether the grid of a case is known. */
bool geometry_is_known(const dataset_facts *f);

#endif
