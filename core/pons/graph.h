/*
 * graph.h - build a computation: nodes in, nodes out.
 *
 * A node stands for one tensor: a type, a shape of at most six axes, row-major. Images and feature
 * maps are [N, D, H, W, C], channels last; 2D is D = 1. Weights of convolutions are
 * [O, kD, kH, kW, I / groups]. Builders only record; nothing is computed before the graph has been
 * differentiated, planned and compiled.
 *
 * Errors: a builder that is given something impossible records the first failure in the graph and
 * returns a failed node, which every builder accepts and passes on. A plugin asks once, at the end:
 * return pons_graph_status(g, err). Nodes belong to their graph. One graph, one thread.
 *
 * Broadcasting: shapes are aligned at their last axis; an axis that is missing or 1 is repeated.
 * The gradient of a repeated operand is the sum over its repetitions.
 */
#ifndef CORE_PONS_GRAPH_H
#define CORE_PONS_GRAPH_H

#include <pons/plugin.h>

#define PONS_RANK_MAX 6

typedef struct pons_graph pons_graph;
typedef struct pons_node pons_node;

/* Builders work with f32 (u8 and i32 for labels and indices); 16-bit storage is a pass's choice. */
typedef enum pons_type {
    PONS_F32 = 1,
    PONS_BF16,
    PONS_F16,
    PONS_U8,
    PONS_I32,
    PONS_F64 /* reference kernels only */
} pons_type;

typedef struct pons_shape {
    int rank;
    int64_t extent[PONS_RANK_MAX];
} pons_shape;

typedef struct pons_tensor {
    pons_type type;
    pons_shape shape;
} pons_tensor;

/* Axes of [N, D, H, W, C] as a set; for other ranks PONS_AXIS(0) is the first axis. */
#define PONS_AXIS(i) (1u << (i))
#define PONS_BATCH PONS_AXIS(0)
#define PONS_SPATIAL (PONS_AXIS(1) | PONS_AXIS(2) | PONS_AXIS(3))
#define PONS_CHANNEL PONS_AXIS(4)

