/*
 * cuda_device.c - the cuda device: NVIDIA's cards through the driver's own interface.
 *
 * Its memory, and what runs when, are cuda_memory.c's and cuda_stream.c's; kernels are
 * cuda_kernel.c's.
 */
#include "cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where no limit is given. */
static const size_t plenty = (size_t)1 << 30;

pons_status cuda_check(const cuda_device *d, int result, const char *what, pons_error *err)
{
    const char *name = "unknown", *why = "unknown error";

    if (result == 0)
        return PONS_OK;
    d->driver.error_name(result, &name);
    d->driver.error_text(result, &why);
    return pons_fail(err, PONS_DEVICE, "cannot %s on device 'cuda:%d': %s (%s)", what, d->ordinal,
                     why != NULL ? why : "unknown error", name != NULL ? name : "unknown");
}

static pons_status find_device(cuda_device *d, pons_error *err)
{
    int count = 0, major = 0, minor = 0;

    if (cuda_check(d, d->driver.count(&count), "count devices", err) != PONS_OK)
        return PONS_DEVICE;
    if (d->ordinal >= count)
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda:%d': the driver has %d "
                         "device%s", d->ordinal, count, count == 1 ? "" : "s");
    if (cuda_check(d, d->driver.get(&d->device, d->ordinal), "find the card", err) != PONS_OK
        || cuda_check(d, d->driver.attribute(&major, CUDA_CAPABILITY_MAJOR, d->device),
                      "ask for the capability", err) != PONS_OK
        || cuda_check(d, d->driver.attribute(&minor, CUDA_CAPABILITY_MINOR, d->device),
                      "ask for the capability", err) != PONS_OK)
        return PONS_DEVICE;
    d->architecture = 10 * major + minor;
    return PONS_OK;
}

static void device_close(void *device)
{
    cuda_device *d = device;

    if (d->context != NULL) {
        d->driver.use(d->context);
        dnn_close(&d->dnn);
        blas_close(&d->blas);
        cuda_library_free(d);
        cuda_queues_close(d);
    }
    if (d->retained)
        d->driver.release(d->device);
    cuda_compiler_close(&d->compiler);
    cuda_sensors_close(d->sensors);
    cuda_driver_close(&d->driver);
    free(d->cache_dir);
    free(d);
}

