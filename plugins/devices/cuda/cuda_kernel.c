/*
 * cuda_kernel.c - select the implementation of a request; prepare and run our own kernels: their
 * launches, arguments and device tables.
 */
#include "cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

typedef struct prepared_launch {
    cuda_kernel *kernel;
    unsigned blocks;
} prepared_launch;

typedef struct prepared {
    cuda_device *device;
    int input_count, output_count, launch_count, table_count, parameter_count;
    prepared_launch *launch;
    cuda_address table[CUDA_TABLES];
    void **value;          /* inputs, outputs, scratch, tables, step key                          */
    void **parameter;      /* address of each value                                               */
} prepared;

static void prepared_free(prepared *p)
{
    if (p == NULL)
        return;
    p->device->driver.use(p->device->context);
    for (int i = 0; i < p->table_count; i++)
        p->device->driver.free(p->table[i]);
    free(p->launch);
    free(p->value);
    free(p->parameter);
    free(p);
}

static void kernel_free(pons_kernel *kernel) { prepared_free(kernel->state); }

static pons_status kernel_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    prepared *p = kernel->state;
    cuda_device *d = p->device;
    pons_status status = cuda_check(d, d->driver.use(d->context), "use the device", err);

    for (int i = 0; i < p->launch_count && status == PONS_OK; i++)
        status = module_cache_need(d, p->launch[i].kernel, err);
    memcpy(p->value, call->input, (size_t)p->input_count * sizeof *p->value);
    memcpy(p->value + p->input_count, call->output, (size_t)p->output_count * sizeof *p->value);
    p->value[p->input_count + p->output_count] = call->scratch;
    p->value[p->parameter_count - 1] = (void *)call->step_key;
    for (int i = 0; i < p->launch_count && status == PONS_OK; i++)
        status = cuda_check(d, d->driver.launch(p->launch[i].kernel->function, p->launch[i].blocks,
                                                1, 1, CUDA_THREADS, 1, 1, 0,
                                                d->stream[PONS_STREAM_KERNELS], p->parameter, NULL),
                            "launch a kernel", err);
    return status;
}

/* Allocate a prepared kernel without its tables. */
static prepared *prepared_new(cuda_device *d, const codegen *s)
{
    int parameters = codegen_parameters(s);
    prepared *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->device = d;
    p->input_count = s->request->input_count;
    p->output_count = s->request->output_count;
    p->parameter_count = parameters;
    p->launch = calloc((size_t)s->launch_count, sizeof *p->launch);
    p->value = calloc((size_t)parameters, sizeof *p->value);
    p->parameter = calloc((size_t)parameters, sizeof *p->parameter);
    if (p->launch == NULL || p->value == NULL || p->parameter == NULL) {
        prepared_free(p);
        return NULL;
    }
    for (int i = 0; i < parameters; i++)
        p->parameter[i] = &p->value[i];
    return p;
}

static pons_status upload_tables(prepared *p, const codegen *s, pons_error *err)
{
    const cuda_driver *c = &p->device->driver;
    int first = p->input_count + p->output_count + 1;

    for (int i = 0; i < s->table_count; i++) {
        const cuda_table *t = &s->table[i];
        if (cuda_check(p->device, c->allocate(&p->table[i], t->size), "allocate a table", err)
            != PONS_OK)
            return PONS_DEVICE;
        p->table_count++;
        p->value[first + i] = (void *)(uintptr_t)p->table[i];
        if (cuda_check(p->device, c->upload(p->table[i], t->data, t->size), "copy a table", err)
            != PONS_OK)
            return PONS_DEVICE;
    }
    /* An upload may return before it has finished, and the kernel stream does not wait for it. */
    return s->table_count == 0 ? PONS_OK
         : cuda_check(p->device, c->stream_wait(NULL), "copy a table", err);
}

static pons_status add_launches(prepared *p, const codegen *s, pons_error *err)
{
    for (int i = 0; i < s->launch_count; i++) {
        const cuda_launch *l = &s->launch[i];
        cuda_kernel *k;
        if (l->blocks > INT32_MAX)
            return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': %lld blocks, expected at most "
                             "%d", s->request->name, (long long)l->blocks, INT32_MAX);
        if (l->blocks == 0)
            continue;
        k = module_cache_add(&p->device->cache, l);
        if (k == NULL)
            return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory",
                             s->request->name);
        p->launch[p->launch_count++] = (prepared_launch){ k, (unsigned)l->blocks };
    }
    return PONS_OK;
}

pons_status cuda_prepare_own(cuda_device *d, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    prepared *p = NULL;
    codegen source;
    pons_status status = PONS_OK;

    *supported = codegen_make(&source, request);
    if (*supported) {
        status = cuda_check(d, d->driver.use(d->context), "use the device", err);
        p = prepared_new(d, &source);
    }
    if (source.failed || (*supported && p == NULL))
        status = pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    if (p != NULL && status == PONS_OK)
        status = upload_tables(p, &source, err);
    if (p != NULL && status == PONS_OK)
        status = add_launches(p, &source, err);
    if (p != NULL && status == PONS_OK) {
        kernel->run = kernel_run;
        kernel->free = kernel_free;
        kernel->state = p;
        kernel->implementation = "nvrtc";
        kernel->scratch_size = source.scratch_size;
        kernel->share = source.share;
    } else {
        prepared_free(p);
    }
    codegen_free(&source);
    return status;
}

pons_status cuda_prepare(void *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err)
{
    static pons_status (*const families[])(cuda_device *, const pons_request *, pons_kernel *,
                                           bool *, pons_error *)
        = { cudnn_prepare, cublaslt_prepare, cuda_prepare_own };
    pons_status status = PONS_OK;

    *supported = false;
    for (size_t i = 0; i < sizeof families / sizeof *families && status == PONS_OK && !*supported;
         i++)
        status = families[i](device, request, kernel, supported, err);
    return status;
}
