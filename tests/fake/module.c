/*
 * module.c - load, find and launch kernels that compiler.c has compiled.
 *
 * A kernel declares for each parameter whether it is memory, its size in bytes if that is known,
 * and whether the kernel writes there. Parameters have 8 bytes; a pointer becomes the address at
 * which kernels reach the memory.
 */
#include "fake_driver.h"

#include "block.h"
#include "guard.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARAMETERS = 192, THREADS = 256 };

/* Shared memory is a variable of the module, so that one kernel runs at a time. */
typedef struct module {
    void *library;
    struct shim_state *shim;
    pthread_mutex_t lock;
} module;

typedef struct function {
    struct function *next;
    char *name;
    module *module;
    void (*call)(void **);
    const struct shim_parameter *parameter;
    int count;
} function;

typedef struct launch {
    const function *function;
    unsigned blocks;
    uint64_t value[PARAMETERS];
    guard_range range[PARAMETERS];
} launch;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static function *functions;
static int launches, loads;

#pragma GCC visibility push(default)
int cuModuleLoadData(module **out, const void *image);
int cuModuleUnload(module *m);
int cuModuleGetFunction(function **out, module *m, const char *name);
int cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, stream *s, void **parameters, void **extra);
#pragma GCC visibility pop

/* ---- modules --------------------------------------------------------------------------------- */

/* Load an image from a path of its own, because the loader identifies libraries by path. */
static void *load(const char *image, size_t size)
{
    char path[] = "/tmp/fake-module-XXXXXX";
    int file = mkstemp(path);
    void *library = NULL;

    if (file < 0)
        return NULL;
    if (write(file, image, size) == (ssize_t)size)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    close(file);
    return library;
}

int cuModuleLoadData(module **out, const void *image)
{
    fake_image facts;
    module *m;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (capture_refuses("cuModuleLoadData") != OK)
        return CAPTURE_UNSUPPORTED;
    memcpy(&facts, image, sizeof facts);
    if (fake_fails("load", &loads) || facts.cuda > (uint64_t)fake_version() / 1000)
        return INVALID_IMAGE;
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return NO_MEMORY;
    m->library = load((const char *)image + sizeof facts, facts.size);
    m->shim = m->library != NULL ? dlsym(m->library, "shim") : NULL;
    if (m->shim == NULL) {
        fprintf(stderr, "fake cuda: %s\n", dlerror());
        free(m);
        return INVALID;
    }
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return OK;
}

int cuModuleUnload(module *m)
{
    if (capture_refuses("cuModuleUnload") != OK)
        return CAPTURE_UNSUPPORTED;
    stream_drain_all();
    pthread_mutex_lock(&lock);
    for (function **at = &functions; *at != NULL;) {
        function *f = *at;
        if (f->module == m) {
            *at = f->next;
            free(f->name);
            free(f);
        } else {
            at = &f->next;
        }
    }
    pthread_mutex_unlock(&lock);
    dlclose(m->library);
    pthread_mutex_destroy(&m->lock);
    free(m);
    return OK;
}

int cuModuleGetFunction(function **out, module *m, const char *name)
{
    char symbol[128];
    function *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NO_MEMORY;
    f->module = m;
    snprintf(symbol, sizeof symbol, "shim_call_%s", name);
    *(void **)&f->call = dlsym(m->library, symbol);
    snprintf(symbol, sizeof symbol, "shim_parameters_%s", name);
    f->parameter = dlsym(m->library, symbol);
    if (f->call == NULL || f->parameter == NULL) {
        free(f);
        return NOT_FOUND;
    }
    while (f->parameter[f->count].name != NULL)
        f->count++;
    f->name = strdup(name);
    pthread_mutex_lock(&lock);
    f->next = functions;
    functions = f;
    pthread_mutex_unlock(&lock);
    *out = f;
    return OK;
}

/* ---- launches -------------------------------------------------------------------------------- */

static _Thread_local block_runner *runner; /* of a stream's thread                                */
static pthread_key_t runner_key;
static pthread_once_t runner_once = PTHREAD_ONCE_INIT;

static void free_runner(void *r) { block_runner_free(r); }

static void make_key(void) { pthread_key_create(&runner_key, free_runner); }

static void run_launch(void *context)
{
    launch *l = context;
    module *m = l->function->module;
    const guard_kernel guarded = { l->function->name, l->function->count, l->range };
    const fake_work work = { .name = l->function->name, .blocks = (int)l->blocks,
                             .threads = THREADS, .start = watch_clock() };
    void *parameters[PARAMETERS];

    pthread_once(&runner_once, make_key);
    if (runner == NULL) {
        runner = block_runner_new();
        pthread_setspecific(runner_key, runner);
    }
    for (int i = 0; i < l->function->count; i++)
        parameters[i] = &l->value[i];
    pthread_mutex_lock(&m->lock);
    guard_begin(&guarded);
    for (unsigned b = 0; b < l->blocks; b++)
        block_run(runner, m->shim, l->function->call, parameters, b, THREADS);
    guard_end(&guarded);
    pthread_mutex_unlock(&m->lock);
    watch_tell(work);
    free(l);
}

/* Register the memory of a parameter; replace the address by that of kernels. */
static bool take_pointer(stream *s, launch *l, int number)
{
    const struct shim_parameter *p = &l->function->parameter[number];
    const void *at = (const void *)(uintptr_t)l->value[number];
    size_t rest;
    void *view;

    l->range[number] = (guard_range){ .name = p->name };
    if (!p->memory || at == NULL)
        return true;
    if (!fake_on_device(at, p->size)) {
        fprintf(stderr, "fake cuda: parameter '%s' at %p is no memory of the GPU of %zu bytes\n",
                p->name, at, p->size);
        return false;
    }
    fake_stream_touch(s, at, p->size, p->writes);
    view = memory_view(at, number, &rest);
    l->value[number] = (uint64_t)(uintptr_t)view;
    l->range[number] = (guard_range){ p->name, view, p->more ? rest : p->size };
    return true;
}

static int give_launch(stream *s, const void *what)
{
    launch *l = malloc(sizeof *l);

    if (l == NULL)
        return NO_MEMORY;
    memcpy(l, what, sizeof *l);
    for (int i = 0; i < l->function->count; i++)
        if (!take_pointer(s, l, i)) {
            free(l);
            return ILLEGAL_ADDRESS;
        }
    fake_stream_push(s, run_launch, l);
    return OK;
}

int cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, stream *s, void **parameters, void **extra)
{
    launch l = { .function = f, .blocks = gx };

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (s == NULL || gx == 0 || gy != 1 || gz != 1 || bx != THREADS || by != 1 || bz != 1
        || shared != 0 || extra != NULL || f->count > PARAMETERS)
        return INVALID;
    if (fake_fails("launch", &launches))
        return LAUNCH_FAILED;
    if (!stream_is_captured(s))
        fake_counts(FAKE_LAUNCHES);
    for (int i = 0; i < f->count; i++)
        memcpy(&l.value[i], parameters[i], sizeof l.value[i]);
    return stream_give(s, give_launch, &l, sizeof l);
}
