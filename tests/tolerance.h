/*
 * tolerance.h - every tolerance of the tests, with its argument.
 */
#ifndef TESTS_TOLERANCE_H
#define TESTS_TOLERANCE_H

/*
 * Gradient in double against central differences with step 1e-5: rounding of a sum of order 10
 * divided by the step is 1e-10, the third derivative's share h^2 f'''/6 stays below 1e-8.
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
 * A number of any size, rounded to float, is away by 0.41 2^-24 of it (root mean square). A chain
 * of m random products rounds at each step what came before; n products in chains of m are then
 * away by sqrt((m + n / m) / 2) times as much. A fifth more, since chains at edges are of other
 * lengths.
 */
#define CHAIN_ROUNDING (0.5 * 0x1p-24)

/*
 * The same graph with every tensor kept in bf16, on two devices: both round the same numbers to
 * 2^-9 relative and differ by one such step where a result lies between two, in chains that enlarge
 * an error up to tenfold.
 */
#define BF16_OF_LARGEST 3e-2
/* One number rounded to bf16 once: half a unit of 8 bits, and the float sum before it. */
#define BF16_ROUNDING (0x1p-8 + 2e-5)

/*
 * Double kernels against PyTorch in double: both round to 2^-53 in sums of at most some hundred
 * terms of order 10; the printed values have 15 digits.
 */
#define DOUBLE_ABSOLUTE 1e-12

/*
 * Preprocessed images against MONAI's, of the range of intensities: both interpolate in at least
 * float (three linear steps, 2^-24 each), percentiles and means are rounded once more.
 */
#define IMAGE_OF_RANGE 1e-4
/* One value scaled by a few operations in float, where MONAI's order of them may differ. */
#define SCALED_VALUE 4e-7
/* Affines pass through the float32 of a file: 2^-24 of a few hundred millimetres. */
#define GEOMETRY_MM 1e-4
/* Nearest neighbours at exactly half a voxel may round either way. */
#define LABEL_SHARE 1e-3

/*
 * Losses and networks in double against golden arrays, which are doubles rounded to float:
 * half a unit of 2^-24 of each element, and logits that were rounded once more on their
 * way into a gradient.
 */
#define GOLDEN_DOUBLE 1e-6

/*
 * Golden values are doubles rounded to float. Losses: float sums over a few hundred terms round to
 * some 1e-6. Optimizers: ten steps of a few operations each. Networks: a dozen layers of sums over
 * up to a thousand products. Gradients of biases before a norm are pure rounding, so they are
 * compared with the network's largest.
 */
#define LOSS_RELATIVE 1e-5
#define LOSS_GRADIENT_OF_LARGEST 1e-5
#define OPTIMIZER_OF_LARGEST 1e-5
#define NETWORK_OF_LARGEST 1e-4
#define GRADIENT_OF_LARGEST 1e-4
#define GRADIENT_FLOOR 0.01
#define TRAJECTORY_RELATIVE 1e-5
#define TRAJECTORY_OF_LARGEST 1e-5
#define TRAJECTORY_ABSOLUTE 1e-6
/* bf16 keeps 8 bits: 2^-9 each rounding, averaged over a dozen layers. */
#define BF16_LOGITS_OF_LARGEST 3e-2
#define BF16_TRAJECTORY_RELATIVE 2e-2

/* Weights of windows are near 1 and rounded to float once; MONAI's are doubles rounded to float. */
#define IMPORTANCE_ABSOLUTE 1e-6
/* A stitched value is a weighted mean of at most 64 floats near 1. */
#define STITCH_ABSOLUTE 1e-5
/* A learning rate, of the base rate: doubles of a few operations, printed with nine digits. */
#define RATE_OF_BASE 1e-8
/* MONAI's Dice and IoU are float32 ratios: half a unit in the last place of 1. */
#define METRIC_ABSOLUTE 1e-6
/* Probabilities of a voxel are floats that were divided by their own sum, then interpolated. */
#define PROBABILITY_SUM 1e-5
/*
 * Resident memory of a training against what explain foretells: pages of libraries that only a run
 * touches, the allocator's own tables and thread stacks are some 10 MB that no plan knows.
 */
#define PEAK_RELATIVE 0.15

/* What a replica of a process may take of what a single one does, beside one set of buckets. */
#define REPLICA_RELATIVE 1.05
/* The same for a process among several: connections, the watch and their threads are 2 MB. */
#define RANK_RELATIVE 1.05

/* Share of the sum of all tensors that one arena with reuse may take, spleen U-Net: what keeps only
 * convolution results of the forward pass needs about a third, a plan without reuse all of it. */
#define ARENA_SHARE 0.6

#endif
