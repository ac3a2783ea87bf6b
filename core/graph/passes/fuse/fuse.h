/*
 * fuse.h - units, the groups of nodes that become kernels: between the fuse pass and plan.c.
 */
#ifndef CORE_GRAPH_PASSES_FUSE_FUSE_H
#define CORE_GRAPH_PASSES_FUSE_FUSE_H

#include "graph/passes/fuse/lower.h"

/* A tensor that a unit reads. */
typedef struct fuse_read {
    pons_node *tensor;
    bool pointwise;          /* each point reads its own element: the producer may join the unit  */
    bool whole;              /* as large as the unit's space                                      */
} fuse_read;

/*
 * A future kernel. Its outputs are the materialised nodes that it writes or reduces. The unit
 * computes all expressions between its reads and its outputs.
 */
typedef struct fuse_unit {
    struct fuse_unit *into;  /* the unit that this one was merged into                            */
    bool map;                /* a map kernel; else one node of another kind, output[0]            */
    bool backward, begin, random;
    bool again;              /* all outputs are copies by the recompute pass                      */
    pons_shape space;        /* squeezed; includes the channels in channel form                   */
    int channels;            /* of the channel form; 0: linear form                               */
    /* 'first' and 'last' are the smallest and the largest number of an output. */
    int output_count, read_count, first, last;
    pons_node **output;
    fuse_read *read;
    int read_room;
    int visited;
} fuse_unit;

typedef struct fusion {
    pons_graph *g;
    arena *arena;
    bool off;                /* no fusion: each node is a kernel of its own                       */
    bool tf32;               /* tf32 flag of the requests                                         */
    int root_count;
    pons_node *const *root;
    bool *live, *materialised, *uniform;
    bool *view;              /* by number: a crop that readers read from the cropped tensor       */
    pons_node **part_of;     /* by number: the concatenation whose memory the node is written to  */
    int *channels;           /* by number: channels of an expression in channel form, else 0      */
    /* By number: an expression of the channel form with one number for all channels of a point. */
    bool *per_point;
    bool *random;            /* by number: an expression with random numbers                      */
    fuse_unit **unit_of;     /* by number of an output: its unit                                  */
    pons_node **second;      /* by number of a moments node: its second result                    */
    int *seen;               /* by number: the stamp of the last walk that visited the node       */
    int unit_count, unit_room;
    fuse_unit **unit;        /* units that are not merged into others                             */
    int stamp;
} fusion;

/* Decide materialised nodes and units. */
void fuse_graph(fusion *f);

/* ---- fuse_source.c: what a node is, and where its readers find it ---------------------------- */

bool fuse_is_expression(const pons_node *x);
bool fuse_is_reduction(const pons_node *x);
/* Whether 'x' is a reduction over channels that is computed inside an expression. */
bool fuse_is_inner(const fusion *f, const pons_node *x);
/* Whether 'x' is an expression or such a reduction. */
bool fuse_is_value(const fusion *f, const pons_node *x);
typedef enum fuse_source {
    FUSE_COMPUTED,           /* no read: uniform values and iotas                                 */
    FUSE_INSIDE,             /* an expression that becomes part of its reader                     */
    FUSE_DENSE,              /* a tensor of its own in memory                                     */
    FUSE_VIEW,               /* a crop, read from the memory of its argument                      */
    FUSE_PARTS               /* a concatenation, written by the units that compute its parts      */
} fuse_source;

fuse_source fuse_source_of(const fusion *f, const pons_node *x);
/* The form of a tensor in memory: FUSE_DENSE, FUSE_VIEW or FUSE_PARTS. */
fuse_source fuse_form_of(const fusion *f, const pons_node *owner);
bool fuse_same_space(pons_shape a, pons_shape b);
/* Whether 'x' [..., 1] has one number per point of 'at' [..., C]. */
bool fuse_is_per_point_beside(pons_shape x, pons_shape at);

/* ---- fuse_materialise.c: materialised nodes, and crops that are read in place ---------------- */

void fuse_mark_views(fusion *f);
/* Materialise the nodes that the graph requires. Nodes that are materialised already stay so. */
void fuse_materialise(fusion *f);

/* ---- fuse_slice.c: concatenations are written by what computes their parts ------------------- */

bool fuse_slices(fusion *f); /* True: the graph has changed.                                      */
/* Whether 'x' is a concatenation that is written part by part; the parts are its arguments. */
bool fuse_in_parts(const fusion *f, const pons_node *x);
void fuse_mark_parts(fusion *f);
int64_t fuse_part_offset(const pons_node *whole, const pons_node *part); /* in elements */

/* ---- fuse_unit.c: the unit of one output ----------------------------------------------------- */

/*
 * A walk that counts the reads of outputs, or collects them in 'u'. It visits each expression once.
 */
typedef struct fuse_walk {
    fusion *f;
    int stamp;
    fuse_unit *u;
    int count;
    int *visits;             /* by number, or NULL: incremented for each visited expression       */
} fuse_walk;

/* Make the unit of one output: its space and its reads. */
void fuse_unit_make(fusion *f, pons_node *x);
fuse_unit *fuse_unit_of(const fusion *f, const pons_node *tensor);
void fuse_add_read(fuse_unit *u, pons_node *tensor, bool pointwise, bool whole);
void fuse_walk_output(fuse_walk *w, pons_node *output);
/* Whether the reduction 'x', an output of 'u', is computed per point, over its channels. */
static inline bool fuse_unit_is_inner(const fuse_unit *u, const pons_node *x)
{
    pons_shape s = x->input[0]->shape;

    return u->channels > 0 && s.rank > 0 && x->kind != NODE_MOMENTS &&
           x->attribute.axes == PONS_AXIS(s.rank - 1) && s.extent[s.rank - 1] == u->channels;
}

/* ---- fuse_join.c, fuse_store.c, fuse_split.c: changes to all units --------------------------- */

void fuse_join(fusion *f);
/* Materialise expressions that are worth storing. True: the set has changed. */
bool fuse_store_costly(fusion *f);
/*
 * Make reductions of one kernel keep the same axes before the channels. A small kernel reduces the
 * rest. True: the graph has changed.
 */
bool fuse_split(fusion *f);

/* ---- fuse_lower.c: a unit as a map program --------------------------------------------------- */

/*
 * Lower the outputs of 'u' into 'l'. 'input' has room for every read, 'output' for two per output.
 */
void fuse_lower(const fusion *f, const fuse_unit *u, arena *a, lowering *l, pons_node **input,
                int *input_count, pons_node **output, int *output_count);

#endif
