/*
 * nnunet_blocks.h - options, convolution blocks and decoder of nnU-Net's networks plain_unet and
 * residual_unet.
 *
 * The struct is the first member of each plugin's configuration, so both share its option rows.
 */
#ifndef PLUGINS_MODELS_NNUNET_BLOCKS_H
#define PLUGINS_MODELS_NNUNET_BLOCKS_H

#include <pons/nn.h>

typedef struct nnunet {
    pons_integers features_per_stage, n_conv_per_stage_decoder;
    pons_triples kernel_sizes, strides;
    int norm, act;
    double negative_slope, eps, dropout;
    bool conv_bias, deep_supervision;
} nnunet;

enum { NNUNET_STAGES_MAX = 16 };

#define NNUNET_OPTIONS(DECODER)                                                                   \
    PONS_INTEGERS(nnunet, features_per_stage, NULL, 1, 65536, "Features of each stage, the top "  \
                  "one first.", .count_min = 2, .count_max = NNUNET_STAGES_MAX),                  \
    PONS_TRIPLES(nnunet, kernel_sizes, NULL, 1, 31, "Extent of the convolutions of each stage, "  \
                 "odd; one item stands for all."),                                                \
    PONS_TRIPLES(nnunet, strides, NULL, 1, 64, "Stride into each stage, the first 1."),           \
    PONS_INTEGERS(nnunet, n_conv_per_stage_decoder, DECODER, 1, 64, "Convolutions of each stage " \
                  "on the way up, the deepest first; one number stands for all."),                \
    PONS_FLAG(nnunet, conv_bias, "yes", "Whether convolutions add a bias."),                      \
    PONS_CHOICE(nnunet, norm, "instance", nnunet_norm_names, "Normalisation."),                   \
    PONS_REAL(nnunet, eps, "1e-5", 1e-12, 1, "Added to the variance that normalises."),           \
    PONS_CHOICE(nnunet, act, "leakyrelu", pons_act_names, "Activation."),                         \
    PONS_REAL(nnunet, negative_slope, "0.01", 0, 1, "Slope of act = leakyrelu below 0."),         \
    PONS_REAL(nnunet, dropout, "0", 0, 1, "Probability that a channel is zeroed."),               \
    PONS_FLAG(nnunet, deep_supervision, "yes", "Whether all stages on the way up are trained; "   \
              "[loss] heads has their weights.")

/* The names of PONS_NORM_INSTANCE and PONS_NORM_BATCH. */
extern const char *const nnunet_norm_names[];

/* The count of a stage in a list in which one number may stand for all. */
int nnunet_count(const pons_integers *counts, int stage);

/* Refuse lists of other lengths, even kernels, and a first stride other than 1 (PONS_CONFIG). */
pons_status nnunet_check(const nnunet *c, pons_error *err);
/* Refuse a list 'key' that has neither one number nor 'expected' (PONS_CONFIG). */
pons_status nnunet_check_counts(const char *key, int found, int expected, pons_error *err);

/* norm(dropout(conv(x))): parameters NAME.conv and NAME.norm. */
pons_node *nnunet_convolve(pons_graph *g, const nnunet *c, const char *name, const pons_conv *conv,
                           double dropout, pons_node *x);
pons_node *nnunet_act(pons_graph *g, const nnunet *c, const char *name, pons_node *x);
/* The convolution of a stage: its features and kernel, of which half is padding. */
pons_conv nnunet_conv(const nnunet *c, int stage, const int stride[3]);
/* 'count' blocks act(norm(conv(x))) named NAME.convs.0 and so on, the first with the stride. */
pons_node *nnunet_stack(pons_graph *g, const nnunet *c, const char *name, int stage, int count,
                        const int stride[3], pons_node *x);

/*
 * The way up from the features of all stages, and the outputs: logits at the full extent, then at
 * half of it, and so on, at most PONS_OUTPUTS_MAX of them. Evaluation has the same parameters and
 * one output.
 */
void nnunet_decode(pons_graph *g, const nnunet *c, int classes, pons_node *const *features,
                   pons_outputs *outputs);

#endif
