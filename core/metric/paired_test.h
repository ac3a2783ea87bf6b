/*
 * paired_test.h - tests of paired differences.
 */
#ifndef CORE_METRIC_PAIRED_TEST_H
#define CORE_METRIC_PAIRED_TEST_H

#include <pons/plugin.h>

/*
 * The two-sided p of Wilcoxon's signed-rank test (1945): whether differences are symmetric around
 * 0. Differences of 0 are left out, and equal magnitudes share their mean rank. Up to 50
 * differences the distribution is exact, given the ranks; beyond it is normal with the variance of
 * the ties. The differences must be finite; without any that is not 0 p is 1.
 */
pons_status wilcoxon_signed_rank(int count, const double *difference, double *p, pons_error *err);

#endif
