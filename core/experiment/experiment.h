/*
 * experiment.h - an INI file made ready: its sections read, its plugins loaded, its device open,
 * its classes and channels known. Networks, loaders and trainers start from here.
 */
#ifndef CORE_EXPERIMENT_EXPERIMENT_H
#define CORE_EXPERIMENT_EXPERIMENT_H

#include "base/log.h"
#include "config/sections.h"
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
    void *options;          /* as its own table fills them                                        */
} loaded_plugin;

typedef enum experiment_purpose {
    EXPERIMENT_TRAIN = 0,   /* all of it, with the cases of [data]                                */
    EXPERIMENT_PREDICT      /* model, device and [preprocess]; no file of [data] is opened        */
} experiment_purpose;

/* What is known from elsewhere (a checkpoint, the command line) and wins over the file. */
typedef struct experiment_known {
    int threads;            /* kernel threads; 0: as the file says                                */
    precision precision;    /* AUTO: as the file says                                             */
    int channels;           /* predict: of the network; 0: number of [data] image patterns, or    */
    int image_channels;     /* where there are none, that of the images                           */
    const char *devices;    /* predict: the list, whatever the file says; NULL: the file's        */
    const struct processes *processes; /* train: of the run; NULL: this one alone                 */
    bool debug;             /* freed memory is filled with NaN                                    */
} experiment_known;

/* Which of how many equal parts of the processors that this process may use. */
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
    case_record cases;      /* of it                                                              */
    char run[RUN_IDENTITY_SIZE];    /* of the process that writes checkpoints; "": none           */
    const char *geometry;   /* of its training cases, for checkpoints; NULL: they were not read   */
    best_metric best;       /* TRAIN                                                              */
    int class_count;        /* of the target: entries of labels, or of regions                    */
    const data_class *classes;
    bool regions;
    pons_task task;
    loaded_plugin model, loss, optimizer, schedule;
    loaded_plugin *sink;    /* TRAIN: one for each of [log] sinks                                 */
    int op_count;           /* op plugins that the network turned out to use                      */
    const plugin **op;
    pons_activation activation; /* resolved                                                       */
    volume_chain *preprocess, *augment;
    device_list listed;     /* [distribute] devices                                               */
    const char *chosen;      /* what devices = auto has become, or NULL                           */
    visible_devices visible; /* CUDA_VISIBLE_DEVICES; count -1: not known                         */
    distribute_mode mode;   /* resolved                                                           */
    const struct processes *processes; /* NULL: none to be joined                                 */
    struct group *group;    /* theirs, NULL: one process                                          */
    const struct plugin *comm; /* joins processes, or GPUs of this one; NULL: local_comm.h     */
    int device_count;       /* of this process: one for each of its replicas                      */
    device_share *share;    /* of each                                                            */
    device *devices;        /* opened. A single one belongs to the thread that opened the         */
                            /* experiment; of several each to a thread of its own                 */
    device device;          /* the first one                                                      */
    struct tuning *tuning;  /* NULL: no kernel is chosen by timing                                */
    precision precision;    /* resolved                                                           */
    int replicas, accumulate; /* replicas of all processes                                        */
    int first;              /* number of this process's first replica                             */
    int micro_batches;      /* M = replicas x accumulate                                          */
    bool no_reuse;          /* test switch: no memory of a program is reused                      */
    int patch[3], window[3]; /* extents along i j k                                               */
} experiment;

pons_status experiment_open(config *c, experiment_purpose purpose, const experiment_known *known,
                            logger *l, experiment **out, pons_error *err);
void experiment_close(experiment *e);
/* After the network was built: the op plugins that it uses, for resolved.ini and checkpoints. */
void experiment_note_ops(experiment *e, const program *training);

/* Where the replicas live: "single", "dp" or "ddp". */
const char *experiment_mode(const experiment *e);
/* Why auto has picked it. */
const char *experiment_mode_reason(const experiment *e);
/* Why devices = auto is what it is. */
const char *experiment_devices_reason(const experiment *e);

/* [data] cache = device: the device that trains cuts the patches out of cases that it holds. */
static inline bool experiment_device_cuts(const experiment *e)
{
    return e->sections.data.cache == CACHE_DEVICE;
}

/* Processors of this process: those of the machine are shared by its processes.               */
int experiment_processors(const experiment *e);
/* Of them, what work on whole volumes may take: where kernels run on the host, as many as they. */
int experiment_threads(const experiment *e);

/* R33: extents along i j k against the model's divisor; 'what' is "patch" or "window". */
pons_status experiment_check_extent(const experiment *e, const char *what, const int extent[3],
                                    pons_error *err);

/* experiment_window.c: the [window] section for stitch_open. */
void experiment_window_settings(const experiment *e, window_settings *out);

/*
 * experiment_axes.c: in a 2D network options per axis come in the order D H W, 1 on the flat axis.
 */
pons_status model_axes_turn(experiment *e, pons_error *err);

#endif
