/*
 * network_levels.c - sort the products and the parameters of a graph by the extent of results.
 *
 * A parameter reaches its operation through nodes that only reshape or widen it. It counts for the
 * level of the first node that also depends on the image.
 */
#include "report/page/network_levels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/table_file.h"
#include "base/text/text.h"
#include "graph/ir/build.h"
#include "graph/ir/node.h"
#include "graph/ir/shape.h"
#include "replica/programs.h"

enum { COLUMNS = 7 };

static const char header[] = "depth,height,width,products,channels,parameters,bytes\n";

/* ---- find ------------------------------------------------------------------------------------ */

static const int64_t point[3] = { 1, 1, 1 };

/* D, H, W of [N, D, H, W, C]; other ranks have one place. */
static const int64_t *extent_of(const pons_node *x)
{
    return x->shape.rank == 5 ? &x->shape.extent[1] : point;
}

static network_level *level_of(network_levels *l, const int64_t extent[3])
{
    for (int i = 0; i < l->count; i++)
        if (memcmp(l->level[i].extent, extent, sizeof l->level[i].extent) == 0)
            return &l->level[i];
    memcpy(l->level[l->count].extent, extent, sizeof l->level[l->count].extent);
    return &l->level[l->count++];
}

static bool is_product(const pons_node *x)
{
    return x->kind == NODE_CONVOLUTION || x->kind == NODE_CONVOLUTION_INPUT_GRADIENT
           || x->kind == NODE_MATMUL;
}

static void add_product(network_level *l, const pons_node *x, size_t element)
{
    int64_t channels = x->shape.extent[x->shape.rank - 1];

    l->products++;
    l->channels = channels > l->channels ? channels : l->channels;
    l->bytes += (double)shape_count(x->shape) * (double)element;
}

/* The nodes that depend on an input, and the parameters behind those that do not. */
typedef struct dependence {
    bool *varies;
    const pons_node **parameter; /* NULL: none, or several levels have counted it                 */
} dependence;

/* Count the parameters that meet the image in node 'x', each once. */
static void add_parameters(network_level *l, const pons_node *x, const dependence *d,
                           const pons_node **counted)
{
    for (int i = 0; i < x->input_count; i++) {
        const pons_node *p = d->parameter[x->input[i]->number];

        if (p == NULL || counted[p->number] != NULL)
            continue;
        counted[p->number] = p;
        l->parameters += shape_count(p->shape);
    }
}

static void follow(const pons_node *x, dependence *d)
{
    d->varies[x->number] = x->kind == NODE_INPUT || x->kind == NODE_RESIDENT
                           || x->kind == NODE_PATCH;
    d->parameter[x->number] = x->kind == NODE_PARAMETER ? x : NULL;
    for (int i = 0; i < x->input_count; i++) {
        int from = x->input[i]->number;

        d->varies[x->number] = d->varies[x->number] || d->varies[from];
        if (d->parameter[from] != NULL && !d->varies[x->number])
            d->parameter[x->number] = d->parameter[from];
    }
    if (d->varies[x->number])
        d->parameter[x->number] = NULL;
}

static int compare_levels(const void *a, const void *b)
{
    const network_level *x = a, *y = b;
    int64_t p = x->extent[0] * x->extent[1] * x->extent[2];
    int64_t q = y->extent[0] * y->extent[1] * y->extent[2];

    return (p < q) - (p > q);
}

/* Levels without a product or a parameter are steps between two others. */
static void drop_empty(network_levels *l)
{
    int kept = 0;

    for (int i = 0; i < l->count; i++)
        if (l->level[i].products > 0 || l->level[i].parameters > 0)
            l->level[kept++] = l->level[i];
    l->count = kept;
    qsort(l->level, (size_t)kept, sizeof *l->level, compare_levels);
}

static void measure(const pons_graph *g, size_t element, arena *memory, network_levels *out)
{
    size_t count = (size_t)g->node_count;
    dependence d = { arena_alloc(memory, count * sizeof *d.varies),
                     arena_alloc(memory, count * sizeof *d.parameter) };
    const pons_node **counted = arena_alloc(memory, count * sizeof *counted);

    out->level = arena_alloc(memory, count * sizeof *out->level);
    for (int i = 0; i < g->node_count; i++) {
        const pons_node *x = g->node[i];

        follow(x, &d);
        if (!d.varies[i] || x->scope != SCOPE_MODEL || x->shape.rank < 1)
            continue;
        network_level *l = level_of(out, extent_of(x));

        if (is_product(x))
            add_product(l, x, element);
        add_parameters(l, x, &d, counted);
    }
    drop_empty(out);
}

pons_status network_levels_find(const experiment *e, arena *memory, network_levels *out,
                                pons_error *err)
{
    pons_graph *g = NULL;
    pons_node *loss = NULL;

    *out = (network_levels){ .count = 0 };
    if (programs_graph_training(e, experiment_device_extracts(e), &g, &loss, err) != PONS_OK)
        return err->status;
    measure(g, e->precision == PRECISION_BF16 || e->precision == PRECISION_FP16 ? 2 : 4, memory,
            out);
    graph_free(g);
    return PONS_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static char *table_path(arena *memory, const char *run)
{
    return arena_format(memory, "%s/network.csv", run);
}

static pons_status write_table(const network_levels *l, const char *path, pons_error *err)
{
    safe_file f;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    f.unsynced = true;
    fputs(header, f.file);
    for (int i = 0; i < l->count; i++) {
        const network_level *x = &l->level[i];

        fprintf(f.file, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%" PRId64 ",%" PRId64 ",%.0f\n",
                x->extent[0], x->extent[1], x->extent[2], x->products, x->channels, x->parameters,
                x->bytes);
    }
    return safe_file_commit(&f, err);
}

pons_status network_levels_write(const experiment *e, const char *run, pons_error *err)
{
    arena *memory = arena_new();
    network_levels l;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the levels of the network");
    if (network_levels_find(e, memory, &l, err) == PONS_OK)
        write_table(&l, table_path(memory, run), err);
    arena_free(memory);
    return err->status;
}

static bool read_row(const csv_row *row, network_level *out)
{
    int64_t value[COLUMNS];

    for (int i = 0; i < COLUMNS; i++)
        if (!text_integer(row->cell[i], &value[i]))
            return false;
    *out = (network_level){ { value[0], value[1], value[2] }, (int)value[3], value[4], value[5],
                            (double)value[6] };
    return true;
}

void network_levels_read(arena *memory, const char *run, network_levels *out)
{
    const char *path = table_path(memory, run);
    pons_error ignored = PONS_ERROR_INIT;
    table_file t;

    *out = (network_levels){ .count = 0 };
    if (access(path, F_OK) != 0 || table_file_read(memory, path, &t, &ignored) != PONS_OK
        || t.column_count != COLUMNS)
        return;
    out->level = arena_alloc(memory, (size_t)t.row_count * sizeof *out->level);
    while (out->count < t.row_count && read_row(&t.row[out->count], &out->level[out->count]))
        out->count++;
}