pons_status pons_graph_status(const pons_graph *g, pons_error *err);
pons_node *pons_graph_fail(pons_graph *g, pons_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));   /* records the failure and returns a failed node     */
bool pons_graph_training(const pons_graph *g);
int pons_graph_flat_axis(const pons_graph *g); /* 0 in a 2D network (D stays 1), else -1 (R26)    */
/* A name that lives as long as the graph: pons_name(g, "%s.conv", prefix). */
const char *pons_name(pons_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

pons_shape pons_shape_of(const pons_node *x);
pons_type pons_type_of(const pons_node *x);
pons_shape pons_shape_make(int rank, const int64_t *extent);

/* ---- leaves ---------------------------------------------------------------------------------- */

typedef enum pons_role {
    PONS_ROLE_WEIGHT = 1,
    PONS_ROLE_BIAS,
    PONS_ROLE_NORM_SCALE,
    PONS_ROLE_NORM_SHIFT,
    PONS_ROLE_SLOPE
} pons_role;

/* Initial value of a parameter, drawn from stream 'init:NAME' (R29). */
typedef struct pons_init {
    enum { PONS_INIT_CONSTANT = 1, PONS_INIT_UNIFORM, PONS_INIT_NORMAL } kind;
    double value; /* the constant; the bound b of U(-b, b); the standard deviation */
} pons_init;

/*
 * A trained tensor. Its name is the one that it has in a checkpoint, where a weight
 * [O, kD, kH, kW, I] is written as PyTorch's [O, I, kD, kH, kW]. A name that is known already
 * with the same shape gives the same tensor (shared weights); with another shape it is an error.
 */
pons_node *pons_parameter_leaf(pons_graph *g, const char *name, pons_role role, pons_shape shape,
                               pons_init init);
/* A tensor that training updates without a gradient (running statistics). */
pons_node *pons_state_leaf(pons_graph *g, const char *name, pons_shape shape, double initial);
/*
 * Contribute to a state: once a step it becomes
 * state + rate (mean of contributions - state) (R7).
 */
void pons_state_merge(pons_graph *g, pons_node *state, pons_node *value, double rate);

pons_node *pons_scalar(pons_graph *g, double value);                   /* rank 0                  */
pons_node *pons_iota(pons_graph *g, int rank, int axis, int64_t n);  /* 0 .. n-1 along one axis   */
/* Counter-based random numbers; 'stream' is a name, unique in the graph (R5). */
pons_node *pons_random_uniform(pons_graph *g, const char *stream, pons_shape shape); /* [0, 1)    */
pons_node *pons_random_normal(pons_graph *g, const char *stream, pons_shape shape);

/* ---- map: pointwise with broadcasting -------------------------------------------------------- */

/*
 * Comparisons and logic give 1 or 0; a truth value is anything but 0. The gradient of max and min
 * goes to the second operand when both are equal, of select to the chosen side. round is to nearest
 * even. Names: pons_add(g, a, b), pons_exp(g, a), pons_select(g, condition, a, b).
 */
#define PONS_MAP_OPERATIONS(X)                                                                    \
    X(ADD, add, 2) X(SUB, sub, 2) X(MUL, mul, 2) X(DIV, div, 2) X(MIN, min, 2) X(MAX, max, 2)     \
    X(POW, pow, 2)                                                                                \
    X(EQUAL, equal, 2) X(NOT_EQUAL, not_equal, 2) X(LESS, less, 2) X(LESS_EQUAL, less_equal, 2)   \
    X(GREATER, greater, 2) X(GREATER_EQUAL, greater_equal, 2)                                     \
    X(AND, and, 2) X(OR, or, 2) X(NOT, not, 1)                                                    \
    X(SELECT, select, 3)                                                                          \
    X(NEG, neg, 1) X(ABS, abs, 1) X(SIGN, sign, 1) X(FLOOR, floor, 1) X(ROUND, round, 1)          \
    X(SQRT, sqrt, 1) X(EXP, exp, 1) X(EXPM1, expm1, 1) X(LOG, log, 1) X(LOG1P, log1p, 1)          \
    X(SIN, sin, 1) X(COS, cos, 1) X(TANH, tanh, 1) X(ERF, erf, 1) X(ISFINITE, isfinite, 1)        \
    X(STOP_GRADIENT, stop_gradient, 1)

typedef enum pons_map_operation {
#define PONS_X(NAME, name, arity) PONS_MAP_##NAME,
    PONS_MAP_OPERATIONS(PONS_X)
#undef PONS_X
    PONS_MAP_OPERATION_COUNT
} pons_map_operation;

#define PONS_MAP_ARGUMENTS_1 pons_node *a
#define PONS_MAP_ARGUMENTS_2 pons_node *a, pons_node *b
#define PONS_MAP_ARGUMENTS_3 pons_node *a, pons_node *b, pons_node *c
#define PONS_X(NAME, name, arity) pons_node *pons_##name(pons_graph *g, PONS_MAP_ARGUMENTS_##arity);
PONS_MAP_OPERATIONS(PONS_X)
#undef PONS_X

pons_node *pons_cast(pons_graph *g, pons_node *x, pons_type type);

/* Compositions of the above. */
pons_node *pons_scale(pons_graph *g, pons_node *x, double factor);
pons_node *pons_add_scalar(pons_graph *g, pons_node *x, double addend);
pons_node *pons_square(pons_graph *g, pons_node *x);
pons_node *pons_reciprocal(pons_graph *g, pons_node *x);
pons_node *pons_lerp(pons_graph *g, pons_node *a, pons_node *b, double t); /* (1 - t) a + t b     */
pons_node *pons_sigmoid(pons_graph *g, pons_node *x);
pons_node *pons_log_sigmoid(pons_graph *g, pons_node *x);        /* min(x, 0) - log1p(exp(-|x|))  */
pons_node *pons_relu(pons_graph *g, pons_node *x);               /* select(x > 0, x, 0)           */
pons_node *pons_leaky_relu(pons_graph *g, pons_node *x, double slope);
/* select(x > 0, x, slope x) */
pons_node *pons_prelu(pons_graph *g, pons_node *x, pons_node *slope);

/* ---- reduce: reduced axes stay with extent 1 ------------------------------------------------- */

pons_node *pons_sum(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_mean(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_reduce_max(pons_graph *g, pons_node *x, unsigned axes); /* gradient to the first     */
pons_node *pons_reduce_min(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_sum_all(pons_graph *g, pons_node *x);                /* rank 0                    */
pons_node *pons_mean_all(pons_graph *g, pons_node *x);
pons_node *pons_arg_max(pons_graph *g, pons_node *x, int axis);      /* i32; the first of equals  */
/*
 * Mean and biased variance over 'axes'. groups > 0: the last axis is reduced within that many equal
 * groups besides, and each channel of a group gets the group's value, so that the result
 * broadcasts against x; groups = 0: the last axis only if it is among 'axes'.
 */
void pons_moments(pons_graph *g, pons_node *x, unsigned axes, int groups, pons_node **mean,
                  pons_node **variance);
pons_node *pons_softmax(pons_graph *g, pons_node *x, int axis);
pons_node *pons_log_softmax(pons_graph *g, pons_node *x, int axis);

/* ---- convolution, matrix product ------------------------------------------------------------- */

/* Output extent per axis: (n + pad_low + pad_high - dilation (k - 1) - 1) / stride + 1. */
typedef struct pons_convolution {
    int stride[3], dilation[3], pad_low[3], pad_high[3]; /* in the order D H W                    */
    int groups;
} pons_convolution;

#define PONS_CONVOLUTION_INIT { {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 1 }

/* x [N, D, H, W, I], w [O, kD, kH, kW, I / groups] -> [N, D', H', W', O]; no bias (add one). */
pons_node *pons_convolve(pons_graph *g, pons_node *x, pons_node *w, const pons_convolution *c);
/*
 * The gradient of pons_convolve by its input: y [N, D', H', W', O] -> [N, extent, I].
 * As a transposed convolution its weight is PyTorch's [in, out, k] read as [O, k, I]
 * with O = in, I = out.
 */
pons_node *pons_convolve_input_gradient(pons_graph *g, pons_node *y, pons_node *w,
                                        const pons_convolution *c, const int64_t extent[3]);
pons_node *pons_convolve_weight_gradient(pons_graph *g, pons_node *x, pons_node *y,
                                         const pons_convolution *c, const int64_t kernel[3]);
/* Extent (n - 1) s - pad_low - pad_high + d (k - 1) + 1 + output_padding. */
pons_node *pons_convolve_transposed(pons_graph *g, pons_node *y, pons_node *w,
                                    const pons_convolution *c, const int output_padding[3]);
/* [..., m, k] x [..., k, n]; leading axes equal. */
pons_node *pons_matmul(pons_graph *g, pons_node *a, pons_node *b, bool transpose_a,
                       bool transpose_b);

/* ---- pool, resize ---------------------------------------------------------------------------- */

typedef struct pons_pool {
    enum { PONS_POOL_MAX = 1, PONS_POOL_MEAN } mode; /* mean counts padding, as PyTorch's default */
    int kernel[3], stride[3], pad_low[3], pad_high[3];
    bool ceil;
} pons_pool;

pons_node *pons_pooling(pons_graph *g, pons_node *x, const pons_pool *p);

typedef enum pons_resize_mode {
    PONS_RESIZE_NEAREST = 1,   /* source = floor(i n / m)                                         */
    PONS_RESIZE_NEAREST_EXACT, /* source = floor((i + 0.5) n / m)                                 */
    PONS_RESIZE_LINEAR         /* source = (i + 0.5) n / m - 0.5, clamped; half-pixel             */
} pons_resize_mode;

pons_node *pons_resize(pons_graph *g, pons_node *x, pons_resize_mode mode, const int64_t extent[3]);

/* ---- data movement --------------------------------------------------------------------------- */

typedef enum pons_pad_mode { PONS_PAD_ZERO = 1, PONS_PAD_EDGE, PONS_PAD_REFLECT } pons_pad_mode;

pons_node *pons_reshape(pons_graph *g, pons_node *x, pons_shape shape);
/* Axis i is x's order[i]. */
pons_node *pons_transpose(pons_graph *g, pons_node *x, const int *order);
pons_node *pons_broadcast(pons_graph *g, pons_node *x, pons_shape shape);
pons_node *pons_flip(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_crop(pons_graph *g, pons_node *x, const int64_t *start, const int64_t *extent,
                     const int64_t *step); /* step NULL: 1                                        */
pons_node *pons_pad(pons_graph *g, pons_node *x, pons_pad_mode mode, const int64_t *low,
                    const int64_t *high);
pons_node *pons_concatenate(pons_graph *g, int count, pons_node *const *x, int axis);
/* The slices of x along 'axis' that 'index' (i32, rank 1) names; no gradient for the index. */
pons_node *pons_gather(pons_graph *g, pons_node *x, pons_node *index, int axis);

/* ---- ops of plugins -------------------------------------------------------------------------- */

/*
 * A node of the op plugin 'name' (op.h), which is found like every plugin. 'options' is text or
 * NULL: "radius = 2; edge = zero", as the plugin's table has them; what is left out has its
 * default. 'count' inputs, as many as the op has.
 */
pons_node *pons_op(pons_graph *g, const char *name, const char *options, int count,
                   pons_node *const *input);
/* The op that made 'like', with its options, on other inputs: for gradients of linear ops. */
pons_node *pons_op_again(pons_graph *g, const pons_node *like, pons_node *const *input);

/* ---- replicas -------------------------------------------------------------------------------- */

/*
 * The sum of x (f32) over the replicas that run at the same time, the same bits on each; x itself
 * with one replica. Its gradient is the sum of the gradients, so that what is joined (statistics,
 * the terms of a loss) has the derivative of the joined micro-batches (R10). The sum of a constant
 * costs nothing: pons_all_reduce(g, pons_scalar(g, 1)) is the number of replicas. Every replica
 * builds the same sums in the same order.
 */
pons_node *pons_all_reduce(pons_graph *g, pons_node *x);

/* ---- layers: compositions with parameters ---------------------------------------------------- */

/*
 * Normalisation over 'axes' of x by (x - mean) / sqrt(variance + eps), then scale and shift (either
 * may be NULL). In training batch normalisation uses the micro-batch's moments and contributes mean
 * and unbiased variance to the states at 'rate'; else it uses the states. With [distribute]
 * sync_batchnorm = yes the moments are those of the micro-batches of all replicas.
 */
pons_node *pons_instance_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                              double eps);
pons_node *pons_batch_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                           pons_node *running_mean, pons_node *running_variance, double rate,
                           double eps);
pons_node *pons_group_norm(pons_graph *g, pons_node *x, int groups, pons_node *scale,
                           pons_node *shift, double eps);
/*
 * Zeroes an element with probability p and scales the others by 1 / (1 - p);
 * x when not training.
 */
pons_node *pons_dropout(pons_graph *g, pons_node *x, double p, const char *stream);
/* The same for whole channels: one draw per [n, c]. */
pons_node *pons_dropout_channels(pons_graph *g, pons_node *x, double p, const char *stream);

/* ---- optimizers only ------------------------------------------------------------------------- */

/* Give a parameter or slot its value after the step; all assigns of a step take effect together. */
void pons_assign(pons_graph *g, pons_node *leaf, pons_node *value);

#endif
