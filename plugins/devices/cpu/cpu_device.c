/*
 * cpu_device.c - the cpu device: memory of this process, and a table of kernels by kind.
 *
 * A replica gets one of n contiguous shares of this process's processors (R20). Its kernels run as
 * OpenMP regions of exactly that many threads.
 */
#include "cpu/cache_size.h"
#include "cpu/cpu_testing.h"
#include "cpu/conv/direct/direct.h"
#include "cpu/alloc_probe.h"
#include "cpu/isa.h"
#include "cpu/peak.h"
#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/conv/onednn/onednn.h"
#include "cpu/pool/row_loops.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/integer.h"

static const cpu_prepare prepare_by_kind[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_MAP] = map_prepare,
    [PONS_KERNEL_POOL] = pool_prepare,
    [PONS_KERNEL_POOL_GRADIENT] = pool_prepare,
    [PONS_KERNEL_RESIZE] = resize_prepare,
    [PONS_KERNEL_RESIZE_GRADIENT] = resize_prepare,
    [PONS_KERNEL_TRANSPOSE] = move_prepare,
    [PONS_KERNEL_FLIP] = move_prepare,
    [PONS_KERNEL_CROP] = move_prepare,
    [PONS_KERNEL_PAD] = move_prepare,
    [PONS_KERNEL_PAD_GRADIENT] = pad_gradient_prepare,
    [PONS_KERNEL_CONCATENATE] = move_prepare,
    [PONS_KERNEL_GATHER] = move_prepare,
    [PONS_KERNEL_COPY] = move_prepare,
    [PONS_KERNEL_ARG_MAX] = argmax_prepare,
    [PONS_KERNEL_REDUCE_MINMAX_GRADIENT] = argmax_axes_prepare,
    [PONS_KERNEL_CONVOLUTION] = convolution_prepare,
    [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = convolution_prepare,
    [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = convolution_prepare,
    [PONS_KERNEL_MATMUL] = matmul_prepare,
    [PONS_KERNEL_OP] = op_prepare,
    [PONS_KERNEL_PATCH] = patch_prepare,
    [PONS_KERNEL_PATCH_NORMAL] = patch_prepare,
    [PONS_KERNEL_PATCH_ACCUMULATE] = patch_prepare,
};

/* The processors of this replica's share; returns their count. */
static int share_of(const pons_device_settings *settings, cpu_set_t *mine)
{
    cpu_set_t all;
    int n, first, end, at = 0, count = settings->count > 0 ? settings->count : 1;

    CPU_ZERO(mine);
    CPU_ZERO(&all);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) == 0)
        return 1;
    n = CPU_COUNT(&all);
    cpu_threads_share(settings->index, count, n, &first, &end);
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all)) {
            if (at >= first && at < end)
                CPU_SET(c, mine);
            at++;
        }
    return end - first;
}

/*
 * An output larger than the last-level cache is evicted before its first element is read again. The
 * largest caches are shared by many processors, so the threshold has an upper bound.
 */
#define NON_TEMPORAL_SIZE_MAX ((int64_t)1 << 26)

static int64_t non_temporal_size(void)
{
    int64_t cache = cache_size_largest("/sys/devices/system/cpu/cpu0/cache");

    return cache > 0 && cache < NON_TEMPORAL_SIZE_MAX ? cache : NON_TEMPORAL_SIZE_MAX;
}

static pons_status device_open(const pons_device_settings *settings, void **device, pons_error *err)
{
    cpu_device *d = calloc(1, sizeof *d);
    int processors;

    if (d == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cpu': out of memory");
    d->settings = *settings;
    processors = share_of(settings, &d->share);
    d->threads = settings->threads > 0 ? settings->threads : processors;
    d->compiles_maps = true;
    d->non_temporal_size = non_temporal_size();
    cpu_device_choose_isa(d, isa_best());
    if (onednn_open(&d->library, err) != PONS_OK) {
        free(d);
        return err->status;
    }
    *device = d;
    return PONS_OK;
}

static void device_close(void *device)
{
    cpu_device *d = device;

    onednn_close(d->library);
    free(d);
}

/*
 * The value of the first line "key : value" of /proc/cpuinfo. 'value' is unchanged if no line has
 * the key.
 */
static void read_processor(const char *key, char *value, size_t size)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen("/proc/cpuinfo", "re");

    while (f != NULL && getline(&line, &room, f) > 0) {
        char *text = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || text == NULL)
            continue;
        text[strcspn(text, "\n")] = '\0';
        snprintf(value, size, "%.*s", (int)size - 1, text + 1 + strspn(text + 1, " "));
        break;
    }
    free(line);
    if (f != NULL)
        fclose(f);
}

