/*
 * sections.h - the core's own sections of the INI file, as structs.
 *
 * A member has the name of its key. An absent text is NULL, an absent list is empty, an absent size
 * is 0. Paths are absolute. Plugins fill their own structs from the keys that they add to [model],
 * [loss], [optimizer], [schedule] and the sections of steps.
 */
#ifndef CORE_CONFIG_SECTIONS_H
#define CORE_CONFIG_SECTIONS_H

#include "base/log.h"
#include "config/config.h"

typedef enum task_kind { TASK_SEGMENTATION = 0, TASK_SYNTHESIS, TASK_CLASSIFICATION,
                         TASK_COUNT } task_kind;

extern const char *const task_words[];

typedef struct experiment_options {
    const char *name, *output;
    int task;                 /* task_kind                                                        */
    int64_t seed;
    bool deterministic;
} experiment_options;

typedef enum cache_mode {
    CACHE_NONE = 0, CACHE_MEMORY, CACHE_DISK, CACHE_LMDB, CACHE_SMART, CACHE_DEVICE
} cache_mode;

/* Whether the cases lie in files of cache_dir, which runs share. */
static inline bool cache_mode_in_folder(int mode)
{
    return mode == CACHE_DISK || mode == CACHE_LMDB;
}

enum { CACHE_TIERS_MAX = 2 };

/* A kind of cache and its largest size, 0: not limited. */
typedef struct cache_tier_option {
    int mode;                 /* cache_mode                                                       */
    int64_t limit;
} cache_tier_option;

enum { OPTION_AUTO = -1 }; /* 'auto' of an INTEGER option */
enum { FOLD_FIRST = -1 };

typedef struct data_options {
    const char *source, *label, *label_suffix, *validation, *cache_dir;
    int layout;               /* index into data_layouts; 0: auto                                 */
    pons_texts image, image_suffix, channels, labels, regions, map;
    int64_t fold;             /* or FOLD_FIRST                                                    */
    int cache;                /* cache_mode                                                       */
    int cache_share;          /* 0 node, 1 rank                                                   */
    pons_texts cache_limit;
    int cache_tier_count;     /* from cache and cache_limit; 0: none                              */
    cache_tier_option cache_tier[CACHE_TIERS_MAX];
    double smart_share, smart_replace;
    int64_t loader_threads;   /* or OPTION_AUTO                                                   */
    const char *slides, *slide_validation;
    int64_t slide_level, slide_patch, slide_grid, slide_region;
    int slide_position;       /* 0 centre, 1 corner                                               */
} data_options;

extern const char *const data_layouts[];

typedef enum sampling_mode {
    SAMPLING_UNIFORM = 0, SAMPLING_BALANCED, SAMPLING_CLASSES, SAMPLING_WHOLE,
    SAMPLING_FOREGROUND       /* uniform, with a foreground_share                                 */
} sampling_mode;

typedef struct patch_options {
    int extent[3];            /* zeros: not given                                                 */
    int64_t per_case;
    int sampling;             /* sampling_mode                                                    */
    double positive, negative;
    double foreground_share;
    int far_end;              /* 0 inside, 1 beyond                                               */
    pons_reals class_weights;
    pons_reals background_above; /* at most one number                                            */
    int pad;                  /* 0 zero, 1 edge                                                   */
    bool count_padding;
} patch_options;

typedef struct model_options {
    const char *plugin;
} model_options;

typedef enum loss_activation {
    ACTIVATION_AUTO = 0, ACTIVATION_SOFTMAX, ACTIVATION_SIGMOID, ACTIVATION_NONE
} loss_activation;

typedef struct loss_options {
    const char *plugin;
    int activation;           /* loss_activation                                                  */
    pons_reals heads;
    int class_weights;        /* 0 none, 1 auto                                                   */
    bool sync;
} loss_options;

typedef struct optimizer_options {
    const char *plugin;
    double lr;
} optimizer_options;

typedef struct schedule_options {
    const char *plugin;
    int64_t warmup_steps;
    double warmup_multiplier;
    int unit;                 /* 0 step, 1 epoch                                                  */
} schedule_options;

typedef struct train_options {
    int64_t epochs, steps;    /* 0: not given                                                     */
    int64_t batch, accumulate, micro_batches;
    int precision;            /* enum precision (program.h): auto fp32 tf32 ...                   */
    double clip_norm, ema_decay, grace_s;
    double mixup, cutmix;     /* alpha of Beta(alpha, alpha); 0: none                             */
    int loss_scaling;         /* enum loss_scaling in sections.c                                  */
    double loss_scale, loss_scale_growth, loss_scale_backoff;
    int64_t loss_scale_interval;
    bool recompute;
    int nonfinite;            /* 0 stop, 1 skip                                                   */
    int64_t validate_every, validate_steps, checkpoint_every, keep, early_stop;
    bool validate_loss;
    const char *best, *pretrained;
    int pretrained_skip;      /* enum pretrained_skip                                             */
} train_options;

typedef enum pretrained_skip { PRETRAINED_SKIP_NONE = 0, PRETRAINED_SKIP_HEAD } pretrained_skip;

typedef enum distribute_mode { MODE_AUTO = 0, MODE_SINGLE, MODE_DP, MODE_DDP } distribute_mode;

