/*
 * case_check.h - what a case must still be when a transform has changed it.
 */
#ifndef CORE_DATA_TRANSFORM_CASE_CHECK_H
#define CORE_DATA_TRANSFORM_CASE_CHECK_H

#include <pons/transform.h>

/*
 * The volumes of 'was' are all there with their types and channels, on one grid, whose axes are
 * independent. Voxels of 'was' are not looked at. PONS_PLUGIN, without the case's name.
 */
pons_status case_check(const pons_case *c, const pons_case *was, pons_error *err);

#endif