static pons_status open_parts(cuda_device *d, const pons_device_settings *settings, pons_error *err)
{
    if (cuda_driver_open(&d->driver, err) != PONS_OK || find_device(d, err) != PONS_OK
        || cuda_compiler_open(&d->compiler, d->driver.cuda, d->ordinal, d->architecture, err)
           != PONS_OK
        || cuda_check(d, d->driver.retain(&d->context, d->device), "take the card", err) != PONS_OK)
        return PONS_DEVICE;
    d->retained = true;
    d->toolkit = d->compiler.major < d->driver.cuda ? d->compiler.major : d->driver.cuda;
    if (cuda_check(d, d->driver.use(d->context), "use the card", err) != PONS_OK
        || cuda_queues_open(d, err) != PONS_OK)
        return PONS_DEVICE;
    dnn_find(&d->dnn);
    dnn_start(&d->dnn, d->queue[PONS_STREAM_KERNELS]);
    if (settings->cache_dir != NULL && settings->cache_dir[0] != '\0'
        && (d->cache_dir = strdup(settings->cache_dir)) == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': out of memory");
    return PONS_OK;
}

static pons_status device_open(const pons_device_settings *settings, void **device, pons_error *err)
{
    cuda_device *d = calloc(1, sizeof *d);

    if (d == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot open device 'cuda': out of memory");
    d->ordinal = settings->index;
    d->threads = settings->threads > 0 ? settings->threads : 1;
    d->deterministic = settings->deterministic;
    d->workspace_limit = settings->workspace_limit > 0 ? settings->workspace_limit : plenty;
    if (open_parts(d, settings, err) != PONS_OK) {
        device_close(d);
        return PONS_DEVICE;
    }
    *device = d;
    return PONS_OK;
}

static void device_facts(void *device, pons_device_facts *facts)
{
    const cuda_device *d = device;
    char dnn[200], ptx[24] = "";
    size_t memory = 0;
    int version = 0;

    *facts = (pons_device_facts){ .threads = d->threads };
    d->driver.name(facts->name, (int)sizeof facts->name, d->device);
    d->driver.address(facts->address, (int)sizeof facts->address, d->device);
    d->driver.memory(&memory, d->device);
    d->driver.version(&version);
    facts->memory_size = memory;
    facts->bf16 = d->architecture >= 80;
    facts->fp16 = d->architecture >= 53;
    facts->tf32 = d->architecture >= 80;
    dnn_describe(&d->dnn, dnn, sizeof dnn);
    if (d->compiler.translated)
        snprintf(ptx, sizeof ptx, " compute_%d", d->compiler.target);
    snprintf(facts->library, sizeof facts->library, "driver %d.%d, NVRTC %d.%d%s%s, %s",
             version / 1000, version % 1000 / 10, d->compiler.major, d->compiler.minor,
             ptx[0] != '\0' ? " by PTX of" : "", ptx, dnn);
    snprintf(facts->features, sizeof facts->features, "sm_%d nvrtc_%d.%d%s cudnn_%d",
             d->architecture, d->compiler.major, d->compiler.minor, ptx, d->dnn.version);
}

static void device_describe(void *device, char *text, size_t size)
{
    cuda_device *d = device;
    pons_device_facts facts;
    char blas[1040], sensors[640];

    device_facts(device, &facts);
    blas_describe(&d->blas, d->toolkit, blas, sizeof blas);
    cuda_sensors_describe(facts.address, sensors, sizeof sensors);
    snprintf(text, size, "%s, %s%s%s", facts.library, blas, sensors[0] != '\0' ? ", " : "",
             sensors);
}

static pons_status device_attach(void *device, pons_error *err)
{
    const cuda_device *d = device;

    return cuda_check(d, d->driver.use(d->context), "use the card", err);
}

static pons_status device_state(void *device, pons_device_sensors *state, pons_error *err)
{
    cuda_device *d = device;
    char address[32] = "";

    if (d->sensors == NULL
        && (cuda_check(d, d->driver.address(address, (int)sizeof address, d->device),
                       "ask for the address", err) != PONS_OK
            || cuda_sensors_open(address, &d->sensors, err) != PONS_OK))
        return PONS_DEVICE;
    return cuda_sensors_read(d->sensors, state, err);
}

static int device_count(void)
{
    pons_error unread = PONS_ERROR_INIT;
    cuda_driver driver;
    int count = 0;

    if (cuda_driver_open(&driver, &unread) != PONS_OK)
        return 0;
    if (driver.count(&count) != 0)
        count = 0;
    cuda_driver_close(&driver);
    return count;
}

static void device_tune(void *device, const pons_autotune_cache *tuning)
{
    cuda_device *d = device;

    d->tuning = tuning;
}

const pons_device_operations cuda_operations = {
    .open = device_open,
    .close = device_close,
    .facts = device_facts,
    .attach = device_attach,
    .prepare = cuda_prepare,
    .memory = { .allocate = cuda_allocate, .release = cuda_release,
                .allocate_host = cuda_allocate_host, .release_host = cuda_release_host,
                .copy = cuda_copy },
    .streams = { .synchronize = cuda_synchronise, .event_record = cuda_mark,
                 .stream_wait_event = cuda_follow, .event_synchronize = cuda_reach,
                 .comm_stream = cuda_sums, .stream_wait_stream = cuda_precede },
    .capture = { .begin = cuda_record, .end = cuda_end_record, .launch = cuda_replay,
                 .destroy = cuda_forget },
    .profiling = { .timer_start = cuda_time, .timer_stop = cuda_timed,
                   .range_begin = cuda_begin_range, .range_end = cuda_end_range,
                   .sensors = device_state, .peak = cuda_limits },
    .compile = cuda_compile_waiting,
    .autotune = device_tune,
    .describe = device_describe,
    .count = device_count,
};

PONS_DEVICE(cuda, "1.0", "NVIDIA's cards, with kernels that are compiled when they are needed",
            cuda_operations);
