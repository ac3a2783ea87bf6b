/*
 * driver.c - find libcuda and NVRTC, and compile one translation unit.
 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_SYMBOL(member, symbol, parameters) { symbol, offsetof(cuda_driver, member) },
#define COMPILER_SYMBOL(member, symbol, parameters) { symbol, offsetof(cuda_compiler, member) },
static const cuda_symbol driver_symbols[] = { CUDA_DRIVER_FUNCTIONS(DRIVER_SYMBOL) { NULL, 0 } };
static const cuda_symbol compiler_symbols[] = {
    CUDA_COMPILER_FUNCTIONS(COMPILER_SYMBOL) { NULL, 0 }
};

const char *cuda_find_symbols(void *library, const cuda_symbol *symbols, void *table)
{
    for (const cuda_symbol *s = symbols; s->name != NULL; s++) {
        void *found = dlsym(library, s->name);
        if (found == NULL)
            return s->name;
        memcpy((char *)table + s->offset, &found, sizeof found);
    }
    return NULL;
}

static void *open_of(const cuda_toolkit *list, int cuda, int flags)
{
    void *library = NULL;

    for (; list->name != NULL && library == NULL; list++)
        if (list->cuda == cuda)
            library = dlopen(list->name, RTLD_NOW | flags);
    return library;
}

void *cuda_toolkit_open(const cuda_toolkit *list, int cuda, int flags)
{
    void *library = NULL;

    for (int of = cuda; of >= CUDA_OLDEST && library == NULL; of--)
        library = open_of(list, of, flags);
    for (int of = cuda + 1; of <= CUDA_LATER && library == NULL; of++)
        library = open_of(list, of, flags);
    return library;
}

static int cuda_of(const cuda_driver *d)
{
    int version = 0;

    return d->version(&version) == 0 ? version / 1000 : 0;
}

pons_status cuda_driver_open(cuda_driver *d, pons_error *err)
{
    const char *missing;
    int result;

    *d = (cuda_driver){ .library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) };
    if (d->library == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': no driver (%s)", dlerror());
    missing = cuda_find_symbols(d->library, driver_symbols, d);
    if (missing != NULL) {
        pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': the driver has no '%s', expected "
                  "one for CUDA 11.4 or later", missing);
        cuda_driver_close(d);
        return PONS_DEVICE;
    }
    result = d->init(0);
    if (result != 0) {
        const char *why = "unknown error";
        d->error_text(result, &why);
        pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': the driver says '%s'", why);
        cuda_driver_close(d);
        return PONS_DEVICE;
    }
    d->cuda = cuda_of(d);
    return PONS_OK;
}

void cuda_driver_close(cuda_driver *d)
{
    if (d->library != NULL)
        dlclose(d->library);
    *d = (cuda_driver){ .library = NULL };
}

/* ---- the compiler ---------------------------------------------------------------------------- */

/* Where the loader looks, and where the toolkit puts it. */
static const cuda_toolkit compilers[] = {
    { 11, "libnvrtc.so.11.2" }, { 11, "/usr/local/cuda/lib64/libnvrtc.so.11.2" },
    { 12, "libnvrtc.so.12" }, { 12, "/usr/local/cuda/lib64/libnvrtc.so.12" },
    { 13, "libnvrtc.so.13" }, { 13, "/usr/local/cuda/lib64/libnvrtc.so.13" },
    { CUDA_LATER, "libnvrtc.so" }, { CUDA_LATER, "/usr/local/cuda/lib64/libnvrtc.so" }, { 0, NULL }
};

pons_status cuda_compiler_open(cuda_compiler *c, int cuda, pons_error *err)
{
    const char *missing;

    *c = (cuda_compiler){ .library = cuda_toolkit_open(compilers, cuda, RTLD_LOCAL) };
    if (c->library == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': no libnvrtc.so, which "
                         "compiles its kernels\nhint: install the CUDA toolkit's NVRTC");
    missing = cuda_find_symbols(c->library, compiler_symbols, c);
    if (missing == NULL && c->get_version(&c->major, &c->minor) == 0)
        return PONS_OK;
    pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': libnvrtc.so has no '%s', expected "
              "one of CUDA 11.2 or later", missing != NULL ? missing : "version");
    cuda_compiler_close(c);
    return PONS_DEVICE;
}

void cuda_compiler_close(cuda_compiler *c)
{
    if (c->library != NULL)
        dlclose(c->library);
    *c = (cuda_compiler){ .library = NULL };
}

/* malloc'ed; NULL: there is none. */
static char *read_log(const cuda_compiler *c, nvrtc_program program)
{
    size_t size = 0;
    char *log = NULL;

    if (c->log_size(program, &size) == 0 && size > 0)
        log = calloc(1, size + 1);
    if (log != NULL)
        c->log(program, log);
    return log;
}

/* The first line of the compiler's log that is an error, else its first. */
static pons_status report(const cuda_compiler *c, nvrtc_program program, int architecture,
                          pons_error *err)
{
    char *log = read_log(c, program), *line;

    if (log == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot compile kernels for sm_%d", architecture);
    line = strstr(log, "error");
    while (line != NULL && line > log && line[-1] != '\n')
        line--;
    line = line != NULL ? line : log;
    line[strcspn(line, "\n")] = '\0';
    pons_fail(err, PONS_DEVICE, "cannot compile kernels for sm_%d: %s", architecture, line);
    free(log);
    return PONS_DEVICE;
}

static pons_status take_binary(const cuda_compiler *c, nvrtc_program program, char **binary,
                               size_t *size, pons_error *err)
{
    if (c->binary_size(program, size) != 0 || *size == 0 || (*binary = malloc(*size)) == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot read compiled kernels: out of memory");
    if (c->binary(program, *binary) == 0)
        return PONS_OK;
    free(*binary);
    return pons_fail(err, PONS_DEVICE, "cannot read compiled kernels");
}

pons_status cuda_compile(const cuda_compiler *c, const char *source, int architecture,
                         char **binary, size_t *size, char **log, pons_error *err)
{
    char target[48];
    const char *const options[] = { target, CUDA_FUSING, CUDA_LANGUAGE, "--ptxas-options=-v" };
    const int count = log != NULL ? 4 : 3;
    nvrtc_program program;
    pons_status status;

    snprintf(target, sizeof target, "--gpu-architecture=sm_%d", architecture);
    if (c->create(&program, source, "pons.cu", 0, NULL, NULL) != 0)
        return pons_fail(err, PONS_DEVICE, "cannot compile kernels: out of memory");
    if (c->compile(program, count, options) == 0)
        status = take_binary(c, program, binary, size, err);
    else
        status = report(c, program, architecture, err);
    if (log != NULL)
        *log = status == PONS_OK ? read_log(c, program) : NULL;
    c->destroy(&program);
    return status;
}
