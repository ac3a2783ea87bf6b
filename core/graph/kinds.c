/*
 * kinds.c - the table of node kinds: name, class, operands and gradient rule of each.
 */
#include "graph/build.h"

#define MAP(NAME, text, count, rule) [PONS_MAP_##NAME] = { text, CLASS_MAP, count, rule, false }
#define FLAT(NAME, text, count) [PONS_MAP_##NAME] = { text, CLASS_MAP, count, NULL, true }
#define LEAF(NAME, text, count) [NODE_##NAME] = { text, CLASS_LEAF, count, NULL, true }
#define KIND(NAME, text, class, count, rule) [NODE_##NAME] = { text, class, count, rule, false }

const node_kind_facts node_kinds[NODE_KIND_COUNT] = {
    MAP(ADD, "add", 2, gradient_add),
    MAP(SUB, "sub", 2, gradient_sub),
    MAP(MUL, "mul", 2, gradient_mul),
    MAP(DIV, "div", 2, gradient_div),
    MAP(MIN, "min", 2, gradient_min),
    MAP(MAX, "max", 2, gradient_max),
    MAP(POW, "pow", 2, gradient_pow),
    FLAT(EQUAL, "equal", 2),
    FLAT(NOT_EQUAL, "not_equal", 2),
    FLAT(LESS, "less", 2),
    FLAT(LESS_EQUAL, "less_equal", 2),
    FLAT(GREATER, "greater", 2),
    FLAT(GREATER_EQUAL, "greater_equal", 2),
    FLAT(AND, "and", 2),
    FLAT(OR, "or", 2),
    FLAT(NOT, "not", 1),
    MAP(SELECT, "select", 3, gradient_select),
    MAP(NEG, "neg", 1, gradient_neg),
    MAP(ABS, "abs", 1, gradient_abs),
    FLAT(SIGN, "sign", 1),
    FLAT(FLOOR, "floor", 1),
    FLAT(ROUND, "round", 1),
    MAP(SQRT, "sqrt", 1, gradient_sqrt),
    MAP(EXP, "exp", 1, gradient_exp),
    MAP(EXPM1, "expm1", 1, gradient_expm1),
    MAP(LOG, "log", 1, gradient_log),
    MAP(LOG1P, "log1p", 1, gradient_log1p),
    MAP(SIN, "sin", 1, gradient_sin),
    MAP(COS, "cos", 1, gradient_cos),
    MAP(TANH, "tanh", 1, gradient_tanh),
    MAP(ERF, "erf", 1, gradient_erf),
    FLAT(ISFINITE, "isfinite", 1),
    FLAT(STOP_GRADIENT, "stop_gradient", 1),
    KIND(CAST, "cast", CLASS_MAP, 1, gradient_cast),

    LEAF(INPUT, "input", 0),
    LEAF(PARAMETER, "parameter", 0),
    LEAF(STATE, "state", 0),
    LEAF(SLOT, "slot", 1),
    LEAF(GRADIENT, "gradient", 1),
    LEAF(MERGED, "merged", 1),
    LEAF(SCALAR, "scalar", 0),
    LEAF(CONSTANT, "constant", 0),
    LEAF(IOTA, "iota", 0),
    LEAF(UNIFORM, "uniform", 0),
    LEAF(NORMAL, "normal", 0),

    KIND(SUM, "sum", CLASS_REDUCE, 1, gradient_sum),
    KIND(MAXIMUM, "maximum", CLASS_REDUCE, 1, gradient_maximum),
    KIND(MINIMUM, "minimum", CLASS_REDUCE, 1, gradient_minimum),
    KIND(EXTREME_GRADIENT, "extreme_gradient", CLASS_OTHER, 2, NULL),
    [NODE_ARG_MAX] = { "arg_max", CLASS_OTHER, 1, NULL, true },
    KIND(MOMENTS, "moments", CLASS_REDUCE, 1, NULL), /* the gradient pass takes mean and */
    KIND(SECOND, "second", CLASS_REDUCE, 1, NULL),   /* variance together                */

    KIND(CONVOLUTION, "convolution", CLASS_CONVOLUTION, 2, gradient_convolution),
    KIND(CONVOLUTION_INPUT_GRADIENT, "convolution_input_gradient", CLASS_CONVOLUTION, 2,
         gradient_convolution_input_gradient),
    KIND(CONVOLUTION_WEIGHT_GRADIENT, "convolution_weight_gradient", CLASS_CONVOLUTION, 2,
         gradient_convolution_weight_gradient),
    KIND(MATMUL, "matmul", CLASS_CONVOLUTION, 2, gradient_matmul),
    KIND(POOL, "pool", CLASS_OTHER, 1, gradient_pool),
    KIND(POOL_GRADIENT, "pool_gradient", CLASS_OTHER, 2, NULL),
    KIND(RESIZE, "resize", CLASS_OTHER, 1, gradient_resize),
    KIND(RESIZE_GRADIENT, "resize_gradient", CLASS_OTHER, 1, NULL),
    KIND(RESHAPE, "reshape", CLASS_MOVE, 1, gradient_reshape),
    KIND(TRANSPOSE, "transpose", CLASS_MOVE, 1, gradient_transpose),
    KIND(BROADCAST, "broadcast", CLASS_MOVE, 1, gradient_broadcast),
    KIND(FLIP, "flip", CLASS_MOVE, 1, gradient_flip),
    KIND(CROP, "crop", CLASS_MOVE, 1, gradient_crop),
    KIND(PAD, "pad", CLASS_MOVE, 1, gradient_pad),
    KIND(PAD_GRADIENT, "pad_gradient", CLASS_MOVE, 1, NULL),
    KIND(CONCATENATE, "concatenate", CLASS_MOVE, -1, gradient_concatenate),
    KIND(GATHER, "gather", CLASS_MOVE, 2, NULL),
    KIND(ALL_REDUCE, "all_reduce", CLASS_OTHER, 1, gradient_all_reduce),
    KIND(OP, "op", CLASS_OTHER, -1, gradient_op),
    [NODE_FAILED] = { "failed", CLASS_LEAF, 0, NULL, true },
};
