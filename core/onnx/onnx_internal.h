/*
 * onnx_internal.h - the export of a graph: layouts of values, free extents, rules of nodes.
 *
 * A tensor of five axes lies as [N, D, H, W, C] in pons, and convolutions of ONNX want
 * [N, C, D, H, W]. So a value has up to two names, one for each layout. A conversion is added when
 * the layout that a rule reads is missing. In a flat graph the second layout is [N, C, H, W].
 */
#ifndef CORE_ONNX_ONNX_INTERNAL_H
#define CORE_ONNX_ONNX_INTERNAL_H

#include "checkpoint/safetensors.h"
#include "graph/ir/node.h"
#include "onnx/onnx_export.h"
#include "onnx/onnx_message.h"

typedef enum onnx_layout { LAYOUT_LAST = 0, LAYOUT_FIRST } onnx_layout;

/* Names of a node's value; NULL: not made yet. */
typedef struct onnx_value {
    bool made;
    onnx_layout native;       /* the layout that its rule makes                                   */
    const char *name[2];
    const char *spread;       /* less than five axes, broadcast against LAYOUT_FIRST              */
    const char *truth;        /* a comparison as booleans, in its native layout                   */
} onnx_value;

/*
 * Graphs of the same network that differ in extents. VARIANT_BASE has those of 'scale' windows, the
 * next four have one of N, D, H, W larger. In the others all free axes are larger, by different
 * steps: they check what the first five have shown. The last one has the smallest extents.
 */
enum { VARIANT_BASE = 0, VARIANT_CHECK = 5, VARIANT_SMALLEST = 9, VARIANT_COUNT };
enum { FREE_AXES = 4 };

/* A number of the graph in each variant. */
typedef struct onnx_quantity {
    double at[VARIANT_COUNT];
} onnx_quantity;

typedef struct onnx_graph {
    const experiment *experiment;
    onnx_model *model;
    pons_graph *variant[VARIANT_COUNT]; /* NULL: as VARIANT_BASE                                  */
    int64_t extent[VARIANT_COUNT][FREE_AXES]; /* N, D, H, W of the image                          */
    int scale;                /* extents of free axes in VARIANT_BASE, in windows                 */
    int64_t fewer;            /* steps by which VARIANT_SMALLEST is smaller than VARIANT_BASE     */
    int64_t step[FREE_AXES];  /* free extents differ from those of the window by multiples        */
    unsigned fixed;           /* axes that are not free                                           */
    unsigned doubtful;        /* axes that a rule or a variant cannot free by that step           */
    bool flat;                /* LAYOUT_FIRST leaves D out                                        */
    onnx_value *value;        /* by number of the node in VARIANT_BASE                            */
    const char *shape;        /* shape of 'image' in the model                                    */
    const char *extent_name[FREE_AXES]; /* free extents, each a vector of one int64               */
    const safetensors_content *weights;
    char *memory;             /* their elements, in order                                         */
    pons_error *err;
} onnx_graph;

/* ---- onnx_dimension.c: numbers that depend on the extents ------------------------------------ */

/* Read a number of a node in all variants. */
typedef double onnx_reading(const pons_node *x, int index);
onnx_quantity onnx_read(const onnx_graph *x, const pons_node *n, onnx_reading *reading, int index);
double onnx_read_extent(const pons_node *n, int axis);
bool onnx_is_constant(const onnx_quantity *q);
/* A number that a model can only have as a constant: where it is none, axes are doubtful. */
void onnx_expect_constant(onnx_graph *x, const pons_node *n, onnx_reading *reading, int index);
/*
 * The value as a vector of one int64, and as a float scalar. A value that is no product of free
 * extents and a constant makes the axes that it depends on doubtful.
 */
const char *onnx_dimension(onnx_graph *x, const onnx_quantity *q);
const char *onnx_number(onnx_graph *x, const onnx_quantity *q);
/* The free axes of D, H and W, or N if none of them is free. */
unsigned onnx_spatial_doubt(const onnx_graph *x);
/* 'count' values as one vector of int64. */
const char *onnx_dimensions(onnx_graph *x, int count, const onnx_quantity *q);

/* ---- onnx_value.c: values of nodes ----------------------------------------------------------- */

/* The position of an axis in a layout; -1: the layout leaves it out. */
int onnx_axis(const onnx_graph *x, const pons_node *n, onnx_layout layout, int axis);
/* Axes of a node in a layout, and the axis of the node at each position. */
int onnx_axes(const onnx_graph *x, const pons_node *n, onnx_layout layout,
              int axis[PONS_RANK_MAX]);
/* The positions of a set of axes. */
int onnx_axes_of(const onnx_graph *x, const pons_node *n, onnx_layout layout, unsigned axes,
                 int64_t out[PONS_RANK_MAX]);
/* The name of a value in a layout; less than five axes have LAYOUT_LAST only. */
const char *onnx_value_of(onnx_graph *x, pons_node *n, onnx_layout layout);
/* The layout in which a value exists. */
onnx_layout onnx_native(onnx_graph *x, pons_node *n);
/* An operand of a node of 'rank' axes whose operands broadcast in 'layout', as floats. */
const char *onnx_operand(onnx_graph *x, pons_node *n, int rank, onnx_layout layout);
/* Set the value of 'n'. */
void onnx_set(onnx_graph *x, const pons_node *n, onnx_layout layout, const char *name);
/* The spatial axes of LAYOUT_FIRST: 2 or 3. */
int onnx_spatial(const onnx_graph *x);
/* A leaf with one axis, as a vector, and as a broadcast operand of LAYOUT_FIRST. */
const char *onnx_leaf(onnx_graph *x, const pons_node *n, bool spread);
/* The number of a type in onnx.proto. */
int onnx_type(pons_type type);
/* Bytes of a tensor of weights. */
size_t onnx_tensor_size(const safetensor *t);

/* ---- rules ----------------------------------------------------------------------------------- */

void onnx_node_rule(onnx_graph *x, pons_node *n); /* onnx_node.c: any kind                        */
void onnx_map_rule(onnx_graph *x, pons_node *n);  /* onnx_map.c                                   */
/* onnx_fuse.c: several nodes as one operator; false: there is none. */
bool onnx_fuse_rule(onnx_graph *x, pons_node *n);
/* onnx_node.c: a convolution or a transposed one in LAYOUT_FIRST, with a bias or NULL. */
const char *onnx_convolution(onnx_graph *x, pons_node *n, pons_node *bias);
/* onnx_node.c: a reduction over axes of a layout; 'name' itself without axes. */
const char *onnx_reduced(onnx_graph *x, const char *type, const char *name, int count,
                         const int64_t *axes);
void onnx_refuse(onnx_graph *x, const pons_node *n, const char *what);

#endif