/*
 * The instruction sets by which our kernels and oneDNN's are selected, among those that this
 * processor has and this build uses.
 */
static void processor_features(char *out, size_t size)
{
    static const struct {
        const char *name;
        isa set;
    } features[] = {
        { "sse4_1", ISA_BASELINE }, { "avx", ISA_AVX2 }, { "fma", ISA_AVX2 },
        { "f16c", ISA_AVX2 }, { "avx2", ISA_AVX2 }, { "avx_vnni", ISA_AVX512 },
        { "avx512f", ISA_AVX512 }, { "avx512bw", ISA_AVX512 }, { "avx512vl", ISA_AVX512 },
        { "avx512dq", ISA_AVX512 }, { "avx512_vnni", ISA_AVX512BF16 },
        { "avx512_bf16", ISA_AVX512BF16 }, { "avx512_fp16", ISA_AMX }, { "amx_tile", ISA_AMX },
        { "amx_bf16", ISA_AMX }, { "amx_int8", ISA_AMX }, { "amx_fp16", ISA_AMX }
    };
    char flags[8192] = "", *rest = NULL;
    size_t used = 0;

    read_processor("flags", flags, sizeof flags);
    out[0] = '\0';
    for (char *flag = strtok_r(flags, " ", &rest); flag != NULL;
         flag = strtok_r(NULL, " ", &rest)) {
        for (size_t i = 0; i < sizeof features / sizeof *features && used < size; i++) {
            if (features[i].set <= isa_limit() && strcmp(flag, features[i].name) == 0)
                used += (size_t)snprintf(out + used, size - used, "%s%s",
                                         used > 0 ? " " : "", flag);
        }
    }
}

static void device_facts(void *device, pons_device_facts *facts)
{
    const cpu_device *d = device;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    *facts = (pons_device_facts){ .threads = d->threads, .host_memory = true };
    snprintf(facts->name, sizeof facts->name, "processor");
    read_processor("model name", facts->name, sizeof facts->name);
    processor_features(facts->features, sizeof facts->features);
    onednn_version(facts->library, sizeof facts->library);
    facts->bf16 = isa_has_bf16();
    facts->memory_size = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static void *device_allocate(void *device, size_t size, pons_error *err)
{
    void *memory = mmap(NULL, size > 0 ? size : 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        pons_fail(err, PONS_DEVICE, "cannot allocate %zu bytes on device 'cpu': out of memory",
                  size);
        return NULL;
    }
    madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}

static void device_release(void *device, void *memory, size_t size)
{
    if (memory != NULL)
        munmap(memory, size > 0 ? size : 1);
}

/* The threads started from this one inherit its processors. */
static pons_status device_attach(void *device, pons_error *err)
{
    const cpu_device *d = device;

    if (d->settings.count > 1 && CPU_COUNT(&d->share) > 0
        && sched_setaffinity(0, sizeof d->share, &d->share) != 0)
        return pons_fail(err, PONS_DEVICE, "cannot bind device 'cpu:%d' to its processors",
                         d->settings.index);
    return alloc_probe_start_threads(d->threads, err);
}

static pons_status device_prepare(void *device, const pons_request *request, pons_kernel *kernel,
                                  bool *supported, pons_error *err)
{
    cpu_prepare prepare = request->kind > 0 && request->kind < PONS_KERNEL_KIND_COUNT
                        ? prepare_by_kind[request->kind] : NULL;

    *supported = false;
    return prepare == NULL ? PONS_OK : prepare(device, request, kernel, supported, err);
}

/* A set without a row of its own has the last row. */
void cpu_device_choose_isa(void *device, isa set)
{
    cpu_device *d = device;
    int row = min_int((int)set, isa_rows_built() - 1);

    d->isa = set;
    d->lanes = isa_map_lanes(row);
    d->few_channels = isa_few_channels_loops(set);
    d->direct = isa_direct_lanes(row);
    d->rows = isa_row_loops(row);
}

void cpu_device_choose_row(void *device, int row)
{
    cpu_device_choose_isa(device, row == isa_rows_count() - 1 ? isa_best() : (isa)row);
}

void cpu_device_interpret(void *device)
{
    cpu_device *d = device;

    d->compiles_maps = false;
}

void cpu_device_store_non_temporal(void *device)
{
    cpu_device *d = device;

    d->non_temporal_size = 1;
}

const pons_device_operations cpu_operations = {
    .open = device_open,
    .close = device_close,
    .facts = device_facts,
    .attach = device_attach,
    .prepare = device_prepare,
    .memory = { .allocate = device_allocate, .release = device_release },
    .profiling = { .peak = peak_measure },
};

PONS_DEVICE(cpu, "1.0", "this machine's processors, with OpenMP and vector code",
            PONS_NO_OPTIONS, cpu_operations);
