/*
 * fake_dcgm.c - a libdcgm.so.4 with fields for the GPUs of fake_cuda.c, by the bus of their PCI
 * addresses. A second GPU has no activity of tensor units. A name of a group of fields is refused
 * while another group has it. A call that is not DCGM's ends the process.
 *
 * FAKE_DCGM       none: no host engine runs
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, BAD_PARAMETER = -1, CONNECTION_NOT_VALID = -21, DUPLICATE_KEY = -26,
       NOT_WATCHED = -27 };
enum { DEVICES = 8, FIRST_BUS = 0x0e, FIRST_ID = 40 }; /* the first two as in fake_cuda.c         */
enum { ENGINE = 7, GROUP = 9, GROUPS = 16, NAME = 256 };
enum { BUS_ID = 57, GR_ENGINE = 1001, TENSOR = 1004, TX = 1009, RX = 1010 };

typedef uintptr_t dcgmHandle_t, dcgmGpuGrp_t, dcgmFieldGrp_t;

typedef struct dcgmFieldValue_v1 {
    unsigned version;
    unsigned short fieldId, fieldType;
    int status;
    int64_t ts;
    union { int64_t i64; double dbl; char str[256]; char blob[4096]; } value;
} dcgmFieldValue_v1;

int dcgmInit(void);
int dcgmConnect(const char *address, dcgmHandle_t *engine);
int dcgmDisconnect(dcgmHandle_t engine);
int dcgmGetAllDevices(dcgmHandle_t engine, unsigned gpu[32], int *count);
int dcgmFieldGroupCreate(dcgmHandle_t engine, int count, const unsigned short *field,
                         const char *name, dcgmFieldGrp_t *group);
int dcgmFieldGroupDestroy(dcgmHandle_t engine, dcgmFieldGrp_t group);
int dcgmWatchFields(dcgmHandle_t engine, dcgmGpuGrp_t gpus, dcgmFieldGrp_t fields,
                    long long interval, double age, int samples);
int dcgmUpdateAllFields(dcgmHandle_t engine, int wait);
int dcgmGetLatestValuesForFields(dcgmHandle_t engine, int gpu, unsigned short field[],
                                 unsigned count, dcgmFieldValue_v1 value[]);

static int begun, updated;
static char names[GROUPS][NAME]; /* of group GROUP + i; empty: none                               */

static void need(int holds)
{
    if (!holds)
        abort();
}

static int is_group(dcgmFieldGrp_t group)
{
    return group >= GROUP && group < GROUP + GROUPS && names[group - GROUP][0] != '\0';
}

int dcgmInit(void)
{
    begun = 1;
    return OK;
}

int dcgmConnect(const char *address, dcgmHandle_t *engine)
{
    const char *fault = getenv("FAKE_DCGM");

    need(begun && strcmp(address, "127.0.0.1") == 0);
    *engine = ENGINE;
    return fault != NULL && strcmp(fault, "none") == 0 ? CONNECTION_NOT_VALID : OK;
}

int dcgmDisconnect(dcgmHandle_t engine)
{
    need(engine == ENGINE);
    return OK;
}

int dcgmGetAllDevices(dcgmHandle_t engine, unsigned gpu[32], int *count)
{
    need(engine == ENGINE);
    *count = DEVICES;
    for (int i = 0; i < DEVICES; i++)
        gpu[i] = FIRST_ID + (unsigned)(DEVICES - 1 - i);
    return OK;
}

int dcgmFieldGroupCreate(dcgmHandle_t engine, int count, const unsigned short *field,
                         const char *name, dcgmFieldGrp_t *group)
{
    int free_group = GROUPS;

    need(engine == ENGINE && count > 0 && field != NULL && name[0] != '\0' && strlen(name) < NAME);
    for (int i = GROUPS - 1; i >= 0; i--) {
        if (strcmp(names[i], name) == 0)
            return DUPLICATE_KEY;
        if (names[i][0] == '\0')
            free_group = i;
    }
    need(free_group < GROUPS);
    strcpy(names[free_group], name);
    *group = (dcgmFieldGrp_t)(GROUP + free_group);
    return OK;
}

int dcgmFieldGroupDestroy(dcgmHandle_t engine, dcgmFieldGrp_t group)
{
    need(engine == ENGINE && is_group(group));
    names[group - GROUP][0] = '\0';
    return OK;
}

int dcgmWatchFields(dcgmHandle_t engine, dcgmGpuGrp_t gpus, dcgmFieldGrp_t fields,
                    long long interval, double age, int samples)
{
    need(engine == ENGINE && gpus == 0x7fffffff && is_group(fields) && interval >= 100000
         && age > 0 && samples > 0);
    return OK;
}

int dcgmUpdateAllFields(dcgmHandle_t engine, int wait)
{
    need(engine == ENGINE && wait == 1);
    updated = 1;
    return OK;
}

static void fill(unsigned number, unsigned short field, dcgmFieldValue_v1 *v)
{
    need(v->version == ((unsigned)sizeof *v | 1u << 24));
    v->status = OK;
    v->fieldId = field;
    v->fieldType = field == TX || field == RX ? 'i' : field == BUS_ID ? 's' : 'd';
    if (field == BUS_ID)
        snprintf(v->value.str, sizeof v->value.str, "00000000:%02X:00.0", FIRST_BUS + number);
    else if (v->fieldType == 'i')
        v->value.i64 = (field == TX ? 1000 : 2000) + number;
    else
        v->value.dbl = field == GR_ENGINE ? 0.5 + number / 8.0
                     : number == 1 ? 140737488355328.0 : 0.25;
}

int dcgmGetLatestValuesForFields(dcgmHandle_t engine, int gpu, unsigned short field[],
                                 unsigned count, dcgmFieldValue_v1 value[])
{
    need(engine == ENGINE);
    if (gpu < FIRST_ID || gpu >= FIRST_ID + DEVICES)
        return BAD_PARAMETER;
    for (unsigned i = 0; i < count; i++) {
        fill((unsigned)(gpu - FIRST_ID), field[i], &value[i]);
        if (!updated)
            value[i].status = NOT_WATCHED;
    }
    return OK;
}
