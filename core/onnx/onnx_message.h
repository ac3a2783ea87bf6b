/*
 * onnx_message.h - the messages of an ONNX model (https://onnx.ai, onnx.proto) in an arena.
 *
 * Values have names. A node reads values and makes one. Names that functions receive are borrowed
 * until the arena is freed.
 */
#ifndef CORE_ONNX_ONNX_MESSAGE_H
#define CORE_ONNX_ONNX_MESSAGE_H

#include <pons/graph.h>

#include "base/arena.h"
#include "base/progress.h"
#include "onnx.pb-c.h"

enum { ONNX_IR = 8, ONNX_OPSET = 17 };

typedef struct onnx_model {
    arena *memory;
    Onnx__ModelProto message;
    Onnx__GraphProto graph;
    int made;                 /* number of the next name                                          */
} onnx_model;

/* Start an empty model in 'memory'. */
void onnx_model_init(onnx_model *m, arena *memory);

typedef Onnx__NodeProto onnx_node;

/* Add a node of operator 'type' and return it. Its only output is node->output[0], a new name. */
onnx_node *onnx_add(onnx_model *m, const char *type, int count, const char *const *input);
/* The same with the name of its output only. */
const char *onnx_apply1(onnx_model *m, const char *type, const char *a);
const char *onnx_apply2(onnx_model *m, const char *type, const char *a, const char *b);

void onnx_set_int(onnx_model *m, onnx_node *n, const char *name, int64_t value);
void onnx_set_ints(onnx_model *m, onnx_node *n, const char *name, int count,
                   const int64_t *value);
void onnx_set_float(onnx_model *m, onnx_node *n, const char *name, double value);
void onnx_set_text(onnx_model *m, onnx_node *n, const char *name, const char *value);

/* Constants. The elements of 'floats' are borrowed, the others are copied. */
void onnx_floats(onnx_model *m, const char *name, int rank, const int64_t *extent,
                 const float *floats);
const char *onnx_int64s(onnx_model *m, int count, const int64_t *value);
const char *onnx_float(onnx_model *m, double value);

/* Inputs and outputs: 'symbol' of an axis is its name, or NULL for a fixed extent. */
void onnx_input(onnx_model *m, const char *name, int type, int rank, const int64_t *extent,
                const char *const *symbol);
void onnx_output(onnx_model *m, const char *name, int type, int rank, const int64_t *extent,
                 const char *const *symbol);
void onnx_metadata(onnx_model *m, const char *key, const char *value);

/*
 * Write the model to 'path', complete or not at all. 'progress' may be NULL. PONS_CONFIG: it has
 * over 2 GiB.
 */
pons_status onnx_write(onnx_model *m, const char *path, byte_progress *progress, pons_error *err);

#endif
