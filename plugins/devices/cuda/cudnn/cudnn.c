/*
 * cudnn.c - load cuDNN, create its handle, and make its descriptors.
 */
#include "cuda/cudnn/cudnn.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MAJOR = 0, MINOR, PATCH };

#define DNN_SYMBOL(result, member, symbol, parameters) { symbol, offsetof(cudnn_library, member) },
static const toolkit_symbol symbols[] = { DNN_FUNCTIONS(DNN_SYMBOL) { NULL, 0 } };

static void close_library(cudnn_library *dnn)
{
    if (dnn->library != NULL)
        dlclose(dnn->library);
    dnn->library = NULL;
    dnn->version = 0;
}

static bool read_version(cudnn_library *dnn)
{
    int major = 0, minor = 0, patch = 0;

    if (dnn->property(MAJOR, &major) != 0 || dnn->property(MINOR, &minor) != 0
        || dnn->property(PATCH, &patch) != 0)
        return false;
    dnn->version = 10000 * major + 100 * minor + patch;
    return true;
}

void cudnn_find(cudnn_library *dnn)
{
    static const char *const names[] = { "libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9" };
    const char *missing;

    /* The library loads others and is not made to be unloaded. */
    *dnn = (cudnn_library){ .missing = "there is no libcudnn.so.9" };
    for (size_t i = 0; i < sizeof names / sizeof *names && dnn->library == NULL; i++)
        dnn->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (dnn->library == NULL)
        return;
    missing = toolkit_find_symbols(dnn->library, symbols, dnn);
    if (missing == NULL && !read_version(dnn))
        missing = "version";
    if (missing == NULL)
        return;
    snprintf(dnn->missing, sizeof dnn->missing, "libcudnn.so.9 has no '%s'", missing);
    close_library(dnn);
}

void cudnn_start(cudnn_library *dnn, cuda_stream stream)
{
    char why[128] = "";

    if (dnn->library == NULL
        || (dnn->create(&dnn->handle) == 0 && dnn->set_stream(dnn->handle, stream) == 0))
        return;
    dnn->last_error(why, sizeof why);
    if (dnn->handle != NULL)
        dnn->destroy(dnn->handle);
    dnn->handle = NULL;
    snprintf(dnn->missing, sizeof dnn->missing, "it does not start: %s", why);
    close_library(dnn);
}

void cudnn_close(cudnn_library *dnn)
{
    if (dnn->handle != NULL)
        dnn->destroy(dnn->handle);
    dnn->handle = NULL;
    close_library(dnn);
}

void cudnn_describe(const cudnn_library *dnn, char *text, size_t size)
{
    if (dnn->library == NULL)
        snprintf(text, size, "no cuDNN (%s)", dnn->missing);
    else
        snprintf(text, size, "cuDNN %d.%d.%d", dnn->version / 10000, dnn->version / 100 % 100,
                 dnn->version % 100);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void note_failure(cudnn_list *l, int status, const char *what)
{
    if (status == 0)
        return;
    l->status = status;
    l->failed = what;
}

cudnn_descriptor cudnn_add(cudnn_list *l, int kind)
{
    cudnn_descriptor d = NULL;

    if (l->status != 0)
        return NULL;
    if (l->count == DNN_LIST) {
        note_failure(l, 1, "room for a descriptor");
        return NULL;
    }
    note_failure(l, l->dnn->descriptor_new(kind, &d), "making a descriptor");
    if (l->status == 0)
        l->item[l->count++] = d;
    return d;
}

void cudnn_set(cudnn_list *l, cudnn_descriptor d, int attribute, int type, int64_t count,
               const void *values)
{
    if (l->status == 0)
        note_failure(l, l->dnn->set(d, attribute, type, count, values), "setting an attribute");
}

void cudnn_finish(cudnn_list *l, cudnn_descriptor d)
{
    if (l->status == 0)
        note_failure(l, l->dnn->finalize(d), "finishing a descriptor");
}

void cudnn_list_free(cudnn_list *l)
{
    while (l->count > 0)
        if (l->item[--l->count] != NULL)
            l->dnn->descriptor_free(l->item[l->count]);
}
