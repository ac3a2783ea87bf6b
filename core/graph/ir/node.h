/*
 * node.h - the graph inside the core: an array of nodes that builders, gradients and passes share.
 *
 * Every node is one tensor. A computation with two results (moments) is two nodes: the first
 * computes both, the second (SECOND) names the other result. The table of kinds (kinds.c) has the
 * class, the gradient rule and the reference kernel of each kind.
 */
#ifndef CORE_GRAPH_IR_NODE_H
#define CORE_GRAPH_IR_NODE_H

#include <pons/device.h>
#include <pons/graph.h>
#include <pons/optimizer.h>

#include "base/profile/range_kind.h"

/* Map kinds come first and equal pons_map_operation. */
typedef enum node_kind {
    NODE_CAST = PONS_MAP_OPERATION_COUNT, /* a map kind too: to node->type                        */
    NODE_INPUT,          /* filled by the host for each micro-batch                               */
    NODE_RESIDENT,       /* device memory that program_bind_resident names                        */
    NODE_PARAMETER,
    NODE_STATE,
    NODE_SLOT,           /* a slot of an optimizer: attribute.slot                                */
    NODE_GRADIENT,       /* accumulated gradient of input[0], a parameter (update)                */
    NODE_SCALAR,         /* a number of the step: "lr", "step", "scale"                           */
    NODE_CONSTANT,       /* attribute.number                                                      */
    NODE_IOTA,           /* attribute.axis                                                        */
    NODE_UNIFORM,        /* attribute.stream                                                      */
    NODE_NORMAL,
    NODE_SUM,            /* attribute.axes                                                        */
    NODE_MAXIMUM,
    NODE_MINIMUM,
    NODE_REDUCE_MINMAX_GRADIENT,
    NODE_ARG_MAX,        /* attribute.axis                                                        */
    NODE_MOMENTS,        /* mean; attribute.moments                                               */
    NODE_SECOND,         /* the second result of input[0]                                         */
    NODE_CONVOLUTION,    /* attribute.convolution                                                 */
    NODE_CONVOLUTION_INPUT_GRADIENT,
    NODE_CONVOLUTION_WEIGHT_GRADIENT,
    NODE_MATMUL,
    NODE_POOL,
    NODE_POOL_GRADIENT,
    NODE_RESIZE,
    NODE_RESIZE_GRADIENT,
    NODE_RESHAPE,        /* no computation: shares its argument's memory                          */
    NODE_TRANSPOSE,
    NODE_BROADCAST,      /* part of a map                                                         */
    NODE_FLIP,
    NODE_CROP,
    NODE_PAD,
    NODE_PAD_GRADIENT,
    NODE_CONCATENATE,
    NODE_GATHER,
    NODE_ALL_REDUCE,     /* attribute.all_reduce                                                  */
    NODE_OP,             /* an op of a plugin: attribute.op                                       */
    NODE_PATCH,          /* patches cut out of resident cases                                     */
    NODE_PATCH_NORMAL,
    NODE_PATCH_ACCUMULATE, /* patches added to resident sums, in place                            */
    NODE_FAILED,
    NODE_KIND_COUNT
} node_kind;

typedef enum node_class {
    CLASS_MAP = 1,
    CLASS_LEAF,
    CLASS_REDUCE,      /* SUM MAXIMUM MINIMUM MOMENTS SECOND: may end a fused unit                */
    CLASS_CONVOLUTION,
    CLASS_MOVE,
    CLASS_OTHER
} node_class;

/*
 * The section of a step to which a node belongs (R8), and the author of the node. SECTION_NORM
 * computes the norm, the finite test and the clipping factor of gradients that gradient buckets
 * have summed.
 */
typedef enum node_section {
    SECTION_BEGIN = 0, SECTION_MICRO, SECTION_NORM, SECTION_UPDATE
} node_section;
typedef enum node_scope { SCOPE_MODEL = 0, SCOPE_LOSS, SCOPE_OPTIMIZER, SCOPE_CORE } node_scope;

/* The plugin that has made a node, for profiles. */
typedef struct node_origin {
    range_kind kind;
    const char *name;
} node_origin;