typedef struct distribute_options {
    int mode;                 /* distribute_mode                                                  */
    const char *devices;
    int backend;              /* 0 auto                                                           */
    int64_t threads;          /* or OPTION_AUTO                                                   */
    int64_t bucket;
    bool sync_batchnorm;
    int lr_scaling;           /* 0 none, 1 linear, 2 sqrt                                         */
    double timeout_s;
} distribute_options;

typedef struct window_options {
    int extent[3];            /* zeros: the patch's                                               */
    double overlap, sigma_scale;
    int mode;                 /* enum window_blend                                                */
    int padding_mode;         /* 0 constant, 1 reflect, 2 replicate, 3 circular                   */
    int64_t batch;
    int precision;            /* enum precision; AUTO: that of training                           */
    pons_integers mirror;
} window_options;

typedef enum resample_what {
    RESAMPLE_PROBABILITIES = 0, RESAMPLE_LABELS, RESAMPLE_LOGITS
} resample_what;

typedef enum probability_type { PROBABILITY_FLOAT32 = 0, PROBABILITY_UINT8 } probability_type;

typedef struct predict_options {
    pons_texts keep_largest;  /* a class, or several joined by ','                                */
    int resample;             /* enum resample_what                                               */
    int separate_slices;      /* enum pons_slices                                                 */
    double spacing[3];        /* 0: that of the file                                              */
    pons_integers region_ids;
    pons_texts tables;        /* "slicer", "itksnap", "bids"                                      */
    int probability_type;     /* enum probability_type                                            */
} predict_options;

typedef enum diffusion_betas_kind { BETAS_LINEAR = 0, BETAS_COSINE } diffusion_betas_kind;

typedef enum diffusion_schedule_kind {
    SCHEDULE_NON_UNIFORM = 0, SCHEDULE_UNIFORM_3D, SCHEDULE_UNIFORM_2D, SCHEDULE_UNIFORM_HEAD
} diffusion_schedule_kind;

typedef struct diffusion_options {
    pons_texts modalities, targets;
    int betas;                /* diffusion_betas_kind                                             */
    double beta_start, beta_end;
    int64_t timesteps;
    int schedule;             /* diffusion_schedule_kind                                          */
    int64_t steps;
    double eta;
} diffusion_options;

typedef struct device_options {
    bool autotune;
    int64_t workspace_limit;
    const char *cache_dir;
    int winograd;             /* 0 auto, 1 no                                                     */
} device_options;

typedef struct log_options {
    int64_t every, device_every;
    bool report;
    pons_texts sinks;
} log_options;

/* Keys of [preprocess] and [augment]. */
typedef struct steps_options {
    pons_texts steps;
    int profile;              /* [augment]: augment_profile_words                                 */
} steps_options;

/* Keys of [preprocess.NAME] and [augment.NAME] besides those of the transform. */
typedef struct step_options {
    const char *plugin;       /* NULL: the transform NAME                                         */
    pons_integers channels;   /* empty: all                                                       */
    int cases;                /* 0 all, 1 those of training, 2 those of validation, prediction    */
} step_options;

typedef struct sections {
    experiment_options experiment;
    data_options data;
    steps_options preprocess, augment;
    patch_options patch;
    model_options model;
    loss_options loss;
    optimizer_options optimizer;
    schedule_options schedule;
    train_options train;
    distribute_options distribute;
    window_options window;
    predict_options predict;
    diffusion_options diffusion;
    device_options device;
    log_options log;
} sections;

/*
 * Fill all sections. No key is required here: a command checks what it needs (sections_require). A
 * planned value that this build lacks is refused.
 */
pons_status sections_fill(config *c, sections *s, pons_error *err);
/* Fill the core's keys of a step's section; 'name' is "preprocess.NAME" or "augment.NAME". */
pons_status sections_fill_step(config *c, const char *name, step_options *s, pons_error *err);
/*
 * Skip the sections of plugins that a command does not load, including those of steps, except those
 * in 'kept' (ends with NULL). sections_fill has filled the core's keys of these sections.
 */
void sections_skip_plugins(config *c, const sections *s, const char *const kept[]);
/*
 * Leave out the sections of steps and sinks that the files list and --set does not, with a warning.
 * Called before the sections are filled or refused.
 */
void sections_leave_out(config *c, logger *l);
/* PONS_CONFIG with "[section] has no 'key'" and the key's help. */
pons_status sections_require(const char *section, const char *key, pons_error *err);

/* "(must be given)" or similar for a row that training needs, else NULL. */
const char *sections_need(const pons_option *row);
/* The values of a row that this build lacks, "lmdb smart"; its key if it lacks all; else "". */
const char *sections_lack(const pons_option *row, char *text, size_t size);
/* Whether this build lacks a value; 'size' is its length. */
bool sections_lack_value(const char *section, const char *key, const char *value, size_t size);

/* The tables in the order of the file, for help. */
typedef struct section_table {
    const char *name, *summary;
    const pons_option *options;
    size_t offset, size;      /* offset and size of the member of 'sections'                      */
    int plugin_kind;          /* kind of plugin whose keys the section also has, or 0             */
    int task;                 /* the only task_kind that has the section; 0: all have it          */
} section_table;

extern const section_table section_tables[]; /* ends with a NULL name */
/* The kind of the plugins that a key names, 'plugin', 'steps' or 'sinks'; 0: it names none. */
int section_key_kind(const section_table *t, const char *key);
/* The kind of the plugins that any key of the section names; 0: none. */
int section_names_kind(const section_table *t);
/* Core keys of every section of a step. */
extern const pons_option step_option_table[];

#endif
