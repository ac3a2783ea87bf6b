/*
 * cudnn_plan.c - select the engine of cuDNN for a convolution. The engines are tried in the
 * library's order (mode A, then its fallback list). The first that keeps the precision, is
 * deterministic if required, and fits the workspace limit is used.
 */
#include "cuda/cudnn/cudnn.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"

enum { RESULTS = 32, NOTES = 32, KNOBS = 32, ANY = -1, TENSOR_CORES = -2 };

/* ---- known bugs ------------------------------------------------------------------------------ */

/* A known bug of versions from 'first' up to but without 'end'. 0 and ANY match everything. */
typedef struct erratum {
    int first, end;
    int architecture, kind;
    int engine;                /* ANY: all; TENSOR_CORES: engines that use tensor cores           */
    bool low;                  /* only with 16-bit types                                          */
    bool several_points;       /* only in 3D with kernels of more than one point                  */
    bool deterministic;        /* only if bits must be reproducible                               */
} erratum;

/*
 * 1. 3D convolutions of 16 bits give wrong results (pytorch/pytorch issue 163539, pull requests
 *    163581 and 166480).
 * 2. 3D convolutions of tf32 on tensor cores give wrong results (pytorch/pytorch pull request
 *    167024).
 * 3. Engine 5 of forward convolutions is not deterministic on sm_86 and does not report it
 *    (pytorch/pytorch pull requests 188318, 189207).
 * 4. Engines 58 and 63 may read out of bounds on sm_120 (pytorch/pytorch pull request 191701).
 */
static const erratum errata[] = {
    { .first = 90800, .end = 91500, .kind = ANY, .engine = ANY, .low = true, .several_points
        = true },
    { .first = 91002, .end = 91501, .kind = ANY, .engine = TENSOR_CORES, .several_points = true },
    { .architecture = 86, .kind = PONS_KERNEL_CONVOLUTION, .engine = 5, .deterministic = true },
    { .architecture = 120, .kind = ANY, .engine = 58 },
    { .architecture = 120, .kind = ANY, .engine = 63 },
};

/* True for 3D with a kernel of several points. */
static bool has_several_points(const cudnn_convolution *c)
{
    const int64_t *w = c->w.shape.extent;

    return !c->flat && w[1] * w[2] * w[3] > 1;
}

static bool erratum_applies(const erratum *e, const cudnn_library *dnn, const cudnn_convolution *c,
                            const cudnn_constraints *w, int64_t engine)
{
    return dnn->version >= e->first && (e->end == 0 || dnn->version < e->end)
        && (e->architecture == 0 || e->architecture == w->architecture)
        && (e->kind == ANY || e->kind == (int)c->request->kind) && e->engine == engine
        && (!e->low || c->w.type != PONS_F32) && (!e->several_points || has_several_points(c))
        && (!e->deterministic || w->deterministic);
}

static bool is_known_bad(const cudnn_library *dnn, const cudnn_convolution *c,
                         const cudnn_constraints *w, int64_t engine)
{
    for (size_t i = 0; i < sizeof errata / sizeof *errata; i++)
        if (erratum_applies(&errata[i], dnn, c, w, engine))
            return true;
    return false;
}

bool cudnn_is_known_bad(const cudnn_library *dnn, const cudnn_convolution *c,
                        const cudnn_constraints *w)
{
    return is_known_bad(dnn, c, w, ANY);
}

/* ---- engines --------------------------------------------------------------------------------- */

/*
 * Properties that no engine may have: rounding operands, sums in fewer bits, or transforms, which
 * lose digits (R11).
 */
#define BIT(note) (1u << (note))
static const unsigned forbidden_notes = BIT(DNN_NOTE_DOWN_CONVERT) | BIT(DNN_NOTE_REDUCED_SUMS)
                            | BIT(DNN_NOTE_FFT) | BIT(DNN_NOTE_WINOGRAD);

/*
 * True if an engine keeps the precision and, if required, the bits. Tensor cores read f32 as tf32.
 */
static bool keeps_precision(unsigned notes, const cudnn_library *dnn, const cudnn_convolution *c,
                            const cudnn_constraints *w)
{
    unsigned refused = forbidden_notes;

    if (c->w.type == PONS_F32 && (!c->request->tf32 || is_known_bad(dnn, c, w, TENSOR_CORES)))
        refused |= BIT(DNN_NOTE_TENSOR_CORE);
    if (w->deterministic)
        refused |= BIT(DNN_NOTE_NONDETERMINISTIC);
    return (notes & refused) == 0;
}

