/*
 * network_boxes.c - sort the nodes of a graph into levels and modules, and name them.
 *
 * A node belongs to the level of its first input that depends on the image, unless its kind sets an
 * extent. Its module is that of the parameters it reads, else the common part of its inputs'.
 */
#include "report/sinks/network_boxes.h"

#include <inttypes.h>
#include <string.h>

#include "data/loader/loader.h"
#include "graph/ir/build.h"
#include "replica/programs.h"

/* The place of a node among the boxes. */
typedef struct seat {
    bool needed, varies;      /* varies: it depends on an input of the network                    */
    const pons_node *leaf;    /* of a node that does not vary: the parameter behind it, or NULL   */
    const int64_t *extent;    /* that of the level                                                */
    bool up;                  /* behind an operation that has enlarged a smaller extent           */
    const char *module;       /* NULL: the level itself                                           */
    int number;               /* in the network; -1: it is left out                               */
} seat;

/* A module of a level; the path has slashes where it parts from others: "model.0/conv". */
typedef struct module_path {
    const seat *level;        /* a node of it                                                     */
    const char *module;
    char *path;
} module_path;

typedef struct boxes {
    arena *memory;
    const pons_graph *graph;
    seat *seat;               /* [node_count]                                                     */
    bool merged;              /* a module is one node                                             */
    int path_count, node_count;
    module_path *path;
    size_t slots;             /* of the table of names, more than there are nodes                 */
    const pons_network_node **named; /* [slots] by hash; NULL: free                               */
    pons_network_node *node;
    int *room;                /* of each node's inputs                                            */
} boxes;

/* ---- levels and modules ---------------------------------------------------------------------- */

static bool is_source(const pons_node *x)
{
    return x->kind == NODE_INPUT || x->kind == NODE_RESIDENT || x->kind == NODE_PATCH
           || x->kind == NODE_UNIFORM || x->kind == NODE_NORMAL;
}

static bool is_leaf(const pons_node *x)
{
    return x->kind == NODE_PARAMETER || x->kind == NODE_STATE;
}

/*
 * Whether the extent of the result, not of an input, is that of the node's level. Crops and pads
 * are steps between two operations of a level, such as the shifted windows of a transformer.
 */
static bool sets_extent(const pons_node *x)
{
    return x->shape.rank == 5
           && (is_source(x) || x->kind == NODE_CONVOLUTION
               || x->kind == NODE_CONVOLUTION_INPUT_GRADIENT || x->kind == NODE_MATMUL
               || x->kind == NODE_POOL || x->kind == NODE_RESIZE);
}

static int64_t voxels_of(const seat *s)
{
    return s->extent[0] * s->extent[1] * s->extent[2];
}

static bool same_extent(const seat *a, const seat *b)
{
    return memcmp(a->extent, b->extent, 3 * sizeof *a->extent) == 0;
}

static bool same_level(const seat *a, const seat *b)
{
    return same_extent(a, b) && a->up == b->up;
}

/* Set whether the level is one on the way up, by the inputs; 'from' is the first that varies. */
static void find_way(const boxes *b, const pons_node *x, const seat *from, seat *s)
{
    if (from == NULL)
        return;
    s->up = sets_extent(x) && voxels_of(from) < voxels_of(s);
    for (int i = 0; i < x->input_count; i++) {
        const seat *input = &b->seat[x->input[i]->number];
        s->up = s->up || (input->varies && input->up && same_extent(input, s));
    }
}

/* "model.0.conv" of "model.0.conv.weight". */
static const char *module_of(boxes *b, const pons_node *leaf)
{
    const char *point = strrchr(leaf->name, '.');

    return point != NULL ? arena_format(b->memory, "%.*s", (int)(point - leaf->name), leaf->name)
                         : leaf->name;
}

/* The size of the parts that two names have in common: "model.0" of the next example. */
static int common_size(const char *x, const char *y)
{
    int whole = 0, i = 0;

    for (; x[i] == y[i] && x[i] != '\0'; i++)
        if (x[i] == '.')
            whole = i;
    if ((x[i] == '\0' || x[i] == '.') && (y[i] == '\0' || y[i] == '.'))
        whole = i;
    return whole;
}

/* "model.0" of "model.0.conv" and "model.0.residual"; NULL: they have nothing in common. */
static const char *common_module(boxes *b, const char *x, const char *y)
{
    int whole;

    if (x == y || x == NULL || y == NULL)
        return x == y ? x : NULL;
    whole = common_size(x, y);
    return whole > 0 ? arena_format(b->memory, "%.*s", whole, x) : NULL;
}

