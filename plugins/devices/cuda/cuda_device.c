/*
 * cuda_device.c - the cuda device: NVIDIA GPUs through the driver API.
 *
 * cuda_memory.c has its memory, cuda_stream.c its streams and events, cuda_kernel.c its kernels.
 */
#include "cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

/* Default limit of a workspace. */
static const size_t workspace_default = (size_t)1 << 30;

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
    if (cuda_check(d, d->driver.get(&d->device, d->ordinal), "find the GPU", err) != PONS_OK
        || cuda_check(d, d->driver.attribute(&major, CUDA_CAPABILITY_MAJOR, d->device),
                      "read the compute capability", err) != PONS_OK
        || cuda_check(d, d->driver.attribute(&minor, CUDA_CAPABILITY_MINOR, d->device),
                      "read the compute capability", err) != PONS_OK)
        return PONS_DEVICE;
    d->architecture = 10 * major + minor;
    return PONS_OK;
}

static void device_close(void *device)
{
    cuda_device *d = device;

    if (d->context != NULL) {
        d->driver.use(d->context);
        cudnn_close(&d->dnn);
        cublaslt_close(&d->blas);
        module_cache_free(d);
        cuda_streams_close(d);
    }
    if (d->retained)
        d->driver.release(d->device);
    cuda_compiler_close(&d->compiler);
    nvml_sensors_close(d->sensors);
    dcgm_fields_close(d->fields);
    cuda_driver_close(&d->driver);
    free(d->cache_dir);
    free(d);
}

static pons_status open_parts(cuda_device *d, const pons_device_settings *settings, pons_error *err)
{
    if (cuda_driver_open(&d->driver, err) != PONS_OK || find_device(d, err) != PONS_OK
        || cuda_compiler_open(&d->compiler, d->driver.cuda, d->ordinal, d->architecture, err)
           != PONS_OK
        || cuda_check(d, d->driver.retain(&d->context, d->device), "retain the context", err)
           != PONS_OK)
        return PONS_DEVICE;
    d->retained = true;
    d->toolkit = min_int(d->compiler.major, d->driver.cuda);
    if (cuda_check(d, d->driver.use(d->context), "use the GPU", err) != PONS_OK
        || cuda_streams_open(d, err) != PONS_OK)
        return PONS_DEVICE;
    cudnn_find(&d->dnn);
    cudnn_start(&d->dnn, d->stream[PONS_STREAM_KERNELS]);
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
    d->workspace_limit = settings->workspace_limit > 0 ? settings->workspace_limit
        : workspace_default;
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
    cudnn_describe(&d->dnn, dnn, sizeof dnn);
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
    cublaslt_describe(&d->blas, d->toolkit, blas, sizeof blas);
    nvml_sensors_describe(facts.address, sensors, sizeof sensors);
    snprintf(text, size, "%s, %s%s%s", facts.library, blas, sensors[0] != '\0' ? ", " : "",
             sensors);
}

static pons_status device_attach(void *device, pons_error *err)
{
    const cuda_device *d = device;

    return cuda_check(d, d->driver.use(d->context), "use the GPU", err);
}

static pons_status device_sensors(void *device, pons_device_sensors *state, pons_error *err)
{
    cuda_device *d = device;
    char address[32] = "";

    if (d->sensors == NULL
        && (cuda_check(d, d->driver.address(address, (int)sizeof address, d->device),
                       "read the PCI address", err) != PONS_OK
            || nvml_sensors_open(address, &d->sensors, err) != PONS_OK))
        return PONS_DEVICE;
    if (!d->fields_asked)
        d->fields = dcgm_fields_open(address);
    d->fields_asked = true;
    if (nvml_sensors_read(d->sensors, state, err) == PONS_OK)
        dcgm_fields_read(d->fields, state);
    return err->status;
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

static void device_autotune(void *device, const pons_autotune_cache *autotune)
{
    cuda_device *d = device;

    d->autotune = autotune;
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
    .streams = { .synchronize = cuda_synchronize, .event_record = cuda_event_record,
                 .stream_wait_event = cuda_stream_wait_event, .event_synchronize
                     = cuda_event_synchronize,
                 .comm_stream = cuda_comm_stream, .stream_wait_stream = cuda_stream_wait_stream },
    .capture = { .begin = cuda_capture_begin, .end = cuda_capture_end, .launch = cuda_graph_launch,
                 .destroy = cuda_graph_destroy },
    .profiling = { .timer_start = cuda_timer_start, .timer_stop = cuda_timer_stop,
                   .range_begin = nvtx_range_begin, .range_end = nvtx_range_end,
                   .sensors = device_sensors, .peak = cuda_peak_read },
    .compile = module_cache_compile,
    .autotune = device_autotune,
    .describe = device_describe,
    .count = device_count,
    .colored_range_begin = nvtx_colored_range_begin,
};

PONS_DEVICE(cuda, "1.0", "NVIDIA GPUs, with kernels compiled when they are needed",
            PONS_NO_OPTIONS, cuda_operations);
