/*
 * nn.h - layers of networks: builders of graph.h with trained tensors of their own.
 *
 * A layer creates NAME.weight and NAME.bias with PyTorch's initial values, so that a checkpoint
 * holds them under the names that a module of PyTorch would have. Feature maps are
 * [N, D, H, W, C]. Every layer accepts a failed node and passes it on. A block:
 *
 *     pons_conv c3 = { .out = 16, .kernel = PONS_CUBE(3), .padding = PONS_CUBE(1), .bias = true };
 *     pons_node *x = pons_layer_conv(g, "first.conv", &c3, image);
 *
 *     x = pons_layer_norm(g, "first.norm", &(pons_norm){ PONS_NORM_INSTANCE, .affine = true }, x);
 *     x = pons_layer_act(g, "first.act", PONS_ACT_LEAKYRELU, x);
 */
#ifndef CORE_PONS_NN_H
#define CORE_PONS_NN_H

#include <pons/model.h>

PONS_C_BEGIN

/* Extent of the last axis: the channels of a feature map. */
int64_t pons_channels_of(const pons_node *x);
/* The parameter NAME.END: a vector of 'count' equal values. */
pons_node *pons_vector_parameter(pons_graph *g, const char *name, const char *end, pons_role role,
                                 int64_t count, double value);

/* ---- convolution ----------------------------------------------------------------------------- */

/* The same for D, H and W, in an initializer. */
#define PONS_CUBE(N) { N, N, N }

typedef enum pons_conv_init {
    PONS_CONV_UNIFORM = 0, /* PyTorch's default: U(-b, b), b = 1 / sqrt(fan_in), also the bias    */
    PONS_CONV_HE,          /* N(0, 2 / ((1 + 0.01^2) fan_in)) (He et al. 2015), the bias 0        */
    PONS_CONV_HE_RELU,     /* N(0, 2 / fan_in), the bias 0                                        */
    PONS_CONV_HE_FAN_OUT   /* N(0, 2 / fan_out), the bias PyTorch's default                       */
} pons_conv_init;

/*
 * Axes are in the order D H W. A kernel, stride, dilation or group count of 0 stands for 1. fan_in
 * is axis 1 of the weight in PyTorch's order times the voxels of the kernel, fan_out axis 0.
 */
typedef struct pons_conv {
    int64_t out;            /* channels of the output                                             */
    int kernel[3], stride[3], dilation[3];
    int padding[3];         /* on both sides                                                      */
    int output_padding[3];  /* transposed only                                                    */
    int groups;
    bool bias, transposed;
    pons_conv_init init;
} pons_conv;

/*
 * A convolution that is the same along all axes; in a 2D network ('flat' of the task) its kernel,
 * stride and dilation are 1 along D. It is padded so that the stride alone changes the extent, also
 * when it is transposed. It has no bias.
 */
pons_conv pons_conv_cube(int64_t out, int kernel, int stride, int dilation, bool flat);

/*
 * A convolution with NAME.weight and, with 'bias', NAME.bias. Output extent per axis, where n is
 * that of x: (n + 2 padding - dilation (kernel - 1) - 1) / stride + 1; transposed:
 * (n - 1) stride - 2 padding + dilation (kernel - 1) + 1 + output_padding.
 */
pons_node *pons_layer_conv(pons_graph *g, const char *name, const pons_conv *c, pons_node *x);

/* ---- linear ---------------------------------------------------------------------------------- */

/*
 * A fully connected layer, x [..., I] to [..., out], with NAME.weight [out, I] and NAME.bias. Its
 * initial values are PyTorch's, U(-b, b) with b = 1 / sqrt(I). A projection has no bias.
 */
pons_node *pons_layer_linear(pons_graph *g, const char *name, int64_t out, pons_node *x);
pons_node *pons_layer_projection(pons_graph *g, const char *name, int64_t out, pons_node *x);

/* ---- normalisation --------------------------------------------------------------------------- */

typedef enum pons_norm_kind {
    PONS_NORM_INSTANCE, PONS_NORM_BATCH, PONS_NORM_GROUP,
    PONS_NORM_LAYER /* over the channels of each position; no word of pons_norm_names             */
} pons_norm_kind;

/* The words of a PONS_CHOICE, in that order: "instance", "batch", "group". */
extern const char *const pons_norm_names[];

typedef struct pons_norm {
    pons_norm_kind kind;
    bool affine;            /* scale by NAME.weight, 1 at first, shift by NAME.bias, 0 at first   */
    int groups;             /* of channels, for PONS_NORM_GROUP                                   */
    double eps;             /* added to the variance; 0 stands for 1e-5                           */
} pons_norm;

/*
 * (x - mean) / sqrt(variance + eps), then scale and shift. Batch norm has the states
 * NAME.running_mean and NAME.running_var, which it updates at rate 0.1.
 */
pons_node *pons_layer_norm(pons_graph *g, const char *name, const pons_norm *n, pons_node *x);

/* ---- activation ------------------------------------------------------------------------------ */

typedef enum pons_act {
    PONS_ACT_PRELU, PONS_ACT_RELU, PONS_ACT_LEAKYRELU, PONS_ACT_ELU
} pons_act;

/* The words of a PONS_CHOICE, in that order: "prelu", "relu", "leakyrelu", "elu". */
extern const char *const pons_act_names[];

/* prelu has one slope, NAME.weight, 0.25 at first; that of leakyrelu is 0.01. */
pons_node *pons_layer_act(pons_graph *g, const char *name, pons_act act, pons_node *x);

PONS_C_END

#endif