typedef union node_attribute {
    double number;
    int axis;
    unsigned axes;
    struct { unsigned axes; int groups; } moments;
    struct { uint64_t hash; const char *name; } stream;
    struct { int index; pons_slot_kind kind; } slot;
    pons_convolution convolution;
    pons_matmul_attributes matmul;
    pons_pool pool;
    pons_resize_attributes resize;
    pons_transpose_attributes transpose;
    pons_flip_attributes flip;
    pons_crop_attributes crop;
    pons_pad_attributes pad;
    pons_minmax_attributes extreme;
    pons_all_reduce_attributes all_reduce;
    pons_op_attributes op;
} node_attribute;

struct pons_node {
    pons_graph *graph;
    int number;               /* index in graph->node; arguments have smaller numbers             */
    int kind;                 /* pons_map_operation or node_kind                                  */
    pons_type type;
    pons_shape shape;
    int input_count;
    pons_node **input;
    node_attribute attribute;
    node_section section;
    node_scope scope;
    const node_origin *origin; /* NULL: the core                                                  */
    const char *name;         /* leaves: the tensor's name; else a label for messages, or NULL    */
    const struct leaf *leaf;  /* parameters and states: the declaration                           */
    pons_node *copy_of;       /* the node of which the recompute pass made this copy              */
    bool backward;            /* part of the backward pass                                        */
};

/* The declaration of a parameter or state. */
typedef struct leaf {
    const char *name;
    pons_role role;           /* 0 for a state                                                    */
    pons_shape shape;
    pons_init init;
    bool trained;             /* true for a parameter, false for a state                          */
    bool left_out;            /* needed by an output without weight in the loss                   */
    int index;                /* number among the parameters, or among the states                 */
    pons_node *node;
    struct leaf *next;
} leaf;

typedef struct state_merge {
    pons_node *state, *value;
    double rate;
} state_merge;

/* An op plugin with one set of options, shared by all nodes that have the same. */
typedef struct graph_op {
    const struct plugin *plugin;
    const char *text;         /* the options as text                                              */
    struct config *values;    /* the parsed options, which own texts and lists                    */
    pons_op_attributes attribute;
    struct graph_op *next;
} graph_op;

typedef struct node_assign {
    pons_node *leaf, *value;
} node_assign;

struct pons_graph {
    struct arena *arena;      /* the memory of everything in the graph                            */
    pons_error error;
    bool training;
    bool drops;               /* dropout also without training: samples of an evaluation          */
    /* Batch statistics, and batch-wise sums of the loss, span several replicas. */
    bool join_norms, join_loss;
    node_section section;     /* of new nodes                                                     */
    node_scope scope;
    const node_origin *origin;
    int node_count, node_room;
    pons_node **node;
    leaf *parameter, **parameter_end;
    leaf *state, **state_end;
    int parameter_count, state_count;
    int merge_count, merge_room;
    state_merge *merge;
    int assign_count, assign_room;
    node_assign *assign;
    int stream_count, stream_room;
    struct { uint64_t hash; const char *name; } *stream;
    graph_op *op, **op_end;
    pons_node *failed;
    bool differentiated;      /* graph_gradient has run; it may run once                          */
};

typedef struct node_kind_facts {
    const char *name;
    node_class class;
    int input_count;          /* -1: any number                                                   */
    /*
     * Add the gradients of the inputs to the graph, given 'dx', that of the node. gradient[i] stays
     * NULL for an input without a gradient. wanted[i] tells which are needed. The pointer is NULL
     * for a kind without a gradient: asking for one is an error.
     */
    void (*gradient)(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,
                     pons_node **gradient);
    bool constant;            /* no gradient by nature (comparisons, arg_max, leaves)             */
} node_kind_facts;

extern const node_kind_facts node_kinds[NODE_KIND_COUNT]; /* kinds.c */

static inline bool node_is_map(const pons_node *x) { return x->kind <= NODE_CAST; }
static inline bool node_failed(const pons_node *x) { return x == NULL || x->kind == NODE_FAILED; }

/* The node that owns the memory of 'x': a reshape and a stop_gradient share their argument's. */
static inline pons_node *node_owner(pons_node *x)
{
    while (x->kind == NODE_RESHAPE || x->kind == PONS_MAP_STOP_GRADIENT)
        x = x->input[0];
    return x;
}

#endif