/* The module of a node whose first varying input is 'from', NULL without one. */
static const char *find_module(boxes *b, const pons_node *x, const seat *from)
{
    const seat *s = b->seat;
    const char *module = from != NULL ? from->module : NULL;

    for (int i = 0; i < x->input_count; i++)
        if (s[x->input[i]->number].leaf != NULL)
            return module_of(b, s[x->input[i]->number].leaf);
    if (from == NULL || !same_level(from, &s[x->number]))
        return NULL;
    for (int i = 0; i < x->input_count; i++) {
        const seat *other = &s[x->input[i]->number];
        module = other->varies ? common_module(b, module, other->module) : module;
    }
    return module;
}

/* Find the level and the module of a node whose inputs have theirs. */
static void find_seat(boxes *b, const pons_node *x)
{
    static const int64_t point[3] = { 1, 1, 1 };
    seat *s = &b->seat[x->number];
    const seat *from = NULL;

    s->number = -1;
    s->leaf = is_leaf(x) ? x : NULL;
    for (int i = x->input_count - 1; i >= 0; i--) {
        const seat *input = &b->seat[x->input[i]->number];
        from = input->varies ? input : from;
        s->leaf = input->leaf != NULL ? input->leaf : s->leaf;
    }
    s->varies = from != NULL || is_source(x);
    if (!s->varies)
        return;
    s->leaf = NULL;
    s->extent = sets_extent(x) ? &x->shape.extent[1] : from != NULL ? from->extent : point;
    find_way(b, x, from, s);
    s->module = find_module(b, x, from);
}

