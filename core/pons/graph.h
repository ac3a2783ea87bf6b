/*
 * graph.h - build a computation: nodes in, nodes out.
 *
 * A node stands for one tensor: a type, a shape of at most six axes, row-major. Images and feature
 * maps are [N, D, H, W, C], channels last; 2D is D = 1. Weights of convolutions are
 * [O, kD, kH, kW, I / groups]. Builders only record nodes. Computation follows once the graph has
 * been differentiated, planned and compiled.
 *
 * Errors: a builder with invalid arguments records the first failure in the graph and returns a
 * failed node. Every builder accepts a failed node and returns one. So a plugin asks for the status
 * once, at its end: return pons_graph_status(g, err). Nodes belong to their graph. One thread
 * builds a graph.
 *
 * Broadcasting: shapes are aligned at their last axis. An axis that is missing or 1 is repeated.
 * The gradient of a repeated operand is the sum over its repetitions.
 */
#ifndef CORE_PONS_GRAPH_H
#define CORE_PONS_GRAPH_H

#include <pons/plugin.h>

PONS_C_BEGIN

#define PONS_RANK_MAX 6

typedef struct pons_graph pons_graph;
typedef struct pons_node pons_node;

/* Builders use f32, and u8 and i32 for labels and indices. A pass decides on 16-bit storage. */
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

/* A set of the axes of [N, D, H, W, C]. For other ranks PONS_AXIS(0) is the first axis. */
#define PONS_AXIS(i) (1u << (i))
#define PONS_BATCH PONS_AXIS(0)
#define PONS_SPATIAL (PONS_AXIS(1) | PONS_AXIS(2) | PONS_AXIS(3))
#define PONS_CHANNEL PONS_AXIS(4)

pons_status pons_graph_status(const pons_graph *g, pons_error *err);
pons_node *pons_graph_fail(pons_graph *g, pons_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));   /* record a failure and return a failed node         */
bool pons_graph_training(const pons_graph *g);
/* A formatted name that lives as long as the graph: pons_name(g, "%s.conv", prefix). */
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

/* The initial value of a parameter. Random values come from stream 'init:NAME' (R29). */
typedef struct pons_init {
    enum { PONS_INIT_CONSTANT = 1, PONS_INIT_UNIFORM, PONS_INIT_NORMAL } kind;
    double value; /* the constant, the bound b of U(-b, b), or the standard deviation */
} pons_init;

/*
 * A trained tensor. A checkpoint has it under the same name, and stores a weight [O, kD, kH, kW, I]
 * as PyTorch's [O, I, kD, kH, kW]. A second leaf of one name and shape is the same tensor (shared
 * weights). A second leaf of another shape is an error.
 */
pons_node *pons_parameter_leaf(pons_graph *g, const char *name, pons_role role, pons_shape shape,
                               pons_init init);
/* A tensor that training updates without a gradient (running statistics). */
pons_node *pons_state_leaf(pons_graph *g, const char *name, pons_shape shape, double initial);
/*
 * Contribute a value to a state. Once a step the state becomes
 * state + rate (mean of contributions - state) (R7).
 */
void pons_state_merge(pons_graph *g, pons_node *state, pons_node *value, double rate);

pons_node *pons_scalar(pons_graph *g, double value);                   /* rank 0                  */
pons_node *pons_iota(pons_graph *g, int rank, int axis, int64_t n);  /* 0 .. n-1 along one axis   */
/* Counter-based random numbers. 'stream' is a name, unique in the graph (R5). */
pons_node *pons_random_uniform(pons_graph *g, const char *stream, pons_shape shape); /* [0, 1)    */
pons_node *pons_random_normal(pons_graph *g, const char *stream, pons_shape shape);

/* ---- map: pointwise with broadcasting -------------------------------------------------------- */

/*
 * Comparisons and logic give 1 or 0. Every value except 0 is true. The gradient of max and min goes
 * to the second operand if both are equal. The gradient of select goes to the selected operand.
 * round is to nearest even. Names: pons_add(g, a, b), pons_select(g, condition, a, b).
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

/* Compositions of map operations. */
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
pons_node *pons_elu(pons_graph *g, pons_node *x);                /* select(x > 0, x, exp(x) - 1)  */
pons_node *pons_gelu(pons_graph *g, pons_node *x);               /* x (1 + erf(x / sqrt(2))) / 2  */

