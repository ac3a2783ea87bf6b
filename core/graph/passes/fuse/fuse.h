/*
 * fuse.h - groups of nodes that become kernels: between the fuse pass and plan.c.
 */
#ifndef CORE_GRAPH_PASSES_FUSE_FUSE_H
#define CORE_GRAPH_PASSES_FUSE_FUSE_H

#include "graph/passes/fuse/lower.h"

/* A tensor that a unit reads. */
typedef struct fuse_read {
    pons_node *tensor;
    bool pointwise;          /* every point reads its own element: may become part of the unit   */
    bool whole;              /* as large as the unit's space                                      */
} fuse_read;

/*
 * A kernel in the making. Its sinks are the nodes that it writes to memory (or reduces); what lies
 * between its reads and its sinks is computed in passing, in every unit that needs it.
 */
typedef struct fuse_unit {
    struct fuse_unit *into;  /* merged into another one                                           */
    bool map;                /* else one node of another kind, sink[0]                            */
    bool backward, begin, random;
    bool again;              /* only makes again what the forward pass had                        */
    pons_shape space;        /* squeezed; with the channels in channel form                       */
    int channels;            /* 0: linear form                                                    */
    int sink_count, read_count, first, last; /* first and last: numbers of sinks                  */
    pons_node **sink;
    fuse_read *read;
    int read_room;
    int visited;
} fuse_unit;

typedef struct fusion {
    pons_graph *g;
    arena *arena;
    bool off;                /* each node its own kernel                                          */
    bool tf32;               /* of requests                                                       */
    int root_count;
    pons_node *const *root;
    bool *live, *sink, *uniform;
    bool *view;              /* a crop that its readers read in the cropped tensor                */
    pons_node **part_of;     /* by number: the concatenation in whose memory the node is written  */
    int *channels;           /* of an expression that is computed in channel form, else 0         */
    bool *narrow, *random;
    fuse_unit **unit_of;     /* by number of the sink, or of the node of another kind             */
    pons_node **second;      /* by number of the moments: their second result                     */
    int *seen;               /* by number: the stamp of the last walk that came by                */
    int unit_count, unit_room;
    fuse_unit **unit;        /* those not merged into others                                      */
    int stamp;
} fusion;

/* Decide sinks and units. */
void fuse_graph(fusion *f);

/* ---- fuse_source.c: what a node is, and where its readers find it ---------------------------- */

/* The node whose memory 'x' lives in: x itself but for reshapes (and stop_gradient). */
pons_node *plan_owner(pons_node *x);
bool fuse_is_expression(const pons_node *x);
bool fuse_is_reduction(const pons_node *x);
/* A reduction that is computed as part of an expression, over its channels. */
bool fuse_is_inner(const fusion *f, const pons_node *x);
/* An expression, such reductions included. */
bool fuse_is_value(const fusion *f, const pons_node *x);
typedef enum fuse_source {
    FUSE_COMPUTED,           /* read from nowhere: numbers that are the same everywhere, iotas    */
    FUSE_INSIDE,             /* an expression that becomes part of its reader                     */
    FUSE_DENSE,              /* in memory, on its own                                             */
    FUSE_VIEW,               /* a crop: in the memory of what is cropped                          */
    FUSE_PARTS               /* a concatenation that what computes its parts has written          */
} fuse_source;

fuse_source fuse_source_of(const fusion *f, const pons_node *x);
/* Of a tensor in memory: FUSE_DENSE, FUSE_VIEW or FUSE_PARTS. */
fuse_source fuse_form_of(const fusion *f, const pons_node *owner);
bool fuse_same_space(pons_shape a, pons_shape b);
/* x [..., 1] beside 'at' [..., C]: x is computed once for each point before the channels. */
bool fuse_is_narrow_beside(pons_shape x, pons_shape at);

/* ---- fuse_place.c: sinks, and crops that are read in place ----------------------------------- */

void fuse_mark_views(fusion *f);
/* Sinks that follow from the graph alone; 'f->sink' may hold more already. */
void fuse_place(fusion *f);

/* ---- fuse_slice.c: concatenations are written by what computes their parts ------------------- */

bool fuse_slices(fusion *f); /* True: the graph has changed.                                      */
/* Whether x is written part by part; such parts are the arguments of x. */
bool fuse_in_parts(const fusion *f, const pons_node *x);
void fuse_mark_parts(fusion *f);
int64_t fuse_part_offset(const pons_node *whole, const pons_node *part); /* in elements           */

/* ---- fuse_unit.c: the unit of one sink ------------------------------------------------------- */

/* Count (or, with 'u', collect) what sinks read; each expression below them is looked at once. */
typedef struct fuse_walk {
    fusion *f;
    int stamp;
    fuse_unit *u;
    int count;
    int *visits;             /* NULL, or by number: one more for each expression that is walked   */
} fuse_walk;

/* The unit of one sink: its space and what it reads. */
void fuse_unit_make(fusion *f, pons_node *x);
fuse_unit *fuse_unit_of(const fusion *f, const pons_node *tensor);
void fuse_add_read(fuse_unit *u, pons_node *tensor, bool pointwise, bool whole);
void fuse_walk_sink(fuse_walk *w, pons_node *sink);
/* Whether the reduction x, a sink of u, is computed for each point, over its channels. */
static inline bool fuse_unit_is_inner(const fuse_unit *u, const pons_node *x)
{
    pons_shape s = x->input[0]->shape;

    return u->channels > 0 && s.rank > 0 && x->kind != NODE_MOMENTS &&
           x->attribute.axes == PONS_AXIS(s.rank - 1) && s.extent[s.rank - 1] == u->channels;
}

/* ---- fuse_join.c, fuse_store.c, fuse_split.c: changes to all units --------------------------- */

void fuse_join(fusion *f);
/* Make sinks of expressions that are worth storing. True: there are new ones. */
bool fuse_store_costly(fusion *f);
/*
 * Reductions of one kernel keep the same axes before the channels; what one of them reduces further
 * is left to a small kernel. True: the graph has changed.
 */
bool fuse_split(fusion *f);

/* ---- fuse_lower.c: a unit as a map program --------------------------------------------------- */

/* Lower the sinks of 'u'; input and output are filled (room for every read, and two per sink). */
void fuse_lower(const fusion *f, const fuse_unit *u, arena *a, lowering *l, pons_node **input,
                int *input_count, pons_node **output, int *output_count);

#endif
