/*
 * cupti_trace.c - trace the kernels of a GPU with their times, those of replayed graphs included,
 * by CUPTI's activity records. A library of its own: the driver loads it from
 * CUDA_INJECTION64_PATH, and it finds CUPTI by itself.
 *
 * CUPTI_TRACE     the prefix of its files' names; the process id follows
 *
 *   .kernels      a line for each kernel, copy and fill, in CUPTI's order: start and duration in
 *                 microseconds, stream, grid, block, name
 *   .summary      a step ends with its copy to the host. Of the later half of the steps: their
 *                 time, the share in which nothing ran, then for each kernel its launches and
 *                 microseconds a step, its share, grid, block and name, the longest first
 *
 * The few functions and the first members of the records are declared here as CUPTI has had them
 * since CUDA 11. A build with CUPTI's headers compares them.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIND_COPY = 1, KIND_FILL = 2, KIND_KERNEL = 10 };
enum { COPY_TO_DEVICE = 1, COPY_TO_HOST = 2 };
enum { NO_MORE_RECORDS = 12, FLUSH_FORCED = 1 };
enum { BUFFER_SIZE = 8 << 20, BUFFER_ALIGNMENT = 8 };

/* The first members of CUPTI's records of kernels, copies and fills. */
typedef struct kernel_record {
    uint32_t kind;
    uint8_t cache, shared;
    uint16_t registers;
    uint32_t requested, executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, dynamic_shared;
    uint32_t local, local_total, correlation;
    int64_t number;
    const char *name;
} kernel_record;

typedef struct copy_record {
    uint32_t kind;
    uint8_t way, from, to, flags;
    uint64_t size, start, end;
    uint32_t device, context, stream;
} copy_record;

typedef struct fill_record {
    uint32_t kind, value;
    uint64_t size, start, end;
    uint32_t device, context, stream;
} fill_record;

#if __has_include(<cupti_activity.h>) && __has_include(<cuda.h>)
#include <cupti_activity.h>
#include <cupti_version.h>
#if CUPTI_API_VERSION >= 18
#define SAME(ours, member, theirs, field)                                                         \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, field), #theirs "." #field)
SAME(kernel_record, start, CUpti_ActivityKernel9, start);
SAME(kernel_record, end, CUpti_ActivityKernel9, end);
SAME(kernel_record, stream, CUpti_ActivityKernel9, streamId);
SAME(kernel_record, grid, CUpti_ActivityKernel9, gridX);
SAME(kernel_record, block, CUpti_ActivityKernel9, blockX);
SAME(kernel_record, name, CUpti_ActivityKernel9, name);
SAME(copy_record, way, CUpti_ActivityMemcpy5, copyKind);
SAME(copy_record, start, CUpti_ActivityMemcpy5, start);
SAME(copy_record, stream, CUpti_ActivityMemcpy5, streamId);
SAME(fill_record, start, CUpti_ActivityMemset4, start);
SAME(fill_record, stream, CUpti_ActivityMemset4, streamId);
_Static_assert((int)KIND_KERNEL == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kind of kernels");
_Static_assert((int)KIND_COPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY, "kind of copies");
_Static_assert((int)KIND_FILL == (int)CUPTI_ACTIVITY_KIND_MEMSET, "kind of fills");
_Static_assert((int)COPY_TO_HOST == (int)CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, "copies to the host");
_Static_assert((int)COPY_TO_DEVICE == (int)CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, "copies to the device");
_Static_assert((int)NO_MORE_RECORDS == (int)CUPTI_ERROR_MAX_LIMIT_REACHED, "the end of a buffer");
_Static_assert((int)FLUSH_FORCED == (int)CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, "to flush");
#endif
#endif

typedef void give_buffer(uint8_t **buffer, size_t *size, size_t *most);
typedef void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                         size_t filled);

static struct {
    int (*enable)(uint32_t kind);
    int (*callbacks)(give_buffer *give, take_buffer *take);
    int (*next)(uint8_t *buffer, size_t filled, void **record);
    int (*dropped)(void *context, uint32_t stream, size_t *count);
    int (*flush)(uint32_t flag);
} cupti;

/* Recorded work. */
typedef struct work {
    uint64_t start, end;
    const char *name;      /* one of 'names'                                                      */
    uint32_t stream;
    int32_t grid[3], block[3];
    uint8_t way;           /* direction of a copy                                                 */
} work;

