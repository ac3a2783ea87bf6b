/*
 * library.c - compiled kernels: everything that a program has asked for is one translation unit,
 * compiled when the first of it runs, or read from the cache.
 *
 * A file of the cache is named by what it depends on: the text, the architecture and the compiler's
 * version; a header with the length and a hash of the rest tells a file that was cut or changed.
 */
#include "cuda.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    l->waiting++;
    return k;
}

void cuda_library_free(cuda_device *d)
{
    cuda_library *l = &d->library;

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

void cuda_library_write(const cuda_library *l, text *t)
{
    text_add(t, "%s", text_preamble);
    for (int i = 0; i < l->count; i++)
        if (l->kernel[i]->text != NULL)
            text_add(t, "KERNEL %s%s\n", l->kernel[i]->name, l->kernel[i]->text);
}

/* ---- the cache ------------------------------------------------------------------------------- */

typedef struct cache_header {
    char magic[8];
    uint64_t size, hash;
} cache_header;

static const char cache_magic[8] = "ponscu1";

static uint64_t bytes_hash(const char *at, size_t size)
{
    uint64_t hash = TEXT_HASH;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void cache_path(const cuda_device *d, const char *unit, char *path, size_t size)
{
    char key[64];
    uint64_t hash;

    snprintf(key, sizeof key, "sm_%d nvrtc %d.%d ", d->architecture, d->compiler.major,
             d->compiler.minor);
    hash = text_hash(unit, text_hash(key, TEXT_HASH));
    snprintf(path, size, "%s/%016" PRIx64 "%016" PRIx64 ".cubin", d->cache_dir, hash,
             text_hash(unit, text_hash("pons ", hash)));
}

/* NULL: there is none, or not a whole one. */
static char *cache_read(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rbe");
    cache_header h;
    char *binary = NULL;

    if (f == NULL)
        return NULL;
    if (fread(&h, sizeof h, 1, f) == 1 && memcmp(h.magic, cache_magic, sizeof h.magic) == 0
        && h.size > 0 && h.size < (UINT64_C(1) << 30))
        binary = malloc(h.size);
    if (binary != NULL && (fread(binary, h.size, 1, f) != 1
                           || bytes_hash(binary, h.size) != h.hash)) {
        free(binary);
        binary = NULL;
    }
    fclose(f);
    *size = binary != NULL ? h.size : 0;
    return binary;
}

static void make_folders(const char *path)
{
    char *part = strdup(path);

    for (char *c = part; c != NULL && *c != '\0'; c++)
        if (*c == '/' && c > part) {
            *c = '\0';
            mkdir(part, 0777);
            *c = '/';
        }
    free(part);
}

/* A cache that cannot be written is only slow: no failure. */
static void cache_write(const char *path, const char *binary, size_t size)
{
    cache_header h = { .size = size, .hash = bytes_hash(binary, size) };
    char temporary[4200];
    bool whole;
    FILE *f;

    memcpy(h.magic, cache_magic, sizeof h.magic);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    make_folders(path);
    f = fopen(temporary, "wbe");
    if (f == NULL)
        return;
    whole = fwrite(&h, sizeof h, 1, f) == 1 && fwrite(binary, size, 1, f) == 1;
    whole = fflush(f) == 0 && fsync(fileno(f)) == 0 && whole;
    whole = fclose(f) == 0 && whole;
    if (!whole || rename(temporary, path) != 0)
        unlink(temporary);
}

/* ---- modules --------------------------------------------------------------------------------- */

static bool module_room(cuda_library *l)
{
    int room = l->module_count + 8;
    cuda_module *module = realloc(l->module, (size_t)room * sizeof *module);

    if (module == NULL)
        return false;
    l->module = module;
    return true;
}

static pons_status load_unit(cuda_device *d, const char *unit, cuda_module *module, pons_error *err)
{
    char path[4096] = "", *binary = NULL;
    size_t size = 0;
    pons_status status;

    if (d->cache_dir != NULL) {
        cache_path(d, unit, path, sizeof path);
        binary = cache_read(path, &size);
    }
    if (binary != NULL && d->driver.module_load(module, binary) == 0) {
        free(binary);
        return PONS_OK;
    }
    free(binary);
    status = cuda_compile(&d->compiler, unit, d->architecture, &binary, &size, NULL, err);
    if (status != PONS_OK)
        return status;
    if (d->cache_dir != NULL)
        cache_write(path, binary, size);
    status = cuda_check(d, d->driver.module_load(module, binary), "load kernels", err);
    free(binary);
    return status;
}

static pons_status find_functions(cuda_device *d, cuda_module module, pons_error *err)
{
    cuda_library *l = &d->library;

    for (int i = 0; i < l->count; i++) {
        cuda_kernel *k = l->kernel[i];
        if (k->text == NULL)
            continue;
        if (cuda_check(d, d->driver.function(&k->function, module, k->name), "find a kernel", err)
            != PONS_OK)
            return PONS_DEVICE;
        free(k->text);
        k->text = NULL;
    }
    l->waiting = 0;
    return PONS_OK;
}

pons_status cuda_library_load(cuda_device *d, pons_error *err)
{
    text unit = { .at = NULL };
    cuda_module module;
    pons_status status;

    if (d->library.waiting == 0)
        return PONS_OK;
    cuda_library_write(&d->library, &unit);
    if (unit.failed || !module_room(&d->library)) {
        text_free(&unit);
        return pons_fail(err, PONS_DEVICE, "cannot compile kernels: out of memory");
    }
    status = load_unit(d, unit.at, &module, err);
    text_free(&unit);
    if (status != PONS_OK)
        return status;
    d->library.module[d->library.module_count++] = module;
    return find_functions(d, module, err);
}
