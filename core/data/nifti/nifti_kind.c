/*
 * nifti_kind.c - voxel types of NIfTI: one row per type that is read; some are written.
 */
#include "data/nifti/nifti_internal.h"

#include <math.h>
#include <string.h>

/* Define load_NAME, which converts elements of type FROM to type TO. */
#define LOAD(NAME, FROM, TO)                                                                      \
    static void load_##NAME(const void *from, int64_t count, TO *to)                              \
    {                                                                                             \
        const unsigned char *f = from;                                                            \
        for (int64_t i = 0; i < count; i++) {                                                     \
            FROM x;                                                                               \
            memcpy(&x, f + i * (int64_t)sizeof x, sizeof x);                                      \
            to[i] = (TO)x;                                                                        \
        }                                                                                         \
    }

#define STORE(NAME, TYPE, LOW, HIGH)                                                              \
    static void store_##NAME(const double *from, int64_t count, void *to)                         \
    {                                                                                             \
        unsigned char *t = to;                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                     \
            TYPE x = (TYPE)fmin(fmax(rint(from[i]), LOW), HIGH);                                  \
            memcpy(t + i * (int64_t)sizeof x, &x, sizeof x);                                      \
        }                                                                                         \
    }

LOAD(uint8, uint8_t, double)
LOAD(int8, int8_t, double)
LOAD(uint16, uint16_t, double)
LOAD(int16, int16_t, double)
LOAD(uint32, uint32_t, double)
LOAD(int32, int32_t, double)
LOAD(uint64, uint64_t, double)
LOAD(int64, int64_t, double)
LOAD(float32, float, double)
LOAD(float64, double, double)
LOAD(float_uint8, uint8_t, float)
LOAD(float_int8, int8_t, float)
LOAD(float_uint16, uint16_t, float)
LOAD(float_int16, int16_t, float)
LOAD(float_int32, int32_t, float)
LOAD(float_float32, float, float)
LOAD(id_uint8, uint8_t, int32_t)
LOAD(id_int8, int8_t, int32_t)
LOAD(id_uint16, uint16_t, int32_t)
LOAD(id_int16, int16_t, int32_t)
LOAD(id_int32, int32_t, int32_t)
STORE(uint8, uint8_t, 0, 255)
STORE(uint16, uint16_t, 0, 65535)
STORE(int16, int16_t, -32768, 32767)

static void store_float32(const double *from, int64_t count, void *to)
{
    unsigned char *t = to;

    for (int64_t i = 0; i < count; i++) {
        float x = (float)from[i];
        memcpy(t + 4 * i, &x, 4);
    }
}

static const nifti_kind kinds[] = {
    { 2, 1, "uint8", false, load_uint8, load_float_uint8, load_id_uint8, store_uint8 },
    { 4, 2, "int16", false, load_int16, load_float_int16, load_id_int16, store_int16 },
    { 8, 4, "int32", false, load_int32, load_float_int32, load_id_int32, NULL },
    { 16, 4, "float32", true, load_float32, load_float_float32, NULL, store_float32 },
    { 64, 8, "float64", true, load_float64, NULL, NULL, NULL },
    { 256, 1, "int8", false, load_int8, load_float_int8, load_id_int8, NULL },
    { 512, 2, "uint16", false, load_uint16, load_float_uint16, load_id_uint16, store_uint16 },
    { 768, 4, "uint32", false, load_uint32, NULL, NULL, NULL },
    { 1024, 8, "int64", false, load_int64, NULL, NULL, NULL },
    { 1280, 8, "uint64", false, load_uint64, NULL, NULL, NULL },
};

static const struct { int code; const char *name; } refused[] = {
    { 0, "unknown" }, { 1, "binary" }, { 32, "complex64" }, { 128, "RGB24" },
    { 1536, "float128" }, { 1792, "complex128" }, { 2048, "complex256" }, { 2304, "RGBA32" },
};

const nifti_kind *nifti_kind_find(int code)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].code == code)
            return &kinds[i];
    return NULL;
}

const char *nifti_kind_name(int code)
{
    const nifti_kind *kind = nifti_kind_find(code);

    if (kind)
        return kind->name;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (refused[i].code == code)
            return refused[i].name;
    return "unknown";
}
