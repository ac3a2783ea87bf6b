/*
 * golden_program.h - the shared parts of golden tests of programs: cases, arrays in both axis
 * orders, plugins with options from JSON, and the modes in which every case is run.
 *
 * Golden arrays are in PyTorch's order, [N, C, D, H, W] and [O, I, kD, kH, kW]; a 2D case has no D.
 */
#ifndef TESTS_GOLDEN_PROGRAM_H
#define TESTS_GOLDEN_PROGRAM_H

#include <pons/loss.h>
#include <pons/model.h>

#include "base/file/json.h"
#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "graph/program/program.h"
#include "plugin/plugin_load.h"

typedef struct golden {
    json_t *cases;            /* NAME.json                                                        */
    safetensors *arrays;      /* NAME.safetensors                                                 */
} golden;

void golden_open(golden *g, const char *name);
void golden_close(golden *g);
/* A member of a case; the test fails without it. */
const char *golden_text(const json_t *c, const char *key);
double golden_number(const json_t *c, const char *key);
/* The array with the formatted name, such as '<case>/<name>', or NULL. */
const safetensor *golden_find(const golden *g, const char *name, ...)
    __attribute__((format(printf, 2, 3)));

/* One mode of running a case. */
typedef struct golden_mode {
    const char *name;
    const char *plugin;       /* device plugin; NULL: reference                                   */
    bool wide, fill_nan;
    precision precision;
} golden_mode;

extern const golden_mode golden_modes[];
extern const int golden_mode_count;
extern const golden_mode golden_bf16_modes[];
extern const int golden_bf16_mode_count;
/* The mode runs only the first of the long cases; another mode runs all on its slow device. */
bool golden_is_slow(const golden_mode *m);
/* The mode's device is a GPU that tests/fake makes up on the processor. */
bool golden_is_made_up(const golden_mode *m);
/*
 * The mode is one of the reference device, and PONS_TEST_REFERENCE is "no": another build has run
 * it. Its kernels are plain C, which neither libraries nor the limit of instructions change.
 */
bool golden_is_repeated(const golden_mode *m);

void golden_device(const golden_mode *m, device *d);
program_settings golden_settings(const golden_mode *m);

/* A plugin and its filled configuration. */
typedef struct golden_plugin {
    const plugin *plugin;
    config *config;
    void *options;
} golden_plugin;

/*
 * 'options' is a JSON object. Members that the plugin's table does not list are ignored, null too.
 * Lists of two values for a 2D network get a leading 1. A list of a word and an object, as in
 * norm = ["group", {"num_groups": 2}], sets the option and those of the object.
 */
void golden_load(golden_plugin *p, pons_kind kind, const char *name, size_t operations_size,
                 json_t *options, bool flat);
void golden_unload(golden_plugin *p);
/*
 * A case of a network, of MONAI ('network', 'arguments') or nnU-Net ('architecture'): the plugin of
 * its class, its options, whether it is 2D, and its task. Plugin NULL: there is none; options NULL:
 * the case only counts parameters.
 */
const char *golden_network_plugin(const json_t *c);
json_t *golden_network_options(const json_t *c);
bool golden_network_flat(const json_t *c);
pons_task golden_network_task(const json_t *c, pons_shape image);
/* The loss of such a task in the golden files. */
const char *golden_network_loss(const json_t *c, const pons_task *task);
/* The files of such cases; ends with NULL. */
extern const char *const golden_network_files[];

/*
 * Whether a case of a loss has no plugin: it needs a skeleton, or pairs of items. focal_07 has
 * regions without their first, which losses refuse.
 */
bool golden_loss_left_out(const json_t *c);

/* Read an array into our axis order: an image if 'image', else a weight or a vector. */
void golden_read(const safetensor *from, pons_tensor to, bool image, void *memory);
/* The index in PyTorch's array for each of our elements, in order; to be freed. */
int64_t *golden_indices(const safetensor *t, pons_shape shape);
/* Largest |ours - golden| and largest |golden|. */
typedef struct golden_difference { double largest, of; } golden_difference;
golden_difference golden_compare(const safetensor *expected, pons_tensor found, bool image,
                                 const void *memory);
/* The same of an image of which 'expected' holds every 'step'-th voxel of each axis. */
golden_difference golden_compare_sampled(const safetensor *expected, int step, pons_tensor found,
                                         const void *memory);
/* The shape of an image array in our order. */
pons_shape golden_image_shape(const safetensor *t);

/* model(image) and loss(model(image), target), built the way the trainer does. */
typedef struct golden_net {
    pons_graph *graph;
    pons_node *logits, *loss;
    pons_outputs outputs;     /* the first is 'logits'                                            */
} golden_net;

/* A task of an image; 'classes' labels that exclude each other. */
pons_task golden_task(pons_shape image, int classes, bool flat);
/* The loss sums that of each output, weighted by 1, 1/2, 1/4 and so on. */
golden_net golden_build_task(const golden_plugin *model, const golden_plugin *loss,
                             pons_shape image, const pons_task *task, bool training);
golden_net golden_build(const golden_plugin *model, const golden_plugin *loss, pons_shape image,
                        int classes, bool flat, bool training);
/* Write the parameters and states '<prefix>/<name>' into the storage. */
void golden_restore(const golden *g, const char *prefix, storage *s);
pons_tensor golden_tensor(const device *d, pons_shape shape);

#endif
