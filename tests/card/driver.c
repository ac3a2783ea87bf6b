/*
 * driver.c - a libcuda.so.1 for tests: two cards that compute on this processor.
 *
 * A stream is a thread with a queue: launches return at once and run in order, later, so that who
 * reads too early reads old numbers. Managed memory lies between pages that may not be touched.
 *
 * CARD_FAIL = launch:N or allocate:N makes the N-th such call of the process fail.
 */
#include "block.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, LAUNCH_FAILED = 719 };
enum { CARDS = 2, PAGE = 4096, PARAMETERS = 192 };

typedef struct context {
    int device;
} context;

typedef struct module {
    void *library;
    struct shim_state *shim;
} module;

typedef struct function {
    struct function *next;
    module *module;
    void (*call)(void **);
    int count;
} function;

typedef struct work {
    struct work *next;
    const function *function;
    unsigned blocks, threads;
    uint64_t value[PARAMETERS];
} work;

typedef struct stream {
    struct stream *next;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    work *first, *last;
    bool busy, ending;
} stream;

static context contexts[CARDS] = { { 0 }, { 1 } };
static _Thread_local context *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream *streams;
static function *functions;
static int launches, allocations;

/* ---- faults ---------------------------------------------------------------------------------- */

/* The number behind "launch:" or "allocate:", or 0. */
static bool fails(const char *what, int *count)
{
    const char *fault = getenv("CARD_FAIL");
    size_t size = strlen(what);
    int number = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);

    return fault != NULL && strncmp(fault, what, size) == 0 && fault[size] == ':'
        && atoi(fault + size + 1) == number;
}

/* ---- devices --------------------------------------------------------------------------------- */

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int result, const char **name);
int cuGetErrorString(int result, const char **text);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceTotalMem_v2(size_t *size, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(context **out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(context *c);
int cuStreamCreate(stream **out, unsigned flags);
int cuStreamDestroy_v2(stream *s);
int cuStreamSynchronize(stream *s);
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuMemAllocManaged(uint64_t *memory, size_t size, unsigned flags);
int cuMemFree_v2(uint64_t memory);
int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
int cuModuleLoadData(module **out, const void *image);
int cuModuleUnload(module *m);
int cuModuleGetFunction(function **out, module *m, const char *name);
int cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, stream *s, void **parameters, void **extra);

int cuInit(unsigned flags) { return flags != 0; }

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return OK;
}

int cuGetErrorName(int result, const char **name)
{
    *name = result == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_INVALID_VALUE";
    return OK;
}

int cuGetErrorString(int result, const char **text)
{
    *text = result == NO_MEMORY ? "out of memory"
          : result == LAUNCH_FAILED ? "unspecified launch failure" : "invalid argument";
    return OK;
}

int cuDeviceGetCount(int *count)
{
    *count = CARDS;
    return OK;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal < 0 || ordinal >= CARDS;
}

int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "made-up card %d", device);
    return OK;
}

int cuDeviceTotalMem_v2(size_t *size, int device)
{
    *size = (size_t)4 << 30;
    return device < 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1;
    return device < 0;
}

int cuDevicePrimaryCtxRetain(context **out, int device)
{
    *out = &contexts[device];
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return device < 0; }

int cuCtxSetCurrent(context *c)
{
    current = c;
    return OK;
}

/* ---- streams --------------------------------------------------------------------------------- */

static void run_work(block_runner *runner, work *w)
{
    void *parameters[PARAMETERS];

    for (int i = 0; i < w->function->count; i++)
        parameters[i] = &w->value[i];
    for (unsigned b = 0; b < w->blocks; b++)
        block_run(runner, w->function->module->shim, w->function->call, parameters, b,
                  (int)w->threads);
}

