/*
 * cudnn_plan.c - which engine of cuDNN computes a convolution: the first in the library's own order
 * (mode A, then its list of those that work for all) that keeps the numbers, the bits where they
 * are to be the same, and the bound of its workspace.
 */
#include "cuda/cudnn/cudnn.h"

#include <stdio.h>
#include <string.h>

enum { RESULTS = 32, NOTES = 32, KNOBS = 32, ANY = -1, TENSOR_CORES = -2 };

/* ---- what is known to be wrong --------------------------------------------------------------- */

/* Versions from 'first' until before 'end'; 0 and ANY: all. */
typedef struct erratum {
    int first, end;
    int architecture, kind;
    int engine;                /* ANY: all; TENSOR_CORES: those that use them                     */
    bool low;                  /* only of 16 bits                                                 */
    bool places;               /* only with kernels of more than one place, in 3D                 */
    bool deterministic;        /* only where bits are to be the same                              */
} erratum;

/*
 * 1. Convolutions in 3D of 16 bits give wrong numbers (pytorch/pytorch issue 163539, pull requests
 *    163581 and 166480).
 * 2. So do those of tf32 by tensor cores (pytorch/pytorch pull request 167024).
 * 3. Engine 5 of forward convolutions differs from run to run on sm_86 and does not say so
 *    (pytorch/pytorch pull requests 188318, 189207).
 * 4. Engines 58 and 63 may read memory that is not theirs on sm_120 (pytorch/pytorch pull request
 *    191701).
 */
static const erratum errata[] = {
    { .first = 90800, .end = 91500, .kind = ANY, .engine = ANY, .low = true, .places = true },
    { .first = 91002, .end = 91501, .kind = ANY, .engine = TENSOR_CORES, .places = true },
    { .architecture = 86, .kind = PONS_KERNEL_CONVOLUTION, .engine = 5, .deterministic = true },
    { .architecture = 120, .kind = ANY, .engine = 58 },
    { .architecture = 120, .kind = ANY, .engine = 63 },
};

/* In 3D, with a kernel of several places. */
static bool has_places(const dnn_convolution *c)
{
    const int64_t *w = c->w.shape.extent;

    return !c->flat && w[1] * w[2] * w[3] > 1;
}

static bool concerns(const erratum *e, const cuda_dnn *dnn, const dnn_convolution *c,
                     const dnn_wishes *w, int64_t engine)
{
    return dnn->version >= e->first && (e->end == 0 || dnn->version < e->end)
        && (e->architecture == 0 || e->architecture == w->architecture)
        && (e->kind == ANY || e->kind == (int)c->request->kind) && e->engine == engine
        && (!e->low || c->w.type != PONS_F32) && (!e->places || has_places(c))
        && (!e->deterministic || w->deterministic);
}

static bool is_known(const cuda_dnn *dnn, const dnn_convolution *c, const dnn_wishes *w,
                     int64_t engine)
{
    for (size_t i = 0; i < sizeof errata / sizeof *errata; i++)
        if (concerns(&errata[i], dnn, c, w, engine))
            return true;
    return false;
}

bool dnn_is_doubtful(const cuda_dnn *dnn, const dnn_convolution *c, const dnn_wishes *w)
{
    return is_known(dnn, c, w, ANY);
}

/* ---- engines --------------------------------------------------------------------------------- */

/*
 * What no engine may do: round operands, sum in fewer bits, or transform, which loses digits (R11).
 */
#define BIT(note) (1u << (note))
static const unsigned never = BIT(DNN_NOTE_DOWN_CONVERT) | BIT(DNN_NOTE_REDUCED_SUMS)
                            | BIT(DNN_NOTE_FFT) | BIT(DNN_NOTE_WINOGRAD);

