/*
 * cudnn_choose.c - autotune the engine of a convolution ([device] autotune): the engines that the
 * library proposes and that satisfy the constraints are timed. The chosen engine and its knobs have
 * a name, which finds them again without timing.
 */
#include "cuda/cuda.h"

#include <stdio.h>

/* ---- keys ------------------------------------------------------------------------------------ */

static void put_axes(FILE *to, const char *name, const int number[3])
{
    autotune_put_numbers(to, name, 3, (const int64_t[]){ number[0], number[1], number[2] });
}

/*
 * Everything that an engine's time depends on, except for GPU and library. y follows from the rest.
 */
static bool write_key(const cudnn_convolution *c, char *key, size_t size)
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
    autotune_put_numbers(to, "x", 5, c->x.shape.extent);
    autotune_put_numbers(to, "w", 5, c->w.shape.extent);
    put_axes(to, "stride", v->stride);
    put_axes(to, "dilation", v->dilation);
    put_axes(to, "low", v->pad_low);
    put_axes(to, "high", v->pad_high);
    fprintf(to, " groups %d", v->groups);
    return fclose(to) == 0;
}

/* ---- timing ---------------------------------------------------------------------------------- */

_Static_assert((int)DNN_NAME_SIZE <= (int)AUTOTUNE_NAME_SIZE,
               "an engine's name is too long to be kept");
_Static_assert((int)DNN_CANDIDATES <= (int)AUTOTUNE_CANDIDATES, "more engines than can be tried");

typedef struct engines {
    const cudnn_library *dnn;
    cudnn_candidates all;
    cudnn_list described;
    cudnn_descriptor pack;
} engines;

static int begin(void *context, void *const *operand, void *workspace)
{
    engines *e = context;

    e->pack = cudnn_variant_pack(&e->described, operand, workspace);
    return e->described.status;
}

static int run(void *context, int i, void *const *operand, void *workspace)
{
    const engines *e = context;

    return e->dnn->execute(e->dnn->handle, e->all.item[i].plan, e->pack);
}

static pons_status find_fastest(cuda_device *d, const cudnn_convolution *c, engines *e, int *best,
                                double *seconds, pons_error *err)
{
    autotune_trial t = {
        .device = d, .request = c->request->name, .kind = "engines", .count = e->all.count,
        .operand = { c->x, c->w, c->y }, .begin = begin, .run = run, .context = e
    };

    for (int i = 0; i < t.count; i++)
        t.workspace[i] = e->all.item[i].workspace;
    autotune_run(&t, best, seconds, err);
    cudnn_list_free(&e->described);
    return err->status;
}

/* ---- choose ---------------------------------------------------------------------------------- */

/* Time the candidates and store the fastest; the library's first if none of them runs. */
static pons_status autotune_engine(cuda_device *d, const cudnn_convolution *c,
                                   const cudnn_constraints *w,
                                   const char *key, cudnn_plan *out, pons_error *err)
{
    engines e = { .dnn = &d->dnn, .described = { .dnn = &d->dnn } };
    double seconds;
    int best = -1;

    if (cudnn_candidates_make(&d->dnn, c, w, DNN_CANDIDATES, &e.all, err) == PONS_OK
        && e.all.count > 0 && find_fastest(d, c, &e, &best, &seconds, err) == PONS_OK)
        autotune_keep(d, key, best >= 0 ? e.all.item[best].name : "", seconds, err);
    cudnn_candidates_take(&e.all, err->status != PONS_OK ? -1 : best >= 0 ? best : 0, out);
    return err->status;
}

pons_status cudnn_choose_plan(cuda_device *d, const cudnn_convolution *c,
                              const cudnn_constraints *constraints,
                              cudnn_plan *out, pons_error *err)
{
    char key[PONS_AUTOTUNE_ENTRY_SIZE], name[AUTOTUNE_NAME_SIZE];
    cudnn_constraints chosen = *constraints;
    autotune_found found;

    if (d->autotune == NULL || !write_key(c, key, sizeof key))
        return cudnn_plan_make(&d->dnn, c, constraints, out, err);
    found = autotune_find(d, key, name);
    if (found == AUTOTUNE_FOUND) {
        chosen.name = name;
        if (cudnn_plan_make(&d->dnn, c, &chosen, out, err) != PONS_OK || out->plan != NULL)
            return err->status;
        cudnn_plan_free(out);
    }
    if (d->autotune->keep != NULL && found != AUTOTUNE_FOUND_UNTIMED)
        return autotune_engine(d, c, constraints, key, out, err);
    return cudnn_plan_make(&d->dnn, c, constraints, out, err);
}
