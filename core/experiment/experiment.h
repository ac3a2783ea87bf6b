/*
 * experiment.h - a loaded INI file: sections, plugins, devices, classes and channels.
 *
 * Networks, loaders and trainers are made from an experiment.
 */
#ifndef CORE_EXPERIMENT_EXPERIMENT_H
#define CORE_EXPERIMENT_EXPERIMENT_H

#include "base/log.h"
#include "config/sections.h"
#include "data/cache/case_window.h"
#include "data/dataset/dataset.h"
#include "data/transform/pipeline.h"
#include "device/cuda_visible_devices.h"
#include "graph/program/program.h"
#include "plugin/plugin_load.h"
#include "metric/best_metric.h"
#include "experiment/case_list.h"
#include "experiment/run_identity.h"
#include "window/window.h"

#include <pons/loss.h>
#include <pons/schedule.h>

typedef struct loaded_plugin {
    const plugin *plugin;
    void *options;          /* filled by the plugin's option table                                */
} loaded_plugin;

typedef enum experiment_purpose {
    EXPERIMENT_TRAIN = 0,   /* everything, with the cases of [data]                               */
    EXPERIMENT_PREDICT      /* model, device and [preprocess]; no file of [data] is opened        */
} experiment_purpose;

/* Values from a checkpoint or the command line, which override the file's. */
typedef struct experiment_overrides {
    int threads;            /* kernel threads; 0: the file's                                      */
    precision precision;    /* AUTO: the file's                                                   */
    /*
     * Predict: channels of the network; 0: the number of [data] image patterns or, without
     * patterns, of the image's channels.
     */
    int channels;
    int image_channels;     /* predict: channels of the images                                    */
    const char *devices;    /* predict: replaces the file's list; NULL: the file's                */
    const struct processes *processes; /* train: the processes of the run; NULL: this one alone   */
    bool debug;             /* fill freed memory with NaN                                         */
} experiment_overrides;

/* Share 'index' of 'count' equal shares of the processors that this process may use. */
typedef struct device_share {
    int index, count;
} device_share;

typedef struct experiment {
    config *config;         /* borrowed                                                           */
    logger *log;            /* borrowed                                                           */
    arena *memory;
    sections sections;
    experiment_purpose purpose;
    bool debug;
    dataset *data;          /* TRAIN                                                              */
    case_list cases;        /* cases of 'data'                                                    */
    case_window epoch;      /* TRAIN: training cases of an epoch                                  */
    /* identity of the run, in the process that writes checkpoints; "": none */
    char run[RUN_IDENTITY_SIZE];
    /* geometry of the training cases as JSON, for checkpoints; NULL: not read */
    const char *geometry;
    best_metric best;       /* TRAIN                                                              */
    int class_count;        /* classes of the target: entries of labels, or of regions            */
    const data_class *classes;
    bool regions;
    int target_count;       /* task = synthesis: modalities that the network makes                */
    const int *targets;     /* [target_count] numbers of classes                                  */
    pons_task task;
    loaded_plugin model, loss, optimizer, schedule;
    loaded_plugin *sink;    /* TRAIN: one for each entry of [log] sinks                           */
    int op_count;           /* op plugins that the network uses                                   */
    const plugin **op;
    pons_activation activation; /* resolved                                                       */
    pipeline *preprocess, *augment;
    device_list listed;     /* [distribute] devices                                               */
    const char *chosen;      /* the list that devices = auto resolved to; NULL: not auto          */
    cuda_visible_devices visible; /* CUDA_VISIBLE_DEVICES; count -1: unknown                      */
    distribute_mode mode;   /* resolved                                                           */
    const struct processes *processes; /* NULL: a single process                                  */
    struct group *group;    /* group of the processes; NULL: a single process                     */
    const struct plugin *comm; /* joins processes, or GPUs of this process; NULL: local_comm.h */
    int device_count;       /* devices of this process, one for each of its replicas              */
    device_share *share;    /* [device_count]                                                     */
    /*
     * Open devices. A single one belongs to the thread that opened the experiment; each of several
     * belongs to a thread of its own.
     */
    device *devices;
    device device;          /* devices[0]                                                         */
    struct tuning *tuning;  /* NULL: kernels are not chosen by timing                             */
    precision precision;    /* of training, resolved                                              */
    precision window_precision; /* of validation and prediction, resolved                         */
    int replicas, accumulate; /* of all processes                                                 */
    int first;              /* number of this process's first replica                             */
    int micro_batches;      /* M = replicas x accumulate                                          */
    program_testing testing; /* switches of all programs, set by tests                            */
    int patch[3], window[3]; /* extents along i j k                                               */
} experiment;

pons_status experiment_open(config *c, experiment_purpose purpose,
                            const experiment_overrides *known,
                            logger *l, experiment **out, pons_error *err);
void experiment_close(experiment *e);
/* Record the op plugins that the built network uses, for resolved.ini and checkpoints. */
void experiment_note_ops(experiment *e, const program *training);

/* Text on the cases of an epoch, such as "30 of 40 cases are in the cache"; NULL: all are used. */
const char *experiment_epoch_text(const experiment *e, const case_window *w);
/* The resolved mode: "single", "dp" or "ddp". */
const char *experiment_mode(const experiment *e);
/* The reason for the choice of mode = auto. */
const char *experiment_mode_reason(const experiment *e);
/* The reason for the choice of devices = auto. */
const char *experiment_devices_reason(const experiment *e);

/* True for [data] cache = device: the training device extracts patches from cases in its memory. */
static inline bool experiment_device_extracts(const experiment *e)
{
    return e->sections.data.cache == CACHE_DEVICE;
}

/* Processors that this process may use; processes of a machine share its processors. */
int experiment_processors(const experiment *e);
/*
 * Threads for work on whole volumes: as kernel threads if kernels run on the host, else all
 * processors.
 */
int experiment_threads(const experiment *e);

/* The numbers that the model's extents along D, H, W must be multiples of. */
pons_status experiment_divisor(const experiment *e, int divisor[3], pons_error *err);

/* experiment_window.c: the settings of sliding windows from [window]. */
void experiment_window_settings(const experiment *e, window_settings *out);

/*
 * experiment_axes.c: reorder a model's options per axis to D H W; the flat axis of a 2D network is
 * 1.
 */
pons_status experiment_reorder_axes(experiment *e, pons_error *err);

/*
 * experiment_task.c: the rules of [experiment] task, one row a task. Its nodes are in
 * replica/task_nodes.h; validation.c, evaluation_run.c, predict_run.c and predict_tasks.c have a
 * table of their own.
 */
typedef struct task_rules {
    dataset_target target;    /* target of the network, as the loader delivers it                 */
    bool background;          /* the first of several classes is the background                   */
    const char *best;         /* [train] best, if it is not given                                 */
    metric_set recorded;      /* metrics of every validation                                      */
    metric_set evaluated;     /* metrics of evaluate --run that names none                        */
    metric_set selecting;     /* metrics that 'best' may name                                     */
    /*
     * Set regions, classes, class_count and task of an experiment from its dataset, and refuse
     * options that the task does not know.
     */
    pons_status (*take_dataset)(experiment *e, pons_error *err);
    /* Set the same from the configuration alone, for a prediction. */
    pons_status (*take_names)(experiment *e, const experiment_overrides *known, pons_error *err);
    pons_activation (*activation)(const experiment *e); /* resolved                               */
} task_rules;

const task_rules *task_rules_of(const sections *s);
/* True if the network of a synthesis makes a modality. */
bool experiment_is_target(const experiment *e, int modality);

#endif
