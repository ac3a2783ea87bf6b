/*
 * nvml.c - sensors of a GPU through NVIDIA's management library (NVML). The library comes with the
 * driver and is loaded at its first use. It is declared here as since CUDA 8.
 */
#include "cuda/driver/driver.h"
#include "cuda/driver/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct nvml_device_object *nvml_device;

typedef struct nvml_utilisation {
    unsigned kernels, memory; /* per cent of the last sample period                               */
} nvml_utilisation;

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

/* Statuses of a GPU without a sensor, and of a guest that may not read it. */
enum { NVML_NOT_SUPPORTED = 3, NVML_NO_PERMISSION = 4, NVML_UNKNOWN = 999 };
enum { NVML_OF_THE_CARD = 0 };

#define NVML_FUNCTIONS(X)                                                                         \
    X(init, "nvmlInit_v2", (void))                                                                \
    X(shutdown, "nvmlShutdown", (void))                                                           \
    X(find, "nvmlDeviceGetHandleByPciBusId_v2", (const char *address, nvml_device *device))       \
    X(utilisation, "nvmlDeviceGetUtilizationRates", (nvml_device device, nvml_utilisation *rates)) \
    X(memory, "nvmlDeviceGetMemoryInfo", (nvml_device device, nvml_memory *memory))               \
    X(power, "nvmlDeviceGetPowerUsage", (nvml_device device, unsigned *milliwatts))               \
    X(temperature, "nvmlDeviceGetTemperature", (nvml_device device, int sensor,                   \
                                                unsigned *celsius))

#define NVML_MEMBER(name, symbol, parameters) int(*name) parameters;
struct nvml_sensors {
    void *library;
    bool begun;
    nvml_device device;
    char address[32];
    const char *(*error_text)(int result);
    NVML_FUNCTIONS(NVML_MEMBER)
};
#undef NVML_MEMBER

#define NVML_SYMBOL(member, symbol, parameters) { symbol, offsetof(nvml_sensors, member) },
static const toolkit_symbol symbols[] = {
    { "nvmlErrorString", offsetof(nvml_sensors, error_text) },
    NVML_FUNCTIONS(NVML_SYMBOL) { NULL, 0 }
};

static pons_status check_nvml(const nvml_sensors *s, int result, const char *what, pons_error *err)
{
    return result == 0 ? PONS_OK
         : pons_fail(err, PONS_DEVICE, "cannot %s of card %s: NVML says '%s'", what, s->address,
                     s->error_text(result));
}

static pons_status open_library(nvml_sensors *s, pons_error *err)
{
    const char *missing;

    s->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (s->library == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot read the sensors of card %s: %s", s->address,
                         dlerror());
    missing = toolkit_find_symbols(s->library, symbols, s);
    if (missing != NULL)
        return pons_fail(err, PONS_DEVICE, "cannot read the sensors of card %s: libnvidia-ml has "
                         "no '%s'", s->address, missing);
    if (check_nvml(s, s->init(), "read the sensors", err) != PONS_OK)
        return PONS_DEVICE;
    s->begun = true;
    return check_nvml(s, s->find(s->address, &s->device), "find the sensors", err);
}

pons_status nvml_sensors_open(const char *address, nvml_sensors **out, pons_error *err)
{
    nvml_sensors *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    snprintf(s->address, sizeof s->address, "%s", address);
    if (open_library(s, err) != PONS_OK) {
        nvml_sensors_close(s);
        return PONS_DEVICE;
    }
    *out = s;
    return PONS_OK;
}

void nvml_sensors_close(nvml_sensors *s)
{
    if (s == NULL)
        return;
    if (s->begun)
        s->shutdown();
    if (s->library != NULL)
        dlclose(s->library);
    free(s);
}

static bool is_not_known(int result)
{
    return result == NVML_NOT_SUPPORTED || result == NVML_NO_PERMISSION || result == NVML_UNKNOWN;
}

/* A missing or hidden sensor has the value NaN. */
static pons_status take_sensor(const nvml_sensors *s, int result, const char *what, double value,
                               double *out, pons_error *err)
{
    *out = result == 0 ? value : NAN;
    return is_not_known(result) ? PONS_OK : check_nvml(s, result, what, err);
}

pons_status nvml_sensors_read(const nvml_sensors *s, pons_device_sensors *out, pons_error *err)
{
    pons_device_sensors state = { .id = "" };
    nvml_utilisation rates = { 0, 0 };
    nvml_memory memory = { 0, 0, 0 };
    unsigned milliwatts = 0, celsius = 0;
    int result;

    snprintf(state.id, sizeof state.id, "%s", s->address);
    result = s->utilisation(s->device, &rates);
    if (take_sensor(s, result, "read the utilisation", 0.01 * rates.kernels, &state.utilisation,
                    err)
        != PONS_OK)
        return PONS_DEVICE;
    result = s->memory(s->device, &memory);
    if (take_sensor(s, result, "read the memory", (double)memory.used, &state.memory_used,
                    err) != PONS_OK
        || take_sensor(s, result, "read the memory", (double)memory.total, &state.memory_total, err)
           != PONS_OK)
        return PONS_DEVICE;
    result = s->power(s->device, &milliwatts);
    if (take_sensor(s, result, "read the power", 1e-3 * milliwatts, &state.power, err) != PONS_OK)
        return PONS_DEVICE;
    result = s->temperature(s->device, NVML_OF_THE_CARD, &celsius);
    if (take_sensor(s, result, "read the temperature", celsius, &state.temperature, err) != PONS_OK)
        return PONS_DEVICE;
    *out = state;
    return PONS_OK;
}

void nvml_sensors_describe(const char *address, char *text, size_t size)
{
    pons_error why = PONS_ERROR_INIT;
    pons_device_sensors unread;
    nvml_sensors *s = NULL;

    text[0] = '\0';
    if (nvml_sensors_open(address, &s, &why) != PONS_OK
        || nvml_sensors_read(s, &unread, &why) != PONS_OK)
        snprintf(text, size, "no NVML (%s)", why.text);
    nvml_sensors_close(s);
}