static void find_seats(boxes *b, const pons_node *output)
{
    b->seat[output->number].needed = true;
    for (int i = output->number; i >= 0; i--)
        for (int j = 0; b->seat[i].needed && j < b->graph->node[i]->input_count; j++)
            b->seat[b->graph->node[i]->input[j]->number].needed = true;
    for (int i = 0; i <= output->number; i++)
        if (b->seat[i].needed)
            find_seat(b, b->graph->node[i]);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const char *find_path(const boxes *b, const seat *level, const char *module)
{
    for (int i = 0; i < b->path_count; i++)
        if (same_level(b->path[i].level, level) && strcmp(b->path[i].module, module) == 0)
            return b->path[i].path;
    return NULL;
}

static void note_module(boxes *b, const seat *level, const char *module)
{
    if (module != NULL && find_path(b, level, module) == NULL)
        b->path[b->path_count++] = (module_path){ level, module,
                                                  arena_string(b->memory, module) };
}

/* Boxes within boxes keep the names short: a viewer cuts long ones. */
static void break_paths(boxes *b)
{
    for (int i = 0; i < b->path_count; i++)
        for (int j = 0; j < b->path_count; j++) {
            const module_path *p = &b->path[i], *q = &b->path[j];
            int common = same_level(p->level, q->level) ? common_size(p->module, q->module) : 0;

            if (common > 0 && p->path[common] != '\0')
                p->path[common] = '/';
        }
}

static void find_paths(boxes *b)
{
    for (int i = 0; i < b->graph->node_count; i++) {
        const pons_node *x = b->graph->node[i];
        const seat *s = &b->seat[i];

        if (!s->needed || !s->varies)
            continue;
        note_module(b, s, s->module);
        for (int j = 0; j < x->input_count; j++)
            if (b->seat[x->input[j]->number].leaf != NULL)
                note_module(b, s, module_of(b, b->seat[x->input[j]->number].leaf));
    }
    break_paths(b);
}

/* "up_48x48x48/model.2/conv"; of 'module' NULL the level alone. */
static const char *path_of(boxes *b, const seat *s, const char *module)
{
    char *path = arena_format(b->memory, "%s%" PRId64 "x%" PRId64 "x%" PRId64 "%s%s",
                              s->up ? "up_" : "", s->extent[0], s->extent[1], s->extent[2],
                              module != NULL ? "/" : "",
                              module != NULL ? find_path(b, s, module) : "");

    for (char *c = path; *c != '\0'; c++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/", *c)
            == NULL)
            *c = '_';
    return path;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The node that has the name of 'n', which takes a free slot if there is none (FNV-1a). */
static const pons_network_node *find_named(boxes *b, const pons_network_node *n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t slot;

    for (const char *c = n->name; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    slot = (size_t)(hash % b->slots);
    while (b->named[slot] != NULL && strcmp(b->named[slot]->name, n->name) != 0)
        slot = (slot + 1) % b->slots;
    if (b->named[slot] == NULL)
        b->named[slot] = n;
    return b->named[slot];
}

/* A node 'name', or with 'again' the node that has this name, else 'name_1', 'name_2' ... */
static int add_node(boxes *b, const char *name, bool again)
{
    pons_network_node *n = &b->node[b->node_count];
    const char *stem = name;

    n->name = name;
    for (int i = 1; ; i++) {
        const pons_network_node *found = find_named(b, n);

        if (found == n)
            b->node_count++;
        if (found == n || again)
            return (int)(found - b->node);
        n->name = arena_format(b->memory, "%s_%d", stem, i);
    }
}

/* A convolution's gradient by its input is a transposed convolution where it is in a network. */
static const char *kind_of(const pons_node *x)
{
    return x->kind == NODE_CONVOLUTION_INPUT_GRADIENT ? "transposed_convolution"
                                                      : node_kinds[x->kind].name;
}

static void place_operation(boxes *b, const pons_node *x)
{
    seat *s = &b->seat[x->number];
    const char *path = path_of(b, s, s->module), *kind = kind_of(x);
    bool merged = b->merged && s->module != NULL;
    pons_network_node *n;

    s->number = add_node(b, merged ? path : arena_format(b->memory, "%s/%s", path, kind), merged);
    n = &b->node[s->number];
    n->operation = merged ? "module" : kind;
    n->shape = x->shape;
    b->room[s->number] += x->input_count;
}

/* The parameter stands beside the first operation that reads it. */
static void place_leaf(boxes *b, const pons_node *leaf, const pons_node *reader)
{
    const char *point = strrchr(leaf->name, '.'), *path;
    seat *s = &b->seat[leaf->number];

    if (s->number >= 0 || b->merged)
        return;
    path = path_of(b, &b->seat[reader->number], module_of(b, leaf));
    s->number = add_node(b, arena_format(b->memory, "%s/%s", path,
                                         point != NULL ? point + 1 : leaf->name), false);
    b->node[s->number].operation = node_kinds[leaf->kind].name;
    b->node[s->number].shape = leaf->shape;
}

static void place_nodes(boxes *b)
{
    for (int i = 0; i < b->graph->node_count; i++) {
        const pons_node *x = b->graph->node[i];

        if (!b->seat[i].needed || !b->seat[i].varies)
            continue;
        for (int j = 0; j < x->input_count; j++)
            if (b->seat[x->input[j]->number].leaf != NULL)
                place_leaf(b, b->seat[x->input[j]->number].leaf, x);
        place_operation(b, x);
    }
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void add_edge(pons_network_node *to, int *input, int from)
{
    for (int i = 0; i < to->input_count; i++)
        if (input[i] == from)
            return;
    input[to->input_count++] = from;
}

static void join_nodes(boxes *b)
{
    int **input = arena_alloc(b->memory, (size_t)b->node_count * sizeof *input);

    for (int i = 0; i < b->node_count; i++) {
        input[i] = arena_alloc(b->memory, (size_t)b->room[i] * sizeof **input);
        b->node[i].input = input[i];
    }
    for (int i = 0; i < b->graph->node_count; i++) {
        const pons_node *x = b->graph->node[i];
        int number = b->seat[i].number;

        for (int j = 0; number >= 0 && b->seat[i].varies && j < x->input_count; j++) {
            const seat *from = &b->seat[x->input[j]->number];
            int other = from->leaf != NULL ? b->seat[from->leaf->number].number : from->number;
            if (other >= 0 && other != number)
                add_edge(&b->node[number], input[number], other);
        }
    }
}

/* ---- the network ----------------------------------------------------------------------------- */

static size_t input_total(const pons_graph *g)
{
    size_t total = 0;

    for (int i = 0; i < g->node_count; i++)
        total += (size_t)g->node[i]->input_count;
    return total;
}

static void make(const pons_node *output, bool merged, arena *memory, pons_network *out)
{
    size_t count = (size_t)output->graph->node_count;
    boxes b = { .memory = memory, .graph = output->graph, .merged = merged };

    b.seat = arena_alloc(memory, count * sizeof *b.seat);
    b.path = arena_alloc(memory, (count + input_total(b.graph)) * sizeof *b.path);
    b.node = arena_alloc(memory, count * sizeof *b.node);
    b.room = arena_alloc(memory, count * sizeof *b.room);
    b.slots = 2 * count + 1;
    b.named = arena_alloc(memory, b.slots * sizeof *b.named);
    find_seats(&b, output);
    find_paths(&b);
    place_nodes(&b);
    join_nodes(&b);
    *out = (pons_network){ b.node_count, b.node };
}

void network_boxes_of(const pons_node *output, int limit, arena *memory, pons_network *out)
{
    make(output, false, memory, out);
    if (out->count > limit)
        make(output, true, memory, out);
    if (out->count > limit)
        out->count = 0;
}

pons_status network_boxes_make(const experiment *e, arena *memory, pons_network *out,
                               pons_error *err)
{
    int dhw[3], flat;
    pons_graph *g = NULL;
    pons_node *logits = NULL;

    loader_patch_shape(e->patch, dhw, &flat);
    const pons_shape shape = { 5, { e->sections.train.batch * e->sections.patch.per_case, dhw[0],
                                    dhw[1], dhw[2], e->task.channels } };

    *out = (pons_network){ .count = 0 };
    if (programs_graph_evaluation(e, shape, &g, &logits, err) != PONS_OK)
        return err->status;
    network_boxes_of(logits, NETWORK_BOXES_MAX, memory, out);
    graph_free(g);
    return PONS_OK;
}
