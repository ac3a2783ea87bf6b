/*
 * module_cache.c - compiled kernels: everything that was asked for is one translation unit, which
 * begins when all of it is known, or when the first of it runs. How it is compiled is
 * compile_job.c's.
 */
#include "cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list -------------------------------------------------------------------------------- */

static cuda_kernel *find_kernel(const cuda_library *l, const char *name)
{
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->kernel[i]->name, name) == 0)
            return l->kernel[i];
    return NULL;
}

static bool library_grow(cuda_library *l)
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

cuda_kernel *cuda_library_add(cuda_library *l, const cuda_launch *launch)
{
    cuda_kernel *k = find_kernel(l, launch->name);

    if (k != NULL)
        return k;
    k = library_grow(l) ? calloc(1, sizeof *k) : NULL;
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

void cuda_library_write(const cuda_library *l, text *t)
{
    text_add(t, "%s", text_preamble);
    for (int i = l->begun; i < l->count; i++)
        text_add(t, "KERNEL %s%s\n", l->kernel[i]->name, l->kernel[i]->text);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Room for one module more, and all that waits on its way. */
static bool begin_unit(cuda_device *d)
{
    cuda_library *l = &d->library;
    cuda_module *module = realloc(l->module, (size_t)(l->module_count + 1) * sizeof *module);
    text source = { .at = NULL };

    if (module == NULL)
        return false;
    l->module = module;
    cuda_library_write(l, &source);
    l->unit = source.failed ? NULL : cuda_unit_begin(d, &source);
    if (l->unit == NULL)
        text_free(&source);
    else
        l->begun = l->count;
    return l->unit != NULL;
}

static pons_status find_functions(cuda_device *d, cuda_module module, pons_error *err)
{
    cuda_library *l = &d->library;

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

/* Kernels of a unit that failed wait again. */
static pons_status end_unit(cuda_device *d, pons_error *err)
{
    cuda_library *l = &d->library;
    cuda_module module;
    pons_status status;

    if (l->unit == NULL)
        return PONS_OK;
    status = cuda_unit_end(l->unit, &module, err);
    l->unit = NULL;
    if (status == PONS_OK) {
        l->module[l->module_count++] = module;
        status = find_functions(d, module, err);
    }
    l->begun = l->ready;
    return status;
}

void cuda_compile_waiting(void *device)
{
    cuda_device *d = device;

    if (d->library.unit == NULL && d->library.begun < d->library.count)
        begin_unit(d);
}

pons_status cuda_library_need(cuda_device *d, const cuda_kernel *k, pons_error *err)
{
    while (k->function == NULL) {
        if (d->library.unit == NULL && !begin_unit(d))
            return pons_fail(err, PONS_DEVICE, "cannot compile kernels: out of memory");
        if (end_unit(d, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

void cuda_library_free(cuda_device *d)
{
    cuda_library *l = &d->library;
    pons_error unread = PONS_ERROR_INIT;

    end_unit(d, &unread);
    for (int i = 0; i < l->module_count; i++)
        d->driver.module_free(l->module[i]);
    for (int i = 0; i < l->count; i++) {
        free(l->kernel[i]->text);
        free(l->kernel[i]);
    }
    free(l->kernel);
    free(l->module);
    *l = (cuda_library){ .count = 0 };
}
