/*
 * compile_job.c - compile and load a translation unit, or read it from the cache, on a thread
 * beside the device's own.
 *
 * The name of a cache file is a hash of its inputs: the source, the architecture, the compiler's
 * version and its options. A header with length and hash detects a truncated or changed file.
 */
#include "cuda/cuda.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The thread reads only those members of the device that are constant while it is open. */
struct compile_job {
    const cuda_device *device;
    text source;
    pthread_t thread;
    bool started;
    cuda_module module;
    pons_error error;
};

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

    snprintf(key, sizeof key, "sm_%d nvrtc %d.%d " CUDA_FUSING " " CUDA_LANGUAGE " ",
             d->architecture, d->compiler.major, d->compiler.minor);
    hash = text_hash(unit, text_hash(key, TEXT_HASH));
    snprintf(path, size, "%s/%016" PRIx64 "%016" PRIx64 ".cubin", d->cache_dir, hash,
             text_hash(unit, text_hash("pons ", hash)));
}

/* Open a regular file; a FIFO or other special file is refused without waiting. */
static FILE *cache_open(const char *path)
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat facts;
    FILE *f = file >= 0 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) ? fdopen(file, "rb")
                                                                              : NULL;

    if (file >= 0 && f == NULL)
        close(file);
    return f;
}

/* NULL: no file, or not a whole one. */
static char *cache_read(const char *path, size_t *size)
{
    FILE *f = cache_open(path);
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

/*
 * A cache that cannot be written only costs time: it is no failure. Other processes write to it at
 * the same time.
 */
static void cache_write(const char *path, const char *binary, size_t size)
{
    cache_header h = { .size = size, .hash = bytes_hash(binary, size) };
    char temporary[4200];
    bool whole;
    FILE *f;
    int file;

    memcpy(h.magic, cache_magic, sizeof h.magic);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    make_folders(path);
    file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0)
        return;
    fchmod(file, 0644);
    f = fdopen(file, "wb");
    if (f == NULL) {
        close(file);
        unlink(temporary);
        return;
    }
    whole = fwrite(&h, sizeof h, 1, f) == 1 && fwrite(binary, size, 1, f) == 1;
    whole = fflush(f) == 0 && fsync(fileno(f)) == 0 && whole;
    whole = fclose(f) == 0 && whole;
    if (!whole || rename(temporary, path) != 0)
        unlink(temporary);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Load compiled code. Its format may belong to a later CUDA version than the driver's. */
static pons_status load_binary(compile_job *u, const char *binary, pons_error *err)
{
    const cuda_device *d = u->device;
    pons_error cause = PONS_ERROR_INIT;

    if (cuda_check(d, d->driver.module_load(&u->module, binary), "load kernels", &cause) == PONS_OK)
        return PONS_OK;
    if (d->compiler.translated)
        return pons_fail(err, PONS_DEVICE, "%s; they are PTX of compute_%d, by NVRTC %d.%d\n"
                         "hint: install an NVRTC that knows sm_%d, too, or a newer driver",
                         cause.text, d->compiler.target, d->compiler.major, d->compiler.minor,
                         d->architecture);
    if (d->compiler.major <= d->driver.cuda)
        return pons_fail(err, PONS_DEVICE, "%s", cause.text);
    return pons_fail(err, PONS_DEVICE, "%s; they are compiled by NVRTC %d.%d, the driver is of "
                     "CUDA %d\nhint: install the NVRTC of CUDA %d, too, or a newer driver",
                     cause.text, d->compiler.major, d->compiler.minor, d->driver.cuda,
                     d->driver.cuda);
}

static pons_status compile_and_load(compile_job *u, pons_error *err)
{
    const cuda_device *d = u->device;
    char path[4096] = "", *binary = NULL;
    size_t size = 0;
    pons_status status = cuda_check(d, d->driver.use(d->context), "use the GPU", err);

    if (status != PONS_OK)
        return status;
    if (d->cache_dir != NULL) {
        cache_path(d, u->source.at, path, sizeof path);
        binary = cache_read(path, &size);
    }
    if (binary != NULL && d->driver.module_load(&u->module, binary) == 0) {
        free(binary);
        return PONS_OK;
    }
    free(binary);
    status = cuda_compile(&d->compiler, u->source.at, d->compiler.target, &binary, &size, NULL,
                          err);
    if (status != PONS_OK)
        return status;
    if (d->cache_dir != NULL)
        cache_write(path, binary, size);
    status = load_binary(u, binary, err);
    free(binary);
    return status;
}

static void *run_job(void *context)
{
    compile_job *u = context;

    compile_and_load(u, &u->error);
    return NULL;
}

compile_job *compile_job_begin(const cuda_device *d, text *source)
{
    compile_job *u = calloc(1, sizeof *u);

    if (u == NULL)
        return NULL;
    u->device = d;
    u->source = *source;
    u->error = (pons_error)PONS_ERROR_INIT;
    u->started = pthread_create(&u->thread, NULL, run_job, u) == 0;
    return u;
}

pons_status compile_job_end(compile_job *u, cuda_module *module, pons_error *err)
{
    pons_status status;

    if (u->started)
        pthread_join(u->thread, NULL);
    else
        run_job(u);
    status = u->error.status;
    if (status == PONS_OK)
        *module = u->module;
    else
        pons_fail(err, status, "%s", u->error.text);
    text_free(&u->source);
    free(u);
    return status;
}
