/*
 * module_cache.c - the compiled kernels of a device. All requested kernels become one translation
 * unit, which is compiled when the requests are complete or when the first kernel runs.
 * compile_job.c compiles it.
 */
#include "cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list -------------------------------------------------------------------------------- */

static cuda_kernel *find_kernel(const module_cache *l, const char *name)
{
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->kernel[i]->name, name) == 0)
            return l->kernel[i];
    return NULL;
}

static bool cache_grow(module_cache *l)
{
    int room = l->room > 0 ? 2 * l->room : 64;
    cuda_kernel **kernel = l->count < l->room ? l->kernel
                         : realloc(l->kernel, (size_t)room * sizeof *kernel);

    if (kernel == NULL)
        return false;
    l->room = l->count < l->room ? l->room : room;
    l->kernel = kernel;
    return true;
}

cuda_kernel *module_cache_add(module_cache *l, const cuda_launch *launch)
{
    cuda_kernel *k = find_kernel(l, launch->name);

    if (k != NULL)
        return k;
    k = cache_grow(l) ? calloc(1, sizeof *k) : NULL;
    if (k == NULL)
        return NULL;
    snprintf(k->name, sizeof k->name, "%s", launch->name);
    k->text = strdup(launch->body.at);
    if (k->text == NULL) {
        free(k);
        return NULL;
    }
    l->kernel[l->count++] = k;
    return k;
}

void module_cache_write(const module_cache *l, text *t)
{
    text_add(t, "%s", text_preamble);
    for (int i = l->begun; i < l->count; i++)
        text_add(t, "KERNEL %s%s\n", l->kernel[i]->name, l->kernel[i]->text);
}

/* ---- translation units ----------------------------------------------------------------------- */

/* Start a translation unit with all waiting kernels, and reserve a slot for its module. */
static bool begin_job(cuda_device *d)
{
    module_cache *l = &d->cache;
    cuda_module *module = realloc(l->module, (size_t)(l->module_count + 1) * sizeof *module);
    text source = { .at = NULL };

    if (module == NULL)
        return false;
    l->module = module;
    module_cache_write(l, &source);
    l->job = source.failed ? NULL : compile_job_begin(d, &source);
    if (l->job == NULL)
        text_free(&source);
    else
        l->begun = l->count;
    return l->job != NULL;
}

static pons_status find_functions(cuda_device *d, cuda_module module, pons_error *err)
{
    module_cache *l = &d->cache;

    for (; l->ready < l->begun; l->ready++) {
        cuda_kernel *k = l->kernel[l->ready];
        if (cuda_check(d, d->driver.function(&k->function, module, k->name), "find a kernel", err)
            != PONS_OK)
            return PONS_DEVICE;
        free(k->text);
        k->text = NULL;
    }
    return PONS_OK;
}

/* After a failure the kernels of the unit wait again. */
static pons_status end_job(cuda_device *d, pons_error *err)
{
    module_cache *l = &d->cache;
    cuda_module module;
    pons_status status;

    if (l->job == NULL)
        return PONS_OK;
    status = compile_job_end(l->job, &module, err);
    l->job = NULL;
    if (status == PONS_OK) {
        l->module[l->module_count++] = module;
        status = find_functions(d, module, err);
    }
    l->begun = l->ready;
    return status;
}

void module_cache_compile(void *device)
{
    cuda_device *d = device;

    if (d->cache.job == NULL && d->cache.begun < d->cache.count)
        begin_job(d);
}

pons_status module_cache_need(cuda_device *d, const cuda_kernel *k, pons_error *err)
{
    while (k->function == NULL) {
        if (d->cache.job == NULL && !begin_job(d))
            return pons_fail(err, PONS_DEVICE, "cannot compile kernels: out of memory");
        if (end_job(d, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

void module_cache_free(cuda_device *d)
{
    module_cache *l = &d->cache;
    pons_error unread = PONS_ERROR_INIT;

    end_job(d, &unread);
    for (int i = 0; i < l->module_count; i++)
        d->driver.module_free(l->module[i]);
    for (int i = 0; i < l->count; i++) {
        free(l->kernel[i]->text);
        free(l->kernel[i]);
    }
    free(l->kernel);
    free(l->module);
    *l = (module_cache){ .count = 0 };
}
