/*
 * safetensors.h - named tensors in one file: 8 bytes of length, a JSON header, the numbers.
 *
 * https://github.com/huggingface/safetensors. The reader accepts exactly what the format allows:
 * a header of at most 100,000,000 bytes that begins with '{', no duplicate names, string metadata,
 * sizes that equal shape times type, data that begin at 0, without overlap or hole, to the end of
 * the file. Numbers are little endian, in C order.
 */
#ifndef CORE_CHECKPOINT_SAFETENSORS_H
#define CORE_CHECKPOINT_SAFETENSORS_H

#include <pons/plugin.h>

typedef enum safetensors_type {
    SAFETENSORS_F32 = 1, SAFETENSORS_F64, SAFETENSORS_F16, SAFETENSORS_BF16, SAFETENSORS_U8,
    SAFETENSORS_I32, SAFETENSORS_I64, SAFETENSORS_BOOL, SAFETENSORS_I8, SAFETENSORS_I16,
    SAFETENSORS_U16, SAFETENSORS_U32, SAFETENSORS_U64, SAFETENSORS_TYPE_COUNT
} safetensors_type;

#define SAFETENSORS_RANK_MAX 8

typedef struct safetensor {
    const char *name;
    safetensors_type type;
    int rank;
    int64_t extent[SAFETENSORS_RANK_MAX];
    int64_t count;    /* elements                                                                 */
    size_t size;      /* bytes                                                                    */
    const void *data; /* at any multiple of the type's size                                       */
} safetensor;

typedef struct safetensors safetensors;

/* A file that breaks a rule is PONS_DATA; the line names the file, the field and both values. */
pons_status safetensors_open(const char *path, safetensors **out, pons_error *err);
/* safetensors_open from memory, which is copied. 'where' names it in messages. */
pons_status safetensors_read(const void *data, size_t size, const char *where, safetensors **out,
                             pons_error *err);
/* Tensors in memory as a file; names and data outlive it. PONS_DATA: two have one name. */
pons_status safetensors_of_items(int count, const safetensor *item, const char *where,
                                 safetensors **out, pons_error *err);
void safetensors_close(safetensors *file);

int safetensors_count(const safetensors *file);
const safetensor *safetensors_item(const safetensors *file, int index);     /* in order of data   */
const safetensor *safetensors_find(const safetensors *file, const char *name); /* NULL: none      */
const char *safetensors_metadata(const safetensors *file, const char *key);    /* NULL: none      */

/* The index-th pair of the metadata; false behind the last one. */
bool safetensors_metadata_at(const safetensors *file, int index, const char **key,
                             const char **value);

size_t safetensors_type_size(safetensors_type type);
const char *safetensor_shape(const safetensor *t, char *text, size_t size); /* "[16, 1, 3, 3, 3]" */
/* All elements as double; the types F16, BF16, F32, F64 and the integers. */
void safetensor_doubles(const safetensor *t, double *out);

/*
 * The content of a file to be written: name, type, rank, extent and data of each item. If 'data' is
 * given it returns the data instead; it is called once for each item, in order. Writing fails where
 * it returns NULL for an item with elements; the caller's 'err' then says why.
 */
typedef struct safetensors_content {
    int count;
    const safetensor *item;
    const void *(*data)(void *context, int index);
    void *context;
    int metadata_count;
    const char *const (*metadata)[2]; /* key, value                                               */
} safetensors_content;

/* Write 'path' in the given order and sync it; on failure the file is removed. */
pons_status safetensors_write(const char *path, const safetensors_content *content,
                              pons_error *err);
/* The same through a temporary file: on failure an older file at 'path' stays as it was. */
pons_status safetensors_replace(const char *path, const safetensors_content *content,
                                pons_error *err);

#endif
