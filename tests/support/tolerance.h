/*
 * tolerance.h - every tolerance of the tests, with its argument.
 */
#ifndef TESTS_TOLERANCE_H
#define TESTS_TOLERANCE_H

/*
 * Gradient in double against central differences with step 1e-5. Rounding of a sum of order 10,
 * divided by the step, is 1e-10. The third derivative's share h^2 f'''/6 stays below 1e-8.
 */
#define DIFFERENCE_ABSOLUTE 1e-5
#define DIFFERENCE_RELATIVE 1e-3

/*
 * Float kernels against double kernels, as a fraction of a tensor's largest element. Each node
 * rounds to 2^-24 relative. The longest chains of the op table have some thirty nodes. Divisions by
 * roots of variances near 0.01 enlarge an error tenfold.
 */
#define FLOAT_OF_LARGEST 2e-5

/*
 * A float rounded from a number of any size has a relative error of 0.41 2^-24 (root mean square).
 * Each step of a chain of m random products rounds the sum of the earlier steps. For n products in
 * chains of m the error is therefore sqrt((m + n / m) / 2) times as large. The factor 0.5 adds a
 * fifth, because chains at edges have other lengths.
 */
#define CHAIN_ROUNDING (0.5 * 0x1p-24)

/*
 * The same graph with every tensor in bf16, on two devices. Both round the same values to 2^-9
 * relative, and differ by one such step where a result lies between two. Chains enlarge the error
 * up to tenfold.
 */
#define BF16_OF_LARGEST 3e-2
/* One value rounded to bf16: half a unit of 8 bits, plus the error of the float sum. */
#define BF16_ROUNDING (0x1p-8 + 2e-5)

/*
 * Double kernels against PyTorch in double. Both round to 2^-53 in sums of at most some hundred
 * terms of order 10; the printed values have 15 digits.
 */
#define DOUBLE_ABSOLUTE 1e-12

/*
 * Preprocessed images against MONAI's, as a fraction of the range of intensities. Both interpolate
 * in at least float (three linear steps, 2^-24 each). Percentiles and means are rounded once more.
 */
#define IMAGE_OF_RANGE 1e-4
/* Four changes of colours, each of at most eight operations in float (2^-24) on numbers up to 1. */
#define COLOR_OF_RANGE 2e-6
/* One value after a few operations in float; MONAI may apply them in another order. */
#define SCALED_VALUE 4e-7
/* Affines pass through the float32 of a file: 2^-24 of a few hundred millimetres. */
#define GEOMETRY_MM 1e-4
/* Share of voxels that may differ: neighbours at exactly half a voxel may round either way. */
#define LABEL_SHARE 1e-3

/*
 * Images resampled by splines against nnU-Net's, which computes in double: three axes are rounded
 * to float. Labels: of equal sums of eight products another order chooses another class.
 */
#define NNUNET_OF_RANGE 1e-5
#define NNUNET_LABEL_SHARE 5e-3

/*
 * Losses and networks in double against golden arrays, which are doubles rounded to float. The
 * error is half a unit of 2^-24 of each element, plus the rounding of logits that enter a gradient.
 */
#define GOLDEN_DOUBLE 1e-6

/*
 * Golden values are doubles rounded to float. Losses: float sums over a few hundred terms round to
 * some 1e-6. Optimizers: ten steps of a few operations each. Networks: a dozen layers of sums over
 * up to a thousand products. Gradients of biases before a norm are pure rounding, so they are
 * compared with the network's largest gradient.
 */
#define LOSS_RELATIVE 1e-5
#define LOSS_GRADIENT_OF_LARGEST 1e-5
#define OPTIMIZER_OF_LARGEST 1e-5
#define NETWORK_OF_LARGEST 1e-4
#define GRADIENT_OF_LARGEST 1e-4
#define GRADIENT_FLOOR 0.01
/*
 * The norm of a gradient in a network of published size. Among millions of activations some lie
 * within rounding of a kink, where float takes the other side. A layer's norm hardly moves.
 */
#define SAMPLED_NORM 5e-3
#define TRAJECTORY_RELATIVE 1e-5
#define TRAJECTORY_OF_LARGEST 1e-5
#define TRAJECTORY_ABSOLUTE 1e-6
/* bf16 keeps 8 bits: each rounding is 2^-9, averaged over a dozen layers. */
#define BF16_LOGITS_OF_LARGEST 3e-2
#define BF16_TRAJECTORY_RELATIVE 2e-2

/* Window weights are near 1 and rounded to float once; MONAI's are doubles rounded to float. */
#define IMPORTANCE_ABSOLUTE 1e-6
/* A blended value is a weighted mean of at most 64 floats near 1. */
#define STITCH_ABSOLUTE 1e-5
/*
 * A learning rate, as a fraction of the base rate: a few operations in double, nine printed digits.
 */
#define RATE_OF_BASE 1e-8
/* MONAI's Dice and IoU are float32 ratios: half a unit in the last place of 1. */
#define METRIC_ABSOLUTE 1e-6
/* MONAI's surface distances are float32: some units in the last place of ten millimetres. */
#define SURFACE_MM 4e-6
/* The sum of a voxel's probabilities: floats divided by their own sum, then interpolated. */
#define PROBABILITY_SUM 1e-5
/*
 * Resident memory of a training against the estimate of 'explain'. Library pages that only a run
 * touches, the allocator's tables and thread stacks are some 10 MB that no plan counts.
 */
#define PEAK_RELATIVE 0.15

/* Memory of a replica beside one set of buckets, relative to that of a single one. */
#define REPLICA_RELATIVE 1.05
/*
 * The same ratio for one of several processes: connections, the watchdog and their threads take 2
 * MB.
 */
#define RANK_RELATIVE 1.05

/*
 * Largest share of the sum of all tensors that an arena with reuse may take, for the spleen U-Net.
 * A plan that keeps only convolution results of the forward pass needs about a third; one without
 * reuse needs everything.
 */
#define ARENA_SHARE 0.6

#endif
