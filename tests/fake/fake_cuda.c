/*
 * fake_cuda.c - a libcuda whose GPUs compute on this processor: errors, devices and contexts.
 */
#include "fake_driver.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PCI buses of the GPUs: the first number has a letter, which drivers write in upper case. */
enum { DEVICES = 8, DEPTH = 16, FIRST_BUS = 0x0e };
enum { CLOCK = 13, PROCESSORS = 16, PCI_BUS = 33, MEMORY_CLOCK = 36, MEMORY_BITS = 37,
       CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

#pragma GCC visibility push(default)
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int result, const char **name);
int cuGetErrorString(int result, const char **text);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetPCIBusId(char *address, int size, int device);
int cuDeviceTotalMem_v2(size_t *size, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(context *out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(context c);
int cuCtxPushCurrent_v2(context c);
int cuCtxPopCurrent_v2(context *out);
#pragma GCC visibility pop

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct { int code; const char *name, *text; } errors[] = {
    { OK, "CUDA_SUCCESS", "no error" },
    { INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { NO_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
    { ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
      "operation not permitted when stream is capturing" },
    { CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      "operation failed due to a previous error during capture" },
    { CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
      "attempt to terminate a thread-local capture sequence from another thread" },
};

static const char *error_field(int code, bool name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return name ? errors[i].name : errors[i].text;
    return NULL;
}

int cuGetErrorName(int result, const char **name)
{
    *name = error_field(result, true);
    return *name != NULL ? OK : INVALID;
}

int cuGetErrorString(int result, const char **text)
{
    *text = error_field(result, false);
    return *text != NULL ? OK : INVALID;
}

/* The N-th call of "what:N" in FAKE_CUDA_FAIL fails. */
bool fake_fails(const char *what, int *count)
{
    const char *fault = getenv("FAKE_CUDA_FAIL");
    size_t size = strlen(what);
    int number = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);

    return fault != NULL && strncmp(fault, what, size) == 0 && fault[size] == ':'
        && atoi(fault + size + 1) == number;
}

static atomic_long counts[FAKE_DEEDS];

void fake_counts(fake_deed deed) { atomic_fetch_add(&counts[deed], 1); }

long fake_count(fake_deed deed) { return atomic_load(&counts[deed]); }

/* ---- devices --------------------------------------------------------------------------------- */

static int device_count(void)
{
    const char *text = getenv("FAKE_CUDA");

    if (text == NULL)
        return 2;
    return atoi(text) < DEVICES ? atoi(text) : DEVICES;
}

int cuInit(unsigned flags)
{
    const char *text = getenv("FAKE_CUDA");

    if (flags != 0)
        return INVALID;
    watch_load();
    return text != NULL && strcmp(text, "none") == 0 ? NO_DEVICE : OK;
}

int fake_version(void)
{
    const char *given = getenv("FAKE_CUDA_VERSION");

    return given != NULL ? atoi(given) : 13000;
}

int cuDriverGetVersion(int *version)
{
    *version = fake_version();
    return OK;
}

int cuDeviceGetCount(int *count)
{
    *count = device_count();
    return OK;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal < 0 || ordinal >= device_count();
}

int cuDeviceGetName(char *name, int size, int device)
{
    const char *given = getenv("FAKE_CUDA_NAME");

    if (given != NULL)
        snprintf(name, (size_t)size, "%s", given);
    else
        snprintf(name, (size_t)size, "made-up card %d", device);
    return OK;
}

int cuDeviceGetPCIBusId(char *address, int size, int device)
{
    snprintf(address, (size_t)size, "00000000:%02X:00.0", FIRST_BUS + device);
    return device < 0;
}

int cuDeviceTotalMem_v2(size_t *size, int device)
{
    const char *given = getenv("FAKE_CUDA_MEMORY");

    *size = given != NULL ? strtoull(given, NULL, 10) : (size_t)4 << 30;
    return device < 0;
}

/* Clock of the processors; FAKE_CUDA_CLOCK replaces all answers but the first. */
static int clock_rate(void)
{
    static atomic_bool asked;
    const char *given = getenv("FAKE_CUDA_CLOCK");

    return atomic_exchange(&asked, true) && given != NULL ? atoi(given) : 1000000;
}

/* Architecture of a GPU in a list of one for each; the last also stands for those behind it. */
static int architecture(int device)
{
    const char *given = getenv("FAKE_CUDA_SM");

    for (; given != NULL && device > 0 && strchr(given, ',') != NULL; device--)
        given = strchr(given, ',') + 1;
    return given != NULL ? atoi(given) : 90;
}

/*
 * Attributes: four processors at 1 GHz; memory of 1024 bits at the same clock, at double data rate.
 */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int known[] = {
        [PROCESSORS] = 4, [MEMORY_CLOCK] = 1000000, [MEMORY_BITS] = 1024
    };

    if (device < 0 || attribute < 1 || attribute > CAPABILITY_MINOR)
        return INVALID;
    *value = attribute == PCI_BUS ? FIRST_BUS + device
           : attribute == CAPABILITY_MAJOR ? architecture(device) / 10
           : attribute == CAPABILITY_MINOR ? architecture(device) % 10
           : attribute == CLOCK ? clock_rate()
           : known[attribute] != 0 ? known[attribute] : 1;
    return OK;
}

/* ---- contexts -------------------------------------------------------------------------------- */

struct CUctx_st {
    int device;
};

static struct CUctx_st primary[DEVICES];
static _Thread_local context stack[DEPTH];
static _Thread_local int depth;

context fake_context(void) { return depth > 0 ? stack[depth - 1] : NULL; }

bool fake_has_context(void) { return fake_context() != NULL; }

int cuDevicePrimaryCtxRetain(context *out, int device)
{
    if (device < 0 || device >= device_count())
        return INVALID;
    primary[device].device = device;
    *out = &primary[device];
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return device < 0; }

int cuCtxSetCurrent(context c)
{
    depth = depth > 0 ? depth - 1 : 0;
    return c != NULL ? cuCtxPushCurrent_v2(c) : OK;
}

int cuCtxPushCurrent_v2(context c)
{
    if (c == NULL || depth == DEPTH)
        return NO_CONTEXT;
    stack[depth++] = c;
    return OK;
}

int cuCtxPopCurrent_v2(context *out)
{
    if (depth == 0)
        return NO_CONTEXT;
    *out = stack[--depth];
    return OK;
}