/* Tensor cores read f32 as tf32. */
static bool keeps_numbers(unsigned notes, const cuda_dnn *dnn, const dnn_convolution *c,
                          const dnn_wishes *w)
{
    unsigned refused = never;

    if (c->w.type == PONS_F32 && (!c->request->tf32 || is_known(dnn, c, w, TENSOR_CORES)))
        refused |= BIT(DNN_NOTE_TENSOR_CORE);
    if (w->deterministic)
        refused |= BIT(DNN_NOTE_NONDETERMINISTIC);
    return (notes & refused) == 0;
}

/* The engine of a choice: its number and its notes, but for those of later versions. */
static bool read_engine(dnn_list *l, dnn_descriptor choice, int64_t *number, unsigned *notes)
{
    const cuda_dnn *dnn = l->dnn;
    dnn_descriptor engine = dnn_add(l, DNN_ENGINE);
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

static bool put_knob(FILE *to, const cuda_dnn *dnn, dnn_descriptor knob, const char *before)
{
    int kind = 0;
    int64_t value = 0, count = 0;

    if (dnn->get(knob, DNN_KNOB_KIND, DNN_TYPE_KNOB, 1, &count, &kind) != 0
        || dnn->get(knob, DNN_KNOB_VALUE, DNN_TYPE_INT64, 1, &count, &value) != 0)
        return false;
    fprintf(to, "%s%d=%lld", before, kind, (long long)value);
    return true;
}

static bool put_name(FILE *to, const cuda_dnn *dnn, dnn_descriptor choice, int64_t engine)
{
    dnn_list knobs = { .dnn = dnn };
    dnn_descriptor knob[KNOBS];
    int64_t count = 0;
    bool good;

    for (int i = 0; i < KNOBS; i++)
        knob[i] = dnn_add(&knobs, DNN_KNOB);
    good = knobs.status == 0 && dnn->get(choice, DNN_CHOICE_KNOBS, DNN_TYPE_DESCRIPTOR, KNOBS,
                                         &count, knob) == 0 && count <= KNOBS;
    fprintf(to, "engine %lld", (long long)engine);
    for (int i = 0; good && i < count; i++)
        good = put_knob(to, dnn, knob[i], i == 0 ? ", knobs " : " ");
    dnn_list_free(&knobs);
    return good;
}

/* By which it is found again among what this version proposes; false: it has none. */
static bool name_candidate(dnn_candidate *a, const cuda_dnn *dnn, dnn_descriptor choice)
{
    FILE *to = fmemopen(a->name, sizeof a->name - 1, "w");
    bool good = to != NULL && put_name(to, dnn, choice, a->engine);

    if (to != NULL)
        good = fclose(to) == 0 && good;
    return good;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* The plan of a choice, unless it cannot be made or wants too much. */
static bool try_plan(dnn_candidate *a, const cuda_dnn *dnn, const dnn_wishes *w)
{
    dnn_list made = { .dnn = dnn };
    dnn_descriptor plan = dnn_add(&made, DNN_PLAN);
    int64_t size = -1, count = 0;

    if (w->card != NULL)
        dnn_set(&made, plan, DNN_PLAN_CARD, DNN_TYPE_DESCRIPTOR, 1, &w->card);
    else
        dnn_set(&made, plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
    dnn_set(&made, plan, DNN_PLAN_CHOICE, DNN_TYPE_DESCRIPTOR, 1, &a->choice);
    dnn_finish(&made, plan);
    if (made.status == 0
        && dnn->get(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &size) == 0 && size >= 0
        && (uint64_t)size <= w->workspace) {
        a->plan = plan;
        a->workspace = (size_t)size;
        return true;
    }
    dnn_list_free(&made);
    return false;
}

static bool has_name(const dnn_candidates *all, const char *name)
{
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->item[i].name, name) == 0)
            return true;
    return false;
}

/* What is wanted of an engine's choice, besides room. */
static bool is_wanted(const dnn_candidates *all, int most, dnn_candidate *a,
                      const dnn_convolution *c, const dnn_wishes *w)
{
    const cuda_dnn *dnn = all->graph.dnn;
    dnn_list engine = { .dnn = dnn };
    unsigned notes;
    bool wanted = read_engine(&engine, a->choice, &a->engine, &notes)
               && keeps_numbers(notes, dnn, c, w) && !is_known(dnn, c, w, a->engine);

    dnn_list_free(&engine);
    if (!wanted || (w->name == NULL && most == 1))
        return wanted;
    return name_candidate(a, dnn, a->choice) && !has_name(all, a->name)
        && (w->name == NULL || strcmp(a->name, w->name) == 0);
}

/* Those of the choices that fit; they stay with their plans. */
static void try_choices(dnn_candidates *all, int most, dnn_list *found, int first, int64_t count,
                        const dnn_convolution *c, const dnn_wishes *w)
{
    for (int i = 0; i < count && all->count < most; i++) {
        dnn_candidate *a = &all->item[all->count];

        *a = (dnn_candidate){ .choice = found->item[first + i] };
        if (!is_wanted(all, most, a, c, w) || !try_plan(a, found->dnn, w))
            continue;
        found->item[first + i] = NULL;
        all->count++;
    }
}

static void ask(dnn_candidates *all, int most, dnn_descriptor graph, int mode,
                const dnn_convolution *c, const dnn_wishes *w)
{
    dnn_list found = { .dnn = all->graph.dnn };
    dnn_descriptor heuristic = dnn_add(&found, DNN_HEURISTIC);
    dnn_descriptor choice[RESULTS];
    int first = found.count;
    int64_t count = 0;

    dnn_set(&found, heuristic, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
    dnn_set(&found, heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC_MODE, 1, &mode);
    if (w->card != NULL)
        dnn_set(&found, heuristic, DNN_HEURISTIC_CARD, DNN_TYPE_DESCRIPTOR, 1, &w->card);
    dnn_finish(&found, heuristic);
    for (int i = 0; i < RESULTS; i++)
        choice[i] = dnn_add(&found, DNN_CHOICE);
    if (found.status == 0
        && found.dnn->get(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, RESULTS, &count,
                          choice) == 0)
        try_choices(all, most, &found, first, count < RESULTS ? count : RESULTS, c, w);
    dnn_list_free(&found);
}

pons_status dnn_candidates_make(const cuda_dnn *dnn, const dnn_convolution *c, const dnn_wishes *w,
                                int most, dnn_candidates *out, pons_error *err)
{
    static const int modes[] = { DNN_MODE_A, DNN_MODE_FALLBACK };
    char why[160] = "";
    dnn_descriptor graph;

    out->graph = (dnn_list){ .dnn = dnn };
    out->count = 0;
    graph = dnn_graph(&out->graph, c, dnn->handle);
    if (out->graph.status / 1000 == DNN_NOT_SUPPORTED)
        return PONS_OK;
    if (out->graph.status != 0) {
        dnn->last_error(why, sizeof why);
        pons_fail(err, PONS_DEVICE, "cannot plan '%s': cuDNN ended %s with %d (%s)",
                  c->request->name, out->graph.failed, out->graph.status, why);
        dnn_list_free(&out->graph);
        return PONS_DEVICE;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes && out->count < most; i++)
        ask(out, most, graph, modes[i], c, w);
    return PONS_OK;
}

void dnn_candidates_take(dnn_candidates *all, int i, dnn_plan *out)
{
    const cuda_dnn *dnn = all->graph.dnn;

    *out = (dnn_plan){ .list = all->graph };
    for (int k = 0; k < all->count; k++) {
        dnn_candidate *a = &all->item[k];
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

pons_status dnn_plan_make(const cuda_dnn *dnn, const dnn_convolution *c, const dnn_wishes *w,
                          dnn_plan *out, pons_error *err)
{
    dnn_candidates first;
    pons_status status = dnn_candidates_make(dnn, c, w, 1, &first, err);

    dnn_candidates_take(&first, 0, out);
    return status;
}

void dnn_plan_free(dnn_plan *p) { dnn_list_free(&p->list); }
