/*
 * tolerance.h - every tolerance of the tests, with its argument.
 */
#ifndef TESTS_TOLERANCE_H
#define TESTS_TOLERANCE_H

/*
 * Gradient in double against central differences with step 1e-5: rounding of a sum of order 10 divided
 * by the step is 1e-10, the third derivative's share h^2 f'''/6 stays below 1e-8.
 */
#define DIFFERENCE_ABSOLUTE 1e-5
#define DIFFERENCE_RELATIVE 1e-3

/*
 * Float kernels against double kernels, of a tensor's largest element: each node rounds to 2^-24
 * relative, longest chains of the op table have some thirty nodes and divide by roots of variances
 * near 0.01, which enlarge an error tenfold.
 */
#define FLOAT_OF_LARGEST 2e-5

/*
 * Double kernels against PyTorch in double: both round to 2^-53 in sums of at most some hundred terms
 * of order 10; the printed values have 15 digits.
 */
#define DOUBLE_ABSOLUTE 1e-12

#endif