/* ---- reduce: reduced axes stay with extent 1 ------------------------------------------------- */

pons_node *pons_sum(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_mean(pons_graph *g, pons_node *x, unsigned axes);
/* The gradient goes to the first of several equal values. */
pons_node *pons_reduce_max(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_reduce_min(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_sum_all(pons_graph *g, pons_node *x);                /* rank 0                    */
pons_node *pons_mean_all(pons_graph *g, pons_node *x);
pons_node *pons_arg_max(pons_graph *g, pons_node *x, int axis);      /* i32; the first of equals  */
/*
 * Mean and biased variance over 'axes'. With groups > 0 the last axis is also reduced within that
 * many equal groups. Each channel of a group gets the group's value, so the result broadcasts
 * against x. With groups = 0 the last axis is reduced only if it is among 'axes'.
 */
void pons_moments(pons_graph *g, pons_node *x, unsigned axes, int groups, pons_node **mean,
                  pons_node **variance);
pons_node *pons_softmax(pons_graph *g, pons_node *x, int axis);
pons_node *pons_log_softmax(pons_graph *g, pons_node *x, int axis);

/* ---- convolution, matrix product ------------------------------------------------------------- */

/* Output extent per axis: (n + pad_low + pad_high - dilation (k - 1) - 1) / stride + 1. */
typedef struct pons_convolution {
    int stride[3], dilation[3], pad_low[3], pad_high[3]; /* order: D, H, W                        */
    int groups;
} pons_convolution;

#define PONS_CONVOLUTION_INIT { {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 1 }

/* x [N, D, H, W, I], w [O, kD, kH, kW, I / groups] -> [N, D', H', W', O], without a bias. */
pons_node *pons_convolve(pons_graph *g, pons_node *x, pons_node *w, const pons_convolution *c);
/*
 * The input gradient of pons_convolve: y [N, D', H', W', O] -> [N, extent, I]. It is also a
 * transposed convolution, whose weight is PyTorch's [in, out, k] as [O, k, I] with O = in, I = out.
 */
pons_node *pons_convolve_input_gradient(pons_graph *g, pons_node *y, pons_node *w,
                                        const pons_convolution *c, const int64_t extent[3]);
pons_node *pons_convolve_weight_gradient(pons_graph *g, pons_node *x, pons_node *y,
                                         const pons_convolution *c, const int64_t kernel[3]);
/* Output extent: (n - 1) s - pad_low - pad_high + d (k - 1) + 1 + output_padding. */
pons_node *pons_convolve_transposed(pons_graph *g, pons_node *y, pons_node *w,
                                    const pons_convolution *c, const int output_padding[3]);
/* [..., m, k] x [..., k, n] -> [..., m, n]. Leading axes are equal. */
pons_node *pons_matmul(pons_graph *g, pons_node *a, pons_node *b, bool transpose_a,
                       bool transpose_b);

/* ---- pool, resize ---------------------------------------------------------------------------- */

typedef struct pons_pool {
    enum { PONS_POOL_MAX = 1, PONS_POOL_MEAN } mode; /* a mean counts padding, as in PyTorch      */
    int kernel[3], stride[3], pad_low[3], pad_high[3];
    bool ceil;
} pons_pool;

pons_node *pons_pooling(pons_graph *g, pons_node *x, const pons_pool *p);

typedef enum pons_resize_mode {
    PONS_RESIZE_NEAREST = 1,   /* source = floor(i n / m)                                         */
    PONS_RESIZE_NEAREST_EXACT, /* source = floor((i + 0.5) n / m)                                 */
    PONS_RESIZE_LINEAR,        /* source = (i + 0.5) n / m - 0.5, clamped; half-pixel             */
    PONS_RESIZE_LINEAR_ALIGNED /* source = i (n - 1) / (m - 1), 0 if m = 1: align_corners         */
} pons_resize_mode;

pons_node *pons_resize(pons_graph *g, pons_node *x, pons_resize_mode mode, const int64_t extent[3]);

/* ---- data movement --------------------------------------------------------------------------- */

typedef enum pons_pad_mode { PONS_PAD_ZERO = 1, PONS_PAD_EDGE, PONS_PAD_REFLECT } pons_pad_mode;

pons_node *pons_reshape(pons_graph *g, pons_node *x, pons_shape shape);
/* Axis i of the result is axis order[i] of x. */
pons_node *pons_transpose(pons_graph *g, pons_node *x, const int *order);
pons_node *pons_broadcast(pons_graph *g, pons_node *x, pons_shape shape);
pons_node *pons_flip(pons_graph *g, pons_node *x, unsigned axes);
pons_node *pons_crop(pons_graph *g, pons_node *x, const int64_t *start, const int64_t *extent,
                     const int64_t *step); /* step NULL: 1                                        */
pons_node *pons_pad(pons_graph *g, pons_node *x, pons_pad_mode mode, const int64_t *low,
                    const int64_t *high);
pons_node *pons_concatenate(pons_graph *g, int count, pons_node *const *x, int axis);
/* The slices 'index' (i32, rank 1) of x along 'axis'. The index has no gradient. */
pons_node *pons_gather(pons_graph *g, pons_node *x, pons_node *index, int axis);

/* ---- ops of plugins -------------------------------------------------------------------------- */

/*
 * A node of the op plugin 'name' (op.h). 'options' is a text like "radius = 2; edge = zero", or
 * NULL. Its keys are those of the plugin's table, and missing keys have their default. 'count' is
 * the number of inputs of the op.
 */
pons_node *pons_op(pons_graph *g, const char *name, const char *options, int count,
                   pons_node *const *input);
/* The op of node 'like', with its options, on other inputs. It serves gradients of linear ops. */
pons_node *pons_op_again(pons_graph *g, const pons_node *like, pons_node *const *input);

/* ---- replicas -------------------------------------------------------------------------------- */

/*
 * The sum of x (f32) over all replicas, with the same bits on each. With one replica it is x. Its
 * gradient is the sum of the gradients, so joined statistics and losses have the derivative of the
 * joined micro-batches (R10). The sum of a constant costs nothing: pons_all_reduce(g,
 * pons_scalar(g, 1)) is the number of replicas. Every replica builds the same sums in the same
 * order.
 */
pons_node *pons_all_reduce(pons_graph *g, pons_node *x);

/* ---- layers: compositions with parameters ---------------------------------------------------- */

/*
 * Normalisation of x by (x - mean) / sqrt(variance + eps), then scale and shift (either may be
 * NULL). In training, batch normalisation uses the micro-batch's moments. It contributes mean and
 * unbiased variance to the states at 'rate'. In evaluation it uses the states. With [distribute]
 * sync_batchnorm = yes the moments are those of the micro-batches of all replicas.
 */
pons_node *pons_instance_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                              double eps);
pons_node *pons_batch_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                           pons_node *running_mean, pons_node *running_variance, double rate,
                           double eps);
pons_node *pons_group_norm(pons_graph *g, pons_node *x, int groups, pons_node *scale,
                           pons_node *shift, double eps);
/* Layer normalisation (Ba et al. 2016): the moments of each position are those of its channels. */
pons_node *pons_channel_norm(pons_graph *g, pons_node *x, pons_node *scale, pons_node *shift,
                             double eps);
/*
 * Zero each element with probability p and scale the others by 1 / (1 - p). In evaluation the
 * result is x.
 */
pons_node *pons_dropout(pons_graph *g, pons_node *x, double p, const char *stream);
/* Dropout of whole channels, with one draw per [n, c]. */
pons_node *pons_dropout_channels(pons_graph *g, pons_node *x, double p, const char *stream);

/* ---- optimizers only ------------------------------------------------------------------------- */

/* Assign a parameter or slot its value after the step. All assignments act together (R8). */
void pons_assign(pons_graph *g, pons_node *leaf, pons_node *value);

PONS_C_END

#endif
