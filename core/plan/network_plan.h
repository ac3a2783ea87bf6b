/*
 * network_plan.h - plan target spacing, patch, levels of a U-Net and batch by the rules of nnU-Net
 * (Isensee et al. 2021, doi:10.1038/s41592-020-01008-z; residual variants: Isensee et al. 2024,
 * arXiv:2404.09556).
 *
 * The functions are pure: equal statistics give equal plans. Axes of a plan are an order of the
 * file's axes, the axis with the coarsest spacing first; plan_geometry.axis has the file's axis of
 * each.
 */
#ifndef CORE_PLAN_NETWORK_PLAN_H
#define CORE_PLAN_NETWORK_PLAN_H

#include "plan/dataset_statistics.h"

enum { PLAN_LEVELS_MAX = 16, PLAN_BATCH_MIN = 2 };

/* The size limit of a planned network, and the form of its blocks, which the limit counts. */
typedef struct plan_rule {
    const char *name;
    bool residual;             /* 1 3 4 6 6 6 residual blocks a level; else 2 convolutions        */
    double reference[2];       /* activations of a reference network in 2D and 3D                 */
    double share;              /* largest share of the dataset's voxels in a batch                */
} plan_rule;

extern const plan_rule plan_rules[]; /* ends with name NULL                                       */

/* The rule of a name; NULL: there is none. */
const plan_rule *plan_rule_find(const char *name);

typedef struct plan_geometry {
    int axis[3];               /* file axis of each axis                                          */
    double spacing[3];         /* target                                                          */
    double extent[3];          /* median over cases at the target spacing; may end in .5          */
} plan_geometry;

typedef struct network_plan {
    int first;                 /* 0, or 1: a 2D network, whose axis 0 has extent 1                */
    bool residual;
    int heads;                 /* outputs that are counted                                        */
    double spacing[3], extent[3];
    int64_t patch[3];
    int64_t divisor[3];        /* product of strides                                              */
    int levels;
    int stride[PLAN_LEVELS_MAX][3], kernel[PLAN_LEVELS_MAX][3];
    int64_t features[PLAN_LEVELS_MAX];
    int64_t batch;             /* patches                                                         */
    double activations;        /* outputs of all convolutions of one patch, in elements           */
} network_plan;

/*
 * The target spacing is the median of the cases. An axis that is more than three times as coarse
 * as the others, with less than a third of their voxels, gets its percentile 10.
 */
pons_status plan_geometry_make(const case_statistics *cases, int count, plan_geometry *out,
                               pons_error *err);
/* Whether the median case has several slices, so that a 3D network can be planned. */
bool plan_geometry_is_3d(const plan_geometry *g);

/* The largest patch: the median case, or an isotropic block of 256^3 voxels (2D: 2048^2). */
void network_plan_begin(const plan_rule *rule, const plan_geometry *g, bool flat, int heads,
                        network_plan *out);
/* The next smaller patch; false: it cannot become smaller. */
bool network_plan_shrink(network_plan *p);
/* Set the batch that the rule allows, for a dataset of 'cases'. */
void network_plan_set_batch(const plan_rule *rule, int64_t cases, network_plan *p);
/* nnU-Net's own plan: shrink until the activations fit the reference, then set the batch. */
void network_plan_make(const plan_rule *rule, const plan_geometry *g, bool flat, int heads,
                       int64_t cases, network_plan *out);
/*
 * The plan of nnU-Net's low resolution, for a 3D plan 'full' whose patch sees less than a quarter
 * of the median case; false: it plans none.
 */
bool network_plan_make_lowres(const plan_rule *rule, const network_plan *full, int64_t cases,
                              network_plan *out);

/* nnU-Net's schemes of normalisation; the name of a channel selects one. */
typedef enum plan_scheme {
    PLAN_ZSCORE = 0,           /* mean 0 and deviation 1 of each image                            */
    PLAN_CT,                   /* clipped and normalised by the foreground of the dataset         */
    PLAN_UNCHANGED,
    PLAN_RESCALE,              /* range of each image to 0 .. 1                                   */
    PLAN_RGB                   /* 0 .. 255 to 0 .. 1                                              */
} plan_scheme;

/* 'name' NULL: unknown. */
plan_scheme plan_scheme_find(const char *name);
/* Whether z-scores look at voxels other than 0 alone: cropping leaves less than 3/4 of a case. */
bool plan_masks_zscore(double cropped_share);

#endif
