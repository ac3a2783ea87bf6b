/*
 * driver.c - open libcuda and an NVRTC that supports the GPU; compile one translation unit.
 */
#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_SYMBOL(member, symbol, parameters) { symbol, offsetof(cuda_driver, member) },
#define COMPILER_SYMBOL(member, symbol, parameters) { symbol, offsetof(cuda_compiler, member) },
static const toolkit_symbol driver_symbols[] = { CUDA_DRIVER_FUNCTIONS(DRIVER_SYMBOL) { NULL, 0 } };
static const toolkit_symbol compiler_symbols[] = {
    CUDA_COMPILER_FUNCTIONS(COMPILER_SYMBOL) { NULL, 0 }
};

static int cuda_of(const cuda_driver *d)
{
    int version = 0;

    return d->version(&version) == 0 ? version / 1000 : 0;
}

pons_status cuda_driver_open(cuda_driver *d, pons_error *err)
{
    const char *missing;
    int result;

    /* The driver has threads and handlers of its own and must not be unloaded. */
    *d = (cuda_driver){ .library = dlopen("libcuda.so.1",
                                          RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
    if (d->library == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': no driver (%s)", dlerror());
    missing = toolkit_find_symbols(d->library, driver_symbols, d);
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

/* Names for the loader, and paths of the toolkit. */
static const toolkit_file compilers[] = {
    { 11, "libnvrtc.so.11.2" }, { 11, "/usr/local/cuda/lib64/libnvrtc.so.11.2" },
    { 12, "libnvrtc.so.12" }, { 12, "/usr/local/cuda/lib64/libnvrtc.so.12" },
    { 13, "libnvrtc.so.13" }, { 13, "/usr/local/cuda/lib64/libnvrtc.so.13" },
    { TOOLKIT_LATER, "libnvrtc.so" }, { TOOLKIT_LATER, "/usr/local/cuda/lib64/libnvrtc.so" }, { 0,
        NULL }
};

/* A search for a compiler. */
typedef struct compiler_search {
    cuda_compiler *compiler;
    int architecture, cuda;    /* of the GPU; CUDA version of the driver                          */
    bool newer;                /* the GPU is newer than all architectures of the last compiler    */
    bool translated;           /* accept an older architecture, as PTX that the driver translates */
} compiler_search;

enum { KNOWN = 64 };

/* The compiler's architectures, ascending; returns their count, or 0 if it has no list. */
static int list_known(const cuda_compiler *c, int known[KNOWN])
{
    int count = 0;

    return c->count_known(&count) == 0 && count > 0 && count <= KNOWN && c->get_known(known) == 0
         ? count : 0;
}

static void say_known(const cuda_compiler *c, int count, const int *known, char *why, size_t size)
{
    size_t used = (size_t)snprintf(why, size, "NVRTC %d.%d for %s", c->major, c->minor,
                                   count > 0 ? "sm_" : "none that it tells of");

    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(why + used, size - used, "%s%d", i > 0 ? " " : "", known[i]);
}

/*
 * The architecture to compile for; 0: none that the GPU runs. A driver cannot translate PTX of a
 * later CUDA version.
 */
static int find_target(const compiler_search *w, int count, const int *known)
{
    int target = 0;

    for (int i = 0; i < count; i++)
        if (known[i] == w->architecture || (w->translated && known[i] < w->architecture))
            target = known[i];
    return w->translated && w->compiler->major > w->cuda ? 0 : target;
}

/*
 * True if the compiler has a target for the GPU. Compilers drop old architectures and lack new
 * ones.
 */
static bool has_target(compiler_search *w, char *why, size_t size)
{
    int known[KNOWN], count = list_known(w->compiler, known);

    w->compiler->target = find_target(w, count, known);
    w->compiler->translated = w->translated;
    if (w->compiler->target != 0)
        return true;
    say_known(w->compiler, count, known, why, size);
    w->newer = count > 0 && known[count - 1] < w->architecture;
    return false;
}

static bool is_suitable(void *context, const char *name, void *library, char *why, size_t size)
{
    compiler_search *w = context;
    cuda_compiler *c = w->compiler;
    const char *missing = toolkit_find_symbols(library, compiler_symbols, c);

    if (missing == NULL && c->get_version(&c->major, &c->minor) == 0)
        return has_target(w, why, size);
    snprintf(why, size, "'%s' has no '%s', expected one of CUDA 11.2 or later", name,
             missing != NULL ? missing : "version");
    w->newer = true;
    return false;
}

pons_status cuda_compiler_open(cuda_compiler *c, int cuda, int ordinal, int architecture,
                               pons_error *err)
{
    compiler_search w = { c, architecture, cuda, false, false };
    toolkit_search search = { .flags = RTLD_LOCAL | RTLD_NODELETE, .serves = is_suitable, .context
        = &w };
    void *library = toolkit_open(compilers, cuda, &search);

    if (library == NULL) {
        w.translated = true;
        library = toolkit_open(compilers, cuda, &search);
    }
    if (library == NULL)
        *c = (cuda_compiler){ .library = NULL };
    c->library = library;
    if (library != NULL)
        return PONS_OK;
    if (search.refused[0] == '\0')
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': no libnvrtc.so, which "
                         "compiles its kernels\nhint: install the CUDA toolkit's NVRTC");
    return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda:%d': nothing here compiles for "
                     "its sm_%d: %s\nhint: install the NVRTC of %s CUDA, too", ordinal,
                     architecture, search.refused, w.newer ? "a newer" : "an older");
}

void cuda_compiler_close(cuda_compiler *c)
{
    if (c->library != NULL)
        dlclose(c->library);
    *c = (cuda_compiler){ .library = NULL };
}

/* malloc'ed log, or NULL. */
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

/* Fail with the first error line of the compiler's log, else its first line. */
static pons_status report_log(const cuda_compiler *c, nvrtc_program program, int architecture,
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
    int result = (c->translated ? c->ptx_size : c->binary_size)(program, size);

    if (result != 0 || *size == 0 || (*binary = malloc(*size)) == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot read compiled kernels: out of memory");
    if ((c->translated ? c->ptx : c->binary)(program, *binary) == 0)
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

    snprintf(target, sizeof target, "--gpu-architecture=%s_%d", c->translated ? "compute" : "sm",
             architecture);
    if (c->create(&program, source, "pons.cu", 0, NULL, NULL) != 0)
        return pons_fail(err, PONS_DEVICE, "cannot compile kernels: out of memory");
    if (c->compile(program, count, options) == 0)
        status = take_binary(c, program, binary, size, err);
    else
        status = report_log(c, program, architecture, err);
    if (log != NULL)
        *log = status == PONS_OK ? read_log(c, program) : NULL;
    c->destroy(&program);
    return status;
}