static struct {
    pthread_mutex_t lock;
    FILE *kernels;
    char path[3900];
    size_t work_count, work_room, name_count, name_room, dropped;
    work *work;
    char **name;
    bool failed;
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

__attribute__((visibility("default"))) int InitializeInjection(void);

/* ---- records of CUPTI ------------------------------------------------------------------------ */

/* Grow a list by one; NULL: out of memory, and the trace has failed. */
static void *grow(void *list, size_t count, size_t *room, size_t size)
{
    void *grown = list;

    if (count < *room)
        return list;
    *room = 2 * *room + 64;
    grown = realloc(list, *room * size);
    trace.failed |= grown == NULL;
    return grown;
}

/* Keep a copy of a name, because CUPTI's own live as long as their module. */
static const char *keep_name(const char *name)
{
    for (size_t i = 0; i < trace.name_count; i++)
        if (strcmp(trace.name[i], name) == 0)
            return trace.name[i];
    char **list = grow(trace.name, trace.name_count, &trace.name_room, sizeof *list);
    char *copy = strdup(name);

    if (list != NULL)
        trace.name = list;
    trace.failed |= copy == NULL;
    if (trace.failed) {
        free(copy);
        return "";
    }
    return list[trace.name_count++] = copy;
}

static void add_work(const work *w)
{
    work *list = grow(trace.work, trace.work_count, &trace.work_room, sizeof *list);

    if (list != NULL)
        trace.work = list;
    if (trace.failed)
        return;
    list[trace.work_count++] = *w;
    fprintf(trace.kernels, "%.3f %.3f %u %d,%d,%d %d,%d,%d %s\n",
            1e-3 * (double)(w->start - list->start), 1e-3 * (double)(w->end - w->start), w->stream,
            w->grid[0], w->grid[1], w->grid[2], w->block[0], w->block[1], w->block[2], w->name);
}

static void add_kernel(const void *record)
{
    const kernel_record *k = record;
    work w = { k->start, k->end, keep_name(k->name != NULL ? k->name : "?"), k->stream,
               { 0 }, { 0 }, 0 };

    memcpy(w.grid, k->grid, sizeof w.grid);
    memcpy(w.block, k->block, sizeof w.block);
    add_work(&w);
}

static void add_copy(const void *record)
{
    const copy_record *c = record;
    const char *name = c->way == COPY_TO_HOST ? "copy_to_host"
                     : c->way == COPY_TO_DEVICE ? "copy_to_device" : "copy";

    add_work(&(work){ c->start, c->end, keep_name(name), c->stream, { 0 }, { 0 }, c->way });
}

static void add_fill(const void *record)
{
    const fill_record *f = record;

    add_work(&(work){ f->start, f->end, keep_name("fill"), f->stream, { 0 }, { 0 }, 0 });
}

static void add_record(const void *record)
{
    uint32_t kind;

    memcpy(&kind, record, sizeof kind);
    if (kind == KIND_KERNEL)
        add_kernel(record);
    else if (kind == KIND_COPY)
        add_copy(record);
    else if (kind == KIND_FILL)
        add_fill(record);
}

static void give(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_SIZE);
    *size = *buffer != NULL ? BUFFER_SIZE : 0;
    *most = 0;
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t filled)
{
    void *record = NULL;
    size_t dropped = 0;

    pthread_mutex_lock(&trace.lock);
    while (trace.kernels != NULL && filled > 0 && cupti.next(buffer, filled, &record) == 0)
        add_record(record);
    if (cupti.dropped(context, stream, &dropped) == 0)
        trace.dropped += dropped;
    pthread_mutex_unlock(&trace.lock);
    free(buffer);
}

/* ---- the summary ----------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
    const work *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static int by_kernel(const void *a, const void *b)
{
    const work *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order == 0)
        order = memcmp(x->grid, y->grid, sizeof x->grid);
    return order != 0 ? order : memcmp(x->block, y->block, sizeof x->block);
}

/* Sum of one kernel: its first launch, their number, and their time. */
typedef struct kernel_sum {
    const work *first;
    size_t count;
    double time;
} kernel_sum;

static int by_time(const void *a, const void *b)
{
    const kernel_sum *x = a, *y = b;

    return x->time != y->time ? (x->time < y->time) - (x->time > y->time)
                              : by_kernel(x->first, y->first);
}

/* The later half of the steps: the work between 'begin' and 'end', each a copy to the host. */
typedef struct steps {
    size_t begin, end, count;
} steps;

static steps find_steps(void)
{
    size_t copies = 0, seen = 0;
    steps s = { 0, 0, 0 };

    for (size_t i = 0; i < trace.work_count; i++)
        copies += trace.work[i].way == COPY_TO_HOST;
    for (size_t i = 0; i < trace.work_count; i++) {
        if (trace.work[i].way != COPY_TO_HOST)
            continue;
        if (seen++ == copies / 2)
            s.begin = i;
        s.end = i;
    }
    s.count = copies > 0 ? copies - 1 - copies / 2 : 0;
    return s;
}

/* Nanoseconds with running work, without copies from and to the host, which run beside kernels. */
static double busy_time(const steps *s)
{
    uint64_t reached = trace.work[s->begin].end, busy = 0;

    for (size_t i = s->begin + 1; i <= s->end; i++) {
        const work *w = trace.work + i;

        if (w->way == COPY_TO_HOST || w->way == COPY_TO_DEVICE || w->end <= reached)
            continue;
        busy += w->end - (w->start > reached ? w->start : reached);
        reached = w->end;
    }
    return (double)busy;
}

/* Sum up 'work' by kernel; 'sum' has a capacity of 'count'. */
static size_t add_up(work *list, size_t count, kernel_sum *sum)
{
    size_t sums = 0;

    qsort(list, count, sizeof *list, by_kernel);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || by_kernel(list + i - 1, list + i) != 0)
            sum[sums++] = (kernel_sum){ list + i, 0, 0 };
        sum[sums - 1].count++;
        sum[sums - 1].time += (double)(list[i].end - list[i].start);
    }
    qsort(sum, sums, sizeof *sum, by_time);
    return sums;
}