static void *live(void *argument)
{
    stream *s = argument;
    block_runner *runner = block_runner_new();

    pthread_mutex_lock(&s->lock);
    for (;;) {
        work *w = s->first;
        if (w == NULL && s->ending)
            break;
        if (w == NULL) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        s->first = w->next;
        s->busy = true;
        pthread_mutex_unlock(&s->lock);
        run_work(runner, w);
        free(w);
        pthread_mutex_lock(&s->lock);
        s->busy = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    block_runner_free(runner);
    return NULL;
}

int cuStreamCreate(stream **out, unsigned flags)
{
    stream *s = calloc(1, sizeof *s);

    if (s == NULL || flags > 1 || current == NULL)
        return INVALID;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    pthread_create(&s->thread, NULL, live, s);
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *out = s;
    return OK;
}

static void drain(stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->first != NULL || s->busy)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void drain_all(void)
{
    pthread_mutex_lock(&lock);
    for (stream *s = streams; s != NULL; s = s->next)
        drain(s);
    pthread_mutex_unlock(&lock);
}

int cuStreamSynchronize(stream *s)
{
    if (s != NULL)
        drain(s);
    return OK;
}

int cuStreamDestroy_v2(stream *s)
{
    drain(s);
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_lock(&lock);
    for (stream **at = &streams; *at != NULL; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A page in front, which holds the size, and one behind; the memory ends at the latter. */
int cuMemAllocManaged(uint64_t *memory, size_t size, unsigned flags)
{
    size_t body = (size + PAGE - 1) / PAGE * PAGE, whole = body + 2 * (size_t)PAGE;
    char *map;

    if (current == NULL || flags != 1 || size == 0)
        return INVALID;
    if (fails("allocate", &allocations))
        return NO_MEMORY;
    map = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NO_MEMORY;
    memcpy(map, &whole, sizeof whole);
    mprotect(map, PAGE, PROT_READ);
    mprotect(map + PAGE + body, PAGE, PROT_NONE);
    memset(map + PAGE, 0x5a, body);
    *memory = (uint64_t)(uintptr_t)(map + PAGE);
    return OK;
}

int cuMemAlloc_v2(uint64_t *memory, size_t size) { return cuMemAllocManaged(memory, size, 1); }

int cuMemFree_v2(uint64_t memory)
{
    char *map = (char *)(uintptr_t)memory - PAGE;
    size_t whole;

    if (memory == 0)
        return OK;
    drain_all();
    memcpy(&whole, map, sizeof whole);
    munmap(map, whole);
    return OK;
}

int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size)
{
    memset((void *)(uintptr_t)memory, value, size);
    return OK;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    memcpy((void *)(uintptr_t)to, from, size);
    return OK;
}

/* ---- modules --------------------------------------------------------------------------------- */

int cuModuleLoadData(module **out, const void *image)
{
    module *m = calloc(1, sizeof *m);
    char path[] = "/tmp/card-module-XXXXXX"; /* the loader knows libraries by their paths */
    uint64_t size;
    int file = mkstemp(path);

    memcpy(&size, image, sizeof size);
    if (m == NULL || file < 0
        || write(file, (const char *)image + sizeof size, size) != (ssize_t)size) {
        free(m);
        return INVALID;
    }
    m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    close(file);
    m->shim = m->library != NULL ? dlsym(m->library, "shim") : NULL;
    if (m->shim == NULL) {
        fprintf(stderr, "card: %s\n", dlerror());
        free(m);
        return INVALID;
    }
    *out = m;
    return OK;
}

int cuModuleUnload(module *m)
{
    drain_all();
    pthread_mutex_lock(&lock);
    for (function **at = &functions; *at != NULL;) {
        function *f = *at;
        if (f->module == m) {
            *at = f->next;
            free(f);
        } else {
            at = &f->next;
        }
    }
    pthread_mutex_unlock(&lock);
    dlclose(m->library);
    free(m);
    return OK;
}

int cuModuleGetFunction(function **out, module *m, const char *name)
{
    char symbol[128];
    function *f = calloc(1, sizeof *f);
    const int *count;

    if (f == NULL)
        return NO_MEMORY;
    f->module = m;
    snprintf(symbol, sizeof symbol, "shim_call_%s", name);
    *(void **)&f->call = dlsym(m->library, symbol);
    snprintf(symbol, sizeof symbol, "shim_count_%s", name);
    count = dlsym(m->library, symbol);
    if (f->call == NULL || count == NULL || *count > PARAMETERS) {
        free(f);
        return NOT_FOUND;
    }
    f->count = *count;
    pthread_mutex_lock(&lock);
    f->next = functions;
    functions = f;
    pthread_mutex_unlock(&lock);
    *out = f;
    return OK;
}

/* Parameters of generated kernels are pointers and numbers of 8 bytes. */
int cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, stream *s, void **parameters, void **extra)
{
    work *w;

    if (current == NULL || s == NULL || gx == 0 || gy != 1 || gz != 1 || bx != 256 || by != 1
        || bz != 1 || shared != 0 || extra != NULL)
        return INVALID;
    if (fails("launch", &launches))
        return LAUNCH_FAILED;
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return NO_MEMORY;
    *w = (work){ .function = f, .blocks = gx, .threads = bx };
    for (int i = 0; i < f->count; i++)
        memcpy(&w->value[i], parameters[i], sizeof w->value[i]);
    pthread_mutex_lock(&s->lock);
    if (s->first == NULL)
        s->first = w;
    else
        s->last->next = w;
    s->last = w;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return OK;
}
