/*
 * dcgm.c - activity of a GPU's units through NVIDIA's Data Center GPU Manager (DCGM). The library
 * is loaded at its first use, and talks to the host engine (nv-hostengine) that runs on the
 * machine. It is declared here as in versions 3 and 4.
 */
#include "cuda/driver/dcgm.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cuda/driver/driver.h"

/* Fields by their numbers in dcgm_fields.h. */
enum { FIELD_BUS_ID = 57, FIELD_GR_ENGINE_ACTIVE = 1001, FIELD_PIPE_TENSOR_ACTIVE = 1004,
       FIELD_PCIE_TX_BYTES = 1009, FIELD_PCIE_RX_BYTES = 1010 };
enum { FIELDS = 4, GPUS = 32, ALL_GPUS = 0x7fffffff, INTERVAL_US = 1000000, KEEP_S = 5,
       KEEP_SAMPLES = 2, TYPE_INTEGER = 'i', TYPE_DOUBLE = 'd' };

/* A value that is not known is this large or larger. */
static const double DOUBLE_BLANK = 140737488355328.0;
static const int64_t INTEGER_BLANK = 0x7ffffffffffffff0;

/* dcgmFieldValue_v1. */
typedef struct field_value {
    unsigned version;
    unsigned short field, type;
    int status;
    int64_t time;
    union { int64_t integer; double real; char text[4096]; } value;
} field_value;

#define DCGM_FUNCTIONS(X)                                                                         \
    X(init, "dcgmInit", (void))                                                                   \
    X(connect, "dcgmConnect", (const char *address, uintptr_t *engine))                           \
    X(disconnect, "dcgmDisconnect", (uintptr_t engine))                                           \
    X(devices, "dcgmGetAllDevices", (uintptr_t engine, unsigned *gpu, int *count))                \
    X(group, "dcgmFieldGroupCreate", (uintptr_t engine, int count, const unsigned short *field,   \
                                      const char *name, uintptr_t *group))                        \
    X(end_group, "dcgmFieldGroupDestroy", (uintptr_t engine, uintptr_t group))                    \
    X(watch, "dcgmWatchFields", (uintptr_t engine, uintptr_t gpus, uintptr_t fields,              \
                                 long long interval, double age, int samples))                    \
    X(update, "dcgmUpdateAllFields", (uintptr_t engine, int wait))                                \
    X(latest, "dcgmGetLatestValuesForFields", (uintptr_t engine, int gpu,                         \
                                               const unsigned short *field, unsigned count,       \
                                               field_value *value))

#define DCGM_MEMBER(name, symbol, parameters) int(*name) parameters;
struct dcgm_fields {
    void *library;
    bool connected, grouped;
    uintptr_t engine, fields;
    int gpu;
    field_value *value;          /* FIELDS + 1                                                    */
    DCGM_FUNCTIONS(DCGM_MEMBER)
};
#undef DCGM_MEMBER

#define DCGM_SYMBOL(member, symbol, parameters) { symbol, offsetof(dcgm_fields, member) },
static const toolkit_symbol symbols[] = { DCGM_FUNCTIONS(DCGM_SYMBOL) { NULL, 0 } };

/* The bus id comes last: only the search for the GPU needs it. */
static const unsigned short fields[FIELDS + 1] = {
    FIELD_GR_ENGINE_ACTIVE, FIELD_PIPE_TENSOR_ACTIVE, FIELD_PCIE_TX_BYTES, FIELD_PCIE_RX_BYTES,
    FIELD_BUS_ID
};

static void *open_library(void)
{
    static const char *const names[] = { "libdcgm.so.4", "libdcgm.so.3" };
    void *library = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

/* Names of groups of fields are unique in the host engine, which all processes share. */
static bool connect_engine(dcgm_fields *f, const char *address)
{
    char name[64];

    snprintf(name, sizeof name, "pons %ld %.40s", (long)getpid(), address);
    f->library = open_library();
    if (f->library == NULL || toolkit_find_symbols(f->library, symbols, f) != NULL
        || f->init() != 0)
        return false;
    f->connected = f->connect("127.0.0.1", &f->engine) == 0;
    f->grouped = f->connected
        && f->group(f->engine, FIELDS + 1, fields, name, &f->fields) == 0;
    return f->grouped
        && f->watch(f->engine, ALL_GPUS, f->fields, INTERVAL_US, KEEP_S, KEEP_SAMPLES) == 0
        && f->update(f->engine, 1) == 0;
}

static bool read_values(const dcgm_fields *f, int gpu, int count, const unsigned short *field)
{
    for (int i = 0; i < count; i++)
        f->value[i] = (field_value){ .version = (unsigned)sizeof(field_value) | 1u << 24 };
    return f->latest(f->engine, gpu, field, (unsigned)count, f->value) == 0;
}

/* PCI addresses may differ in the length of the domain: "00000000:01:00.0", "0000:01:00.0". */
static bool is_same_bus(const char *a, const char *b)
{
    unsigned long domain[2] = { strtoul(a, NULL, 16), strtoul(b, NULL, 16) };

    a = strchr(a, ':');
    b = strchr(b, ':');
    return domain[0] == domain[1] && a != NULL && b != NULL && strcasecmp(a, b) == 0;
}

static bool find_gpu(dcgm_fields *f, const char *address)
{
    unsigned gpu[GPUS];
    int count = 0;

    if (f->devices(f->engine, gpu, &count) != 0)
        return false;
    for (int i = 0; i < count && i < GPUS; i++) {
        f->gpu = (int)gpu[i];
        if (read_values(f, f->gpu, 1, fields + FIELDS) && f->value->status == 0
            && is_same_bus(f->value->value.text, address))
            return true;
    }
    return false;
}

dcgm_fields *dcgm_fields_open(const char *address)
{
    dcgm_fields *f = calloc(1, sizeof *f);

    if (f != NULL && (f->value = calloc(FIELDS + 1, sizeof *f->value)) != NULL
        && connect_engine(f, address) && find_gpu(f, address))
        return f;
    dcgm_fields_close(f);
    return NULL;
}

void dcgm_fields_close(dcgm_fields *f)
{
    if (f == NULL)
        return;
    if (f->grouped)
        f->end_group(f->engine, f->fields);
    if (f->connected)
        f->disconnect(f->engine);
    if (f->library != NULL)
        dlclose(f->library);
    free(f->value);
    free(f);
}

static double number_of(const field_value *v)
{
    if (v->status != 0)
        return NAN;
    if (v->type == TYPE_INTEGER)
        return v->value.integer < INTEGER_BLANK ? (double)v->value.integer : NAN;
    return v->type == TYPE_DOUBLE && v->value.real < DOUBLE_BLANK ? v->value.real : NAN;
}

void dcgm_fields_read(const dcgm_fields *f, pons_device_sensors *out)
{
    double *const to[FIELDS] = { &out->engine_active, &out->tensor_active, &out->pcie_sent,
                                 &out->pcie_received };
    bool known = f != NULL && read_values(f, f->gpu, FIELDS, fields);

    for (int i = 0; i < FIELDS; i++)
        *to[i] = known ? number_of(&f->value[i]) : NAN;
}
