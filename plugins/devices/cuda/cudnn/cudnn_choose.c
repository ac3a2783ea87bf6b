/*
 * cudnn_choose.c - the engine for a convolution by timing ([device] autotune): those that the
 * library proposes and that fit are tried. Engines and knobs that are chosen have a name, by which
 * they are found again without timing.
 */
#include "cuda/cuda.h"

#include <stdio.h>

/* ---- keys ------------------------------------------------------------------------------------ */

static void put_places(FILE *to, const char *name, const int number[3])
{
    cuda_put_numbers(to, name, 3, (const int64_t[]){ number[0], number[1], number[2] });
}

/* All that an engine's time may depend on, but for card and library. y follows from the rest. */
static bool write_key(const dnn_convolution *c, char *key, size_t size)
{
    static const char *const kinds[PONS_KERNEL_KIND_COUNT] = {
        [PONS_KERNEL_CONVOLUTION] = "convolution",
        [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = "input gradient",
        [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = "weight gradient",
    };
    const pons_convolution *v = c->request->attributes;
    const char *type = c->x.type == PONS_F16 ? "fp16" : c->x.type == PONS_BF16 ? "bf16"
                     : c->request->tf32 ? "tf32" : "fp32";
    FILE *to = fmemopen(key, size - 1, "w");

    key[size - 1] = '\0';
    if (to == NULL)
        return false;
    fprintf(to, "%s %s", kinds[c->request->kind], type);
    cuda_put_numbers(to, "x", 5, c->x.shape.extent);
    cuda_put_numbers(to, "w", 5, c->w.shape.extent);
    put_places(to, "stride", v->stride);
    put_places(to, "dilation", v->dilation);
    put_places(to, "low", v->pad_low);
    put_places(to, "high", v->pad_high);
    fprintf(to, " groups %d", v->groups);
    return fclose(to) == 0;
}

/* ---- try ------------------------------------------------------------------------------------- */

_Static_assert((int)DNN_NAME_SIZE <= (int)CUDA_NAME_SIZE,
               "an engine's name is too long to be kept");
_Static_assert((int)DNN_CANDIDATES <= (int)CUDA_CANDIDATES, "more engines than can be tried");

typedef struct engines {
    const cuda_dnn *dnn;
    dnn_candidates all;
    dnn_list described;
    dnn_descriptor pack;
} engines;

static int begin(void *context, void *const *operand, void *workspace)
{
    engines *e = context;

    e->pack = dnn_pack(&e->described, operand, workspace);
    return e->described.status;
}

static int run(void *context, int i, void *const *operand, void *workspace)
{
    const engines *e = context;

    return e->dnn->execute(e->dnn->handle, e->all.item[i].plan, e->pack);
}

static pons_status find_fastest(cuda_device *d, const dnn_convolution *c, engines *e, int *best,
                                double *seconds, pons_error *err)
{
    cuda_trial t = {
        .device = d, .request = c->request->name, .kind = "engines", .count = e->all.count,
        .operand = { c->x, c->w, c->y }, .begin = begin, .run = run, .context = e
    };

    for (int i = 0; i < t.count; i++)
        t.workspace[i] = e->all.item[i].workspace;
    cuda_try(&t, best, seconds, err);
    dnn_list_free(&e->described);
    return err->status;
}

/* ---- choose ---------------------------------------------------------------------------------- */

/* Time those that fit, and keep the fastest; the library's first where none of them runs. */
static pons_status choose(cuda_device *d, const dnn_convolution *c, const dnn_wishes *w,
                          const char *key, dnn_plan *out, pons_error *err)
{
    engines e = { .dnn = &d->dnn, .described = { .dnn = &d->dnn } };
    double seconds;
    int best = -1;

    if (dnn_candidates_make(&d->dnn, c, w, DNN_CANDIDATES, &e.all, err) == PONS_OK
        && e.all.count > 0 && find_fastest(d, c, &e, &best, &seconds, err) == PONS_OK)
        cuda_keep_choice(d, key, best >= 0 ? e.all.item[best].name : "", seconds, err);
    dnn_candidates_take(&e.all, err->status != PONS_OK ? -1 : best >= 0 ? best : 0, out);
    return err->status;
}

pons_status cuda_choose_plan(cuda_device *d, const dnn_convolution *c, const dnn_wishes *wishes,
                             dnn_plan *out, pons_error *err)
{
    char key[PONS_AUTOTUNE_ENTRY_SIZE], name[CUDA_NAME_SIZE];
    dnn_wishes chosen = *wishes;
    cuda_found found;

    if (d->tuning == NULL || !write_key(c, key, sizeof key))
        return dnn_plan_make(&d->dnn, c, wishes, out, err);
    found = cuda_find_choice(d, key, name);
    if (found == CUDA_FOUND) {
        chosen.name = name;
        if (dnn_plan_make(&d->dnn, c, &chosen, out, err) != PONS_OK || out->plan != NULL)
            return err->status;
        dnn_plan_free(out);
    }
    if (d->tuning->keep != NULL && found != CUDA_FOUND_UNTIMED)
        return choose(d, c, wishes, key, out, err);
    return dnn_plan_make(&d->dnn, c, wishes, out, err);
}