/* Read the engine of a configuration: its index and its notes, without those of later versions. */
static bool read_engine(cudnn_list *l, cudnn_descriptor choice, int64_t *number, unsigned *notes)
{
    const cudnn_library *dnn = l->dnn;
    cudnn_descriptor engine = cudnn_add(l, DNN_ENGINE);
    int note[NOTES];
    int64_t count = 0;

    if (engine == NULL
        || dnn->get(choice, DNN_CHOICE_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine) != 0
        || dnn->get(engine, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, &count, number) != 0
        || dnn->get(engine, DNN_ENGINE_NOTES, DNN_TYPE_NOTE, NOTES, &count, note) != 0)
        return false;
    *notes = 0;
    for (int i = 0; i < count && i < NOTES; i++)
        if (note[i] >= 0 && note[i] < NOTES)
            *notes |= BIT(note[i]);
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool put_knob(FILE *to, const cudnn_library *dnn, cudnn_descriptor knob, const char *before)
{
    int kind = 0;
    int64_t value = 0, count = 0;

    if (dnn->get(knob, DNN_KNOB_KIND, DNN_TYPE_KNOB, 1, &count, &kind) != 0
        || dnn->get(knob, DNN_KNOB_VALUE, DNN_TYPE_INT64, 1, &count, &value) != 0)
        return false;
    fprintf(to, "%s%d=%lld", before, kind, (long long)value);
    return true;
}

static bool put_name(FILE *to, const cudnn_library *dnn, cudnn_descriptor choice, int64_t engine)
{
    cudnn_list knobs = { .dnn = dnn };
    cudnn_descriptor knob[KNOBS];
    int64_t count = 0;
    bool good;

    for (int i = 0; i < KNOBS; i++)
        knob[i] = cudnn_add(&knobs, DNN_KNOB);
    good = knobs.status == 0 && dnn->get(choice, DNN_CHOICE_KNOBS, DNN_TYPE_DESCRIPTOR, KNOBS,
                                         &count, knob) == 0 && count <= KNOBS;
    fprintf(to, "engine %lld", (long long)engine);
    for (int i = 0; good && i < count; i++)
        good = put_knob(to, dnn, knob[i], i == 0 ? ", knobs " : " ");
    cudnn_list_free(&knobs);
    return good;
}

/* The name that finds the configuration again among the proposals of this version; false: none. */
static bool name_candidate(cudnn_candidate *a, const cudnn_library *dnn, cudnn_descriptor choice)
{
    FILE *to = fmemopen(a->name, sizeof a->name - 1, "w");
    bool good = to != NULL && put_name(to, dnn, choice, a->engine);

    if (to != NULL)
        good = fclose(to) == 0 && good;
    return good;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Make the plan of a configuration; false if that fails or its workspace is too large. */
static bool try_plan(cudnn_candidate *a, const cudnn_library *dnn, const cudnn_constraints *w)
{
    cudnn_list made = { .dnn = dnn };
    cudnn_descriptor plan = cudnn_add(&made, DNN_PLAN);
    int64_t size = -1, count = 0;

    if (w->card != NULL)
        cudnn_set(&made, plan, DNN_PLAN_CARD, DNN_TYPE_DESCRIPTOR, 1, &w->card);
    else
        cudnn_set(&made, plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
    cudnn_set(&made, plan, DNN_PLAN_CHOICE, DNN_TYPE_DESCRIPTOR, 1, &a->choice);
    cudnn_finish(&made, plan);
    if (made.status == 0
        && dnn->get(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &size) == 0 && size >= 0
        && (uint64_t)size <= w->workspace) {
        a->plan = plan;
        a->workspace = (size_t)size;
        return true;
    }
    cudnn_list_free(&made);
    return false;
}

static bool has_name(const cudnn_candidates *all, const char *name)
{
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->item[i].name, name) == 0)
            return true;
    return false;
}

/* True if a configuration satisfies the constraints, apart from the workspace. */
static bool is_allowed(const cudnn_candidates *all, int most, cudnn_candidate *a,
                       const cudnn_convolution *c, const cudnn_constraints *w)
{
    const cudnn_library *dnn = all->graph.dnn;
    cudnn_list engine = { .dnn = dnn };
    unsigned notes;
    bool wanted = read_engine(&engine, a->choice, &a->engine, &notes)
               && keeps_precision(notes, dnn, c, w) && !is_known_bad(dnn, c, w, a->engine);

    cudnn_list_free(&engine);
    if (!wanted || (w->name == NULL && most == 1))
        return wanted;
    return name_candidate(a, dnn, a->choice) && !has_name(all, a->name)
        && (w->name == NULL || strcmp(a->name, w->name) == 0);
}

/* Keep the configurations that satisfy the constraints, with their plans. */
static void try_choices(cudnn_candidates *all, int most, cudnn_list *found, int first,
                        int64_t count, const cudnn_convolution *c, const cudnn_constraints *w)
{
    for (int i = 0; i < count && all->count < most; i++) {
        cudnn_candidate *a = &all->item[all->count];

        *a = (cudnn_candidate){ .choice = found->item[first + i] };
        if (!is_allowed(all, most, a, c, w) || !try_plan(a, found->dnn, w))
            continue;
        found->item[first + i] = NULL;
        all->count++;
    }
}

static void query_engines(cudnn_candidates *all, int most, cudnn_descriptor graph, int mode,
                          const cudnn_convolution *c, const cudnn_constraints *w)
{
    cudnn_list found = { .dnn = all->graph.dnn };
    cudnn_descriptor heuristic = cudnn_add(&found, DNN_HEURISTIC);
    cudnn_descriptor choice[RESULTS];
    int first = found.count;
    int64_t count = 0;

    cudnn_set(&found, heuristic, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
    cudnn_set(&found, heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC_MODE, 1, &mode);
    if (w->card != NULL)
        cudnn_set(&found, heuristic, DNN_HEURISTIC_CARD, DNN_TYPE_DESCRIPTOR, 1, &w->card);
    cudnn_finish(&found, heuristic);
    for (int i = 0; i < RESULTS; i++)
        choice[i] = cudnn_add(&found, DNN_CHOICE);
    if (found.status == 0
        && found.dnn->get(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, RESULTS, &count,
                          choice) == 0)
        try_choices(all, most, &found, first, min_i64(count, RESULTS), c, w);
    cudnn_list_free(&found);
}

pons_status cudnn_candidates_make(const cudnn_library *dnn, const cudnn_convolution *c,
                                  const cudnn_constraints *w,
                                  int most, cudnn_candidates *out, pons_error *err)
{
    static const int modes[] = { DNN_MODE_A, DNN_MODE_FALLBACK };
    char why[160] = "";
    cudnn_descriptor graph;

    out->graph = (cudnn_list){ .dnn = dnn };
    out->count = 0;
    graph = cudnn_graph(&out->graph, c, dnn->handle);
    if (out->graph.status / 1000 == DNN_NOT_SUPPORTED)
        return PONS_OK;
    if (out->graph.status != 0) {
        dnn->last_error(why, sizeof why);
        pons_fail(err, PONS_DEVICE, "cannot plan '%s': cuDNN ended %s with %d (%s)",
                  c->request->name, out->graph.failed, out->graph.status, why);
        cudnn_list_free(&out->graph);
        return PONS_DEVICE;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes && out->count < most; i++)
        query_engines(out, most, graph, modes[i], c, w);
    return PONS_OK;
}

void cudnn_candidates_take(cudnn_candidates *all, int i, cudnn_plan *out)
{
    const cudnn_library *dnn = all->graph.dnn;

    *out = (cudnn_plan){ .list = all->graph };
    for (int k = 0; k < all->count; k++) {
        cudnn_candidate *a = &all->item[k];
        if (k == i) {
            out->list.item[out->list.count++] = a->choice;
            out->list.item[out->list.count++] = out->plan = a->plan;
            out->engine = a->engine;
            out->workspace = a->workspace;
        } else {
            dnn->descriptor_free(a->plan);
            dnn->descriptor_free(a->choice);
        }
    }
    all->graph.count = all->count = 0;
}

pons_status cudnn_plan_make(const cudnn_library *dnn, const cudnn_convolution *c,
                            const cudnn_constraints *w, cudnn_plan *out, pons_error *err)
{
    cudnn_candidates first;
    pons_status status = cudnn_candidates_make(dnn, c, w, 1, &first, err);

    cudnn_candidates_take(&first, 0, out);
    return status;
}

void cudnn_plan_free(cudnn_plan *p) { cudnn_list_free(&p->list); }
