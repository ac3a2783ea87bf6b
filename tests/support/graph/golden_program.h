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
/* The mode runs only the first of the long cases, because its device is slow. */
bool golden_is_slow(const golden_mode *m);

void golden_device(const golden_mode *m, device *d);
program_settings golden_settings(const golden_mode *m);

/* A plugin and its filled configuration. */
typedef struct golden_plugin {
    const plugin *plugin;
    config *config;
    void *options;
} golden_plugin;

/*
 * 'options' is a JSON object. Members that the plugin's table does not list are ignored. Lists of
 * two values for a 2D network get a leading 1.
 */
void golden_load(golden_plugin *p, pons_kind kind, const char *name, size_t operations_size,
                 json_t *options, bool flat);
void golden_unload(golden_plugin *p);
/* The plugin for MONAI's class in a case's 'network'; NULL: there is none. */
const char *golden_network_plugin(const json_t *c);

/* Read an array into our axis order: an image if 'image', else a weight or a vector. */
void golden_read(const safetensor *from, pons_tensor to, bool image, void *memory);
/* Largest |ours - golden| and largest |golden|. */
typedef struct golden_difference { double largest, of; } golden_difference;
golden_difference golden_compare(const safetensor *expected, pons_tensor found, bool image,
                                 const void *memory);
/* The shape of an image array in our order. */
pons_shape golden_image_shape(const safetensor *t);

/* model(image) and loss(model(image), target), built the way the trainer does. */
typedef struct golden_net {
    pons_graph *graph;
    pons_node *logits, *loss;
} golden_net;

golden_net golden_build(const golden_plugin *model, const golden_plugin *loss, pons_shape image,
                        int classes, bool flat, bool training);
/* Write the parameters and states '<prefix>/<name>' into the storage. */
void golden_restore(const golden *g, const char *prefix, storage *s);
pons_tensor golden_tensor(const device *d, pons_shape shape);

#endif
