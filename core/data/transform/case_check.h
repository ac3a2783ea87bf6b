/*
 * case_check.h - check a case after a transform.
 */
#ifndef CORE_DATA_TRANSFORM_CASE_CHECK_H
#define CORE_DATA_TRANSFORM_CASE_CHECK_H

#include <pons/transform.h>

/*
 * PONS_PLUGIN unless 'c' has all volumes of 'was' with their types and channels, on one grid with
 * independent axes. Voxels of 'was' are not read. The message has no case name.
 */
pons_status case_check(const pons_case *c, const pons_case *was, pons_error *err);

#endif
