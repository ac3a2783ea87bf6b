/*
 * fake_nvml.c - a libnvidia-ml.so.1 with sensors for the GPUs of fake_cuda.c. Each GPU has its own
 * values, by the bus of its PCI address. The second one has no power sensor.
 *
 * FAKE_NVML       lost: every GPU has fallen off the bus; guest: power is not readable
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4,
       NOT_FOUND = 6, GPU_IS_LOST = 15 };

typedef struct nvmlDevice_st {
    unsigned number; /* from 1 */
} *nvmlDevice_t;

typedef struct nvmlUtilization_st {
    unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct nvmlMemory_st {
    unsigned long long total, free, used;
} nvmlMemory_t;

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device);
int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out);
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out);
int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *out);
int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *out);

/* The constants of fake_cuda.c. */
enum { DEVICES = 8, FIRST_BUS = 0x0e };

static struct nvmlDevice_st devices[DEVICES];
static int users;

int nvmlInit_v2(void)
{
    __atomic_add_fetch(&users, 1, __ATOMIC_RELAXED);
    return OK;
}

int nvmlShutdown(void)
{
    return __atomic_sub_fetch(&users, 1, __ATOMIC_RELAXED) < 0 ? UNINITIALIZED : OK;
}

const char *nvmlErrorString(int result)
{
    return result == GPU_IS_LOST ? "GPU is lost" : result == NOT_FOUND ? "Not Found"
         : result == UNINITIALIZED ? "Uninitialized" : "Unknown Error";
}

static bool has_fault(const char *name)
{
    const char *fault = getenv("FAKE_NVML");

    return fault != NULL && strcmp(fault, name) == 0;
}

static int look(void)
{
    if (__atomic_load_n(&users, __ATOMIC_RELAXED) <= 0)
        return UNINITIALIZED;
    return has_fault("lost") ? GPU_IS_LOST : OK;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    unsigned domain, bus, slot;

    if (sscanf(address, "%x:%x:%x.0", &domain, &bus, &slot) != 3 || bus < FIRST_BUS ||
        bus >= FIRST_BUS + DEVICES)
        return NOT_FOUND;
    *device = &devices[bus - FIRST_BUS];
    (*device)->number = bus - FIRST_BUS + 1;
    return __atomic_load_n(&users, __ATOMIC_RELAXED) > 0 ? OK : UNINITIALIZED;
}

int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out)
{
    *out = (nvmlUtilization_t){ 50 + device->number, 20 };
    return look();
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
    unsigned long long total = 4ull << 30, used = (unsigned long long)device->number << 30;

    *out = (nvmlMemory_t){ total, total - used, used };
    return look();
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *out)
{
    *out = 123456;
    return device->number == 2 ? NOT_SUPPORTED : has_fault("guest") ? NO_PERMISSION : look();
}

int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *out)
{
    *out = 40 + device->number;
    return sensor != 0 ? INVALID : look();
}