static void write_kernels(FILE *to, const steps *s, work *list, kernel_sum *sum)
{
    size_t count = s->end - s->begin, sums = add_up(list, count, sum);
    double all = 0;

    for (size_t i = 0; i < sums; i++)
        all += sum[i].time;
    fprintf(to, "%zu kernels, copies and fills a step, %.3f us of their own\n", count / s->count,
            1e-3 * all / (double)s->count);
    for (size_t i = 0; i < sums; i++) {
        const work *w = sum[i].first;

        fprintf(to, "%6.2f %10.3f us %5.1f %% %d,%d,%d %d,%d,%d %s\n",
                (double)sum[i].count / (double)s->count, 1e-3 * sum[i].time / (double)s->count,
                all > 0 ? 100 * sum[i].time / all : 0, w->grid[0], w->grid[1], w->grid[2],
                w->block[0], w->block[1], w->block[2], w->name);
    }
}

static void write_steps(FILE *to)
{
    steps s;
    double time;
    work *list = malloc((trace.work_count + 1) * sizeof *list);
    kernel_sum *sum = malloc((trace.work_count + 1) * sizeof *sum);

    qsort(trace.work, trace.work_count, sizeof *trace.work, by_start);
    s = find_steps();
    if (s.count == 0 || list == NULL || sum == NULL) {
        fprintf(to, "no steps\n");
        goto done;
    }
    time = (double)(trace.work[s.end].end - trace.work[s.begin].end);
    fprintf(to, "%zu steps of %.3f us, %.2f %% of it nothing runs\n", s.count,
            1e-3 * time / (double)s.count, time > 0 ? 100 * (1 - busy_time(&s) / time) : 0);
    memcpy(list, trace.work + s.begin + 1, (s.end - s.begin) * sizeof *list);
    write_kernels(to, &s, list, sum);
done:
    free(list);
    free(sum);
}

static void write_summary(void)
{
    char path[4096];
    FILE *to;

    snprintf(path, sizeof path, "%s.summary", trace.path);
    to = fopen(path, "w");
    if (to == NULL)
        return;
    if (trace.failed || trace.dropped > 0)
        fprintf(to, "%zu records are lost%s\n", trace.dropped,
                trace.failed ? ", and those for which there was no memory" : "");
    if (trace.work_count > 0)
        write_steps(to);
    fclose(to);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void end_trace(void)
{
    cupti.flush(FLUSH_FORCED);
    pthread_mutex_lock(&trace.lock);
    if (trace.kernels != NULL) {
        fclose(trace.kernels);
        trace.kernels = NULL;
        write_summary();
    }
    pthread_mutex_unlock(&trace.lock);
}

/* Search the loader's path, then the toolkit's folders. */
static void *open_cupti(void)
{
    static const char *const names[] = {
        "libcupti.so.13", "libcupti.so.12", "libcupti.so",
        "/usr/local/cuda/lib64/libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.12",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"
    };
    void *library = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

static bool find_functions(void *library)
{
    *(void **)&cupti.enable = dlsym(library, "cuptiActivityEnable");
    *(void **)&cupti.callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
    *(void **)&cupti.next = dlsym(library, "cuptiActivityGetNextRecord");
    *(void **)&cupti.dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords");
    *(void **)&cupti.flush = dlsym(library, "cuptiActivityFlushAll");
    return cupti.enable != NULL && cupti.callbacks != NULL && cupti.next != NULL
        && cupti.dropped != NULL && cupti.flush != NULL;
}

static bool open_file(const char *prefix)
{
    char path[4096];

    snprintf(trace.path, sizeof trace.path, "%s.%ld", prefix, (long)getpid());
    snprintf(path, sizeof path, "%s.kernels", trace.path);
    trace.kernels = fopen(path, "w");
    return trace.kernels != NULL;
}

/* Start the trace. Returns NULL or the reason of a failure; the process runs on without a trace. */
static const char *begin_trace(void)
{
    const char *prefix = getenv("CUPTI_TRACE");
    void *library = prefix != NULL ? open_cupti() : NULL;

    if (prefix == NULL)
        return "CUPTI_TRACE names no files";
    if (library == NULL)
        return "there is no libcupti.so";
    if (!find_functions(library))
        return "libcupti.so lacks functions";
    if (!open_file(prefix))
        return "its files cannot be written";
    if (cupti.callbacks(give, take) != 0 || cupti.enable(KIND_KERNEL) != 0
        || cupti.enable(KIND_COPY) != 0 || cupti.enable(KIND_FILL) != 0)
        return "CUPTI gives no records";
    return atexit(end_trace) == 0 ? NULL : "out of memory";
}

int InitializeInjection(void)
{
    const char *lacks = begin_trace();

    if (lacks != NULL)
        fprintf(stderr, "cupti_trace: %s\n", lacks);
    return 1;
}
