/*
 * safetensors.c - the strict reader and the writer. What tensors mean (names, orders of axes) is
 * checkpoint.c's.
 */
#include "checkpoint/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/file/json.h"
#include "base/integer.h"
#include "base/text/text_stream.h"

#define HEADER_MAX 100000000u

struct safetensors {
    char *bytes;           /* the data behind the header                                          */
    json_t *header;
    json_t *metadata;
    safetensor *item;      /* by place                                                            */
    int *by_name;          /* indices into item                                                   */
    int count;
};

static const struct { const char *name; size_t size; } types[SAFETENSORS_TYPE_COUNT] = {
    [SAFETENSORS_F32] = { "F32", 4 },   [SAFETENSORS_F64] = { "F64", 8 },
    [SAFETENSORS_F16] = { "F16", 2 },   [SAFETENSORS_BF16] = { "BF16", 2 },
    [SAFETENSORS_U8] = { "U8", 1 },     [SAFETENSORS_I32] = { "I32", 4 },
    [SAFETENSORS_I64] = { "I64", 8 },   [SAFETENSORS_BOOL] = { "BOOL", 1 },
    [SAFETENSORS_I8] = { "I8", 1 },     [SAFETENSORS_I16] = { "I16", 2 },
    [SAFETENSORS_U16] = { "U16", 2 },   [SAFETENSORS_U32] = { "U32", 4 },
    [SAFETENSORS_U64] = { "U64", 8 }
};

size_t safetensors_type_size(safetensors_type type)
{
    return types[type].size;
}

const char *safetensor_shape(const safetensor *t, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");

    for (int i = 0; i < t->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i > 0 ? ", " : "",
                                 t->extent[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

/* ---- read ------------------------------------------------------------------------------------ */

/* Elements and bytes of t's shape and type; false when they do not fit into 63 bits. */
static bool measure(safetensor *t)
{
    int64_t count = 1, size;

    for (int i = 0; i < t->rank; i++) {
        if (__builtin_mul_overflow(count, t->extent[i], &count))
            return false;
    }
    if (__builtin_mul_overflow(count, (int64_t)types[t->type].size, &size))
        return false;
    t->count = count;
    t->size = (size_t)size;
    return true;
}

static pons_status read_type(const json_t *v, const char *where, safetensor *t, pons_error *err)
{
    const char *type = json_string_value(json_object_get(v, "dtype"));

    if (type == NULL)
        return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has no dtype, expected a string",
                         where, t->name);
    for (int i = 1; i < SAFETENSORS_TYPE_COUNT; i++) {
        if (strcmp(types[i].name, type) == 0) {
            t->type = (safetensors_type)i;
            return PONS_OK;
        }
    }
    return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has dtype '%.40s', expected F32, F64, "
                     "F16, BF16, U8, I32, I64 or another integer type", where, t->name, type);
}

static pons_status refuse_extent(const json_t *extent, const char *where, const safetensor *t,
                                 pons_error *err)
{
    char found[40];
    size_t size = json_dumpb(extent, found, sizeof found, JSON_ENCODE_ANY);

    return pons_fail(err, PONS_DATA, "'%s': shape of tensor '%.200s' holds %.*s, expected whole "
                     "numbers", where, t->name, min_int((int)size, (int)sizeof found), found);
}

static pons_status read_shape(const json_t *v, const char *where, safetensor *t,
                              pons_error *err)
{
    const json_t *shape = json_object_get(v, "shape"), *e;
    uint64_t extent;
    size_t axis;

    if (!json_is_array(shape))
        return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has no shape, expected a list",
                         where, t->name);
    if (json_array_size(shape) > SAFETENSORS_RANK_MAX)
        return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has %zu axes, expected at most %d",
                         where, t->name, json_array_size(shape), SAFETENSORS_RANK_MAX);
    json_array_foreach(shape, axis, e) {
        if (!json_whole(e, &extent))
            return refuse_extent(e, where, t, err);
        t->extent[t->rank++] = (int64_t)extent;
    }
    if (!measure(t))
        return pons_fail(err, PONS_DATA, "'%s': shape of tensor '%.200s' is too large for 63 bits",
                         where, t->name);
    return PONS_OK;
}

/* The range [begin, end) of the data; 'begin' is kept in t->data until the data have been read. */
static pons_status read_offsets(const json_t *v, const char *where, uint64_t room,
                                safetensor *t, pons_error *err)
{
    const json_t *offsets = json_object_get(v, "data_offsets");
    uint64_t begin, end;

    if (json_array_size(offsets) != 2 || !json_whole(json_array_get(offsets, 0), &begin)
        || !json_whole(json_array_get(offsets, 1), &end))
        return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has no data_offsets, expected two "
                         "whole numbers", where, t->name);
    if (begin > end || end > room)
        return pons_fail(err, PONS_DATA, "'%s': data_offsets of tensor '%.200s' are %" PRIu64
                         " to %" PRIu64 ", expected a range within %" PRIu64 " bytes of data",
                         where, t->name, begin, end, room);
    if (end - begin != t->size) {
        char text[160];
        return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has %" PRIu64 " bytes of data, "
                         "expected %zu for %s %s", where, t->name, end - begin, t->size,
                         types[t->type].name, safetensor_shape(t, text, sizeof text));
    }
    t->data = (const void *)(uintptr_t)begin;
    return PONS_OK;
}

static pons_status read_tensor(json_t *v, const char *where, uint64_t room, safetensor *t,
                               pons_error *err)
{
    const char *key;
    json_t *member;

    if (!json_is_object(v))
        return pons_fail(err, PONS_DATA, "'%s': entry '%.200s' is not an object", where, t->name);
    json_object_foreach(v, key, member) {
        if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0
            && strcmp(key, "data_offsets") != 0)
            return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has key '%.40s', expected "
                             "dtype, shape and data_offsets", where, t->name, key);
    }
    if (read_type(v, where, t, err) != PONS_OK || read_shape(v, where, t, err) != PONS_OK)
        return err->status;
    return read_offsets(v, where, room, t, err);
}

static int compare_places(const void *a, const void *b)
{
    const safetensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;

    if (p != q)
        return p < q ? -1 : 1;
    if (x->size != y->size) /* empty tensors before the one that begins at the same place */
        return x->size < y->size ? -1 : 1;
    return strcmp(x->name, y->name);
}

static pons_status check_cover(const safetensors *f, const char *where, uint64_t room,
                               pons_error *err)
{
    uint64_t end = 0;

    for (int i = 0; i < f->count; i++) {
        uint64_t begin = (uintptr_t)f->item[i].data;
        if (begin != end)
            return pons_fail(err, PONS_DATA, "'%s': data of tensor '%.200s' begin at %" PRIu64
                             ", expected %" PRIu64 " (%s)", where, f->item[i].name, begin, end,
                             begin < end ? "they overlap another tensor's" : "there is a hole");
        end = begin + f->item[i].size;
    }
    if (end != room)
        return pons_fail(err, PONS_DATA, "'%s': tensors end at byte %" PRIu64 " of the data, "
                         "expected %" PRIu64 ", the end of the file", where, end, room);
    return PONS_OK;
}

static int compare_names(const void *a, const void *b, void *context)
{
    const safetensors *f = context;

    return strcmp(f->item[*(const int *)a].name, f->item[*(const int *)b].name);
}

static pons_status check_metadata(json_t *metadata, const char *where, pons_error *err)
{
    const char *key;
    json_t *v;

    if (!json_is_object(metadata))
        return pons_fail(err, PONS_DATA, "'%s': __metadata__ is not an object", where);
    json_object_foreach(metadata, key, v) {
        if (!json_is_string(v))
            return pons_fail(err, PONS_DATA, "'%s': __metadata__ holds '%.200s' that is not a "
                             "string", where, key);
    }
    return PONS_OK;
}

static void sort_names(safetensors *f)
{
    for (int i = 0; i < f->count; i++)
        f->by_name[i] = i;
    qsort_r(f->by_name, (size_t)f->count, sizeof *f->by_name, compare_names, f);
}

/* Fill f from its parsed header; 'room' is the number of bytes behind the header. */
static pons_status read_header(safetensors *f, const char *where, uint64_t room, pons_error *err)
{
    const size_t room_items = json_object_size(f->header) + 1;
    const char *name;
    json_t *v;

    f->item = calloc(room_items, sizeof *f->item);
    f->by_name = calloc(room_items, sizeof *f->by_name);
    if (f->item == NULL || f->by_name == NULL)
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", where);
    json_object_foreach(f->header, name, v) {
        safetensor *t = &f->item[f->count];
        if (strcmp(name, "__metadata__") == 0) {
            f->metadata = v;
            if (check_metadata(v, where, err) != PONS_OK)
                return err->status;
            continue;
        }
        t->name = name;
        if (read_tensor(v, where, room, t, err) != PONS_OK)
            return err->status;
        f->count++;
    }
    qsort(f->item, (size_t)f->count, sizeof *f->item, compare_places);
    if (check_cover(f, where, room, err) != PONS_OK)
        return err->status;
    sort_names(f);
    return PONS_OK;
}

/* Bytes from a file or from memory. */
typedef struct source {
    int descriptor;
    const char *memory, *where;
    uint64_t size;
} source;

static pons_status source_get(const source *s, uint64_t offset, void *out, size_t size,
                              pons_error *err)
{
    if (s->memory != NULL) {
        memcpy(out, s->memory + offset, size);
        return PONS_OK;
    }
    while (size > 0) {
        ssize_t got = pread(s->descriptor, out, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return pons_fail(err, PONS_DATA, "cannot read '%s': %s", s->where,
                             got < 0 ? strerror(errno) : "the file ended while it was read");
        out = (char *)out + got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return PONS_OK;
}

static pons_status header_size(const source *s, uint64_t *out, pons_error *err)
{
    unsigned char bytes[8];
    uint64_t size = 0;

    if (s->size < 8)
        return pons_fail(err, PONS_DATA, "'%s': %" PRIu64 " bytes are too few, expected a "
                         "safetensors header", s->where, s->size);
    if (source_get(s, 0, bytes, 8, err) != PONS_OK)
        return err->status;
    for (int i = 7; i >= 0; i--)
        size = size << 8 | bytes[i];
    if (size > HEADER_MAX)
        return pons_fail(err, PONS_DATA, "'%s': header of %" PRIu64 " bytes, expected at most %u: "
                         "it is damaged, or no file of weights", s->where, size, HEADER_MAX);
    if (size > s->size - 8)
        return pons_fail(err, PONS_DATA, "'%s': header of %" PRIu64 " bytes, but only %" PRIu64
                         " follow", s->where, size, s->size - 8);
    *out = size;
    return PONS_OK;
}

/* Another format is named as what it is. */
static pons_status check_kind(const source *s, pons_error *err)
{
    const file_kind *kind;
    char bytes[512];
    size_t size = s->size < sizeof bytes ? (size_t)s->size : sizeof bytes;

    if (source_get(s, 0, bytes, size, err) != PONS_OK || (size > 8 && bytes[8] == '{'))
        return err->status;
    kind = file_kind_find(bytes, size);
    if (kind == NULL && file_kind_is_text(bytes, size))
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is a text file, expected "
                         FILE_WEIGHTS_NAME, s->where);
    return kind != NULL ? file_kind_refuse(kind, s->where, "", FILE_WEIGHTS, err) : PONS_OK;
}

static pons_status source_read(const source *s, safetensors *f, pons_error *err)
{
    uint64_t size = 0;
    char *text = NULL;

    if (check_kind(s, err) != PONS_OK || header_size(s, &size, err) != PONS_OK)
        return err->status;
    uint64_t room = s->size - 8 - size;
    text = malloc(size + 1);
    f->bytes = malloc(room + 1);
    if (text == NULL || f->bytes == NULL) {
        pons_fail(err, PONS_DEVICE, "'%s': out of memory for %" PRIu64 " bytes", s->where, s->size);
        goto release_text;
    }
    if (source_get(s, 8, text, size, err) != PONS_OK)
        goto release_text;
    if (size == 0 || text[0] != '{') {
        pons_fail(err, PONS_DATA, "'%s': header does not begin with '{'", s->where);
        goto release_text;
    }
    if (json_parse(text, size, s->where, PONS_DATA, &f->header, err) != PONS_OK
        || read_header(f, s->where, room, err) != PONS_OK
        || source_get(s, 8 + size, f->bytes, room, err) != PONS_OK)
        goto release_text;
    for (int i = 0; i < f->count; i++)
        f->item[i].data = f->bytes + (uintptr_t)f->item[i].data;
release_text:
    free(text);
    return err->status;
}

static pons_status read_from(const source *s, safetensors **out, pons_error *err)
{
    safetensors *f = calloc(1, sizeof *f);

    if (f == NULL)
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", s->where);
    if (source_read(s, f, err) != PONS_OK) {
        safetensors_close(f);
        return err->status;
    }
    *out = f;
    return PONS_OK;
}

pons_status safetensors_read(const void *data, size_t size, const char *where, safetensors **out,
                             pons_error *err)
{
    return read_from(&(source){ -1, data, where, size }, out, err);
}

pons_status safetensors_open(const char *path, safetensors **out, pons_error *err)
{
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (descriptor < 0)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot open '%s': %s", path,
                         strerror(errno));
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode))
        pons_fail(err, PONS_DATA, "'%s' is not a regular file", path);
    else
        read_from(&(source){ descriptor, NULL, path, (uint64_t)facts.st_size }, out, err);
    close(descriptor);
    return err->status;
}

pons_status safetensors_of_items(int count, const safetensor *item, const char *where,
                                 safetensors **out, pons_error *err)
{
    safetensors *f = calloc(1, sizeof *f);

    if (f == NULL || (f->item = calloc((size_t)count + 1, sizeof *f->item)) == NULL
        || (f->by_name = calloc((size_t)count + 1, sizeof *f->by_name)) == NULL) {
        safetensors_close(f);
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", where);
    }
    memcpy(f->item, item, (size_t)count * sizeof *item);
    f->count = count;
    sort_names(f);
    for (int i = 1; i < count; i++)
        if (compare_names(&f->by_name[i - 1], &f->by_name[i], f) == 0)
            pons_fail(err, PONS_DATA, "'%s': two tensors are called '%.200s'", where,
                      f->item[f->by_name[i]].name);
    if (err->status == PONS_OK)
        *out = f;
    else
        safetensors_close(f);
    return err->status;
}

void safetensors_close(safetensors *f)
{
    if (f == NULL)
        return;
    json_decref(f->header);
    free(f->bytes);
    free(f->item);
    free(f->by_name);
    free(f);
}

int safetensors_count(const safetensors *f)
{
    return f->count;
}

const safetensor *safetensors_item(const safetensors *f, int index)
{
    return &f->item[index];
}

const safetensor *safetensors_find(const safetensors *f, const char *name)
{
    int low = 0, high = f->count;

    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(name, f->item[f->by_name[middle]].name);
        if (order == 0)
            return &f->item[f->by_name[middle]];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *safetensors_metadata(const safetensors *f, const char *key)
{
    return json_string_value(json_object_get(f->metadata, key));
}

bool safetensors_metadata_at(const safetensors *f, int index, const char **key, const char **value)
{
    void *member = json_object_iter(f->metadata);

    for (; member != NULL && index > 0; index--)
        member = json_object_iter_next(f->metadata, member);
    if (member == NULL)
        return false;
    *key = json_object_iter_key(member);
    *value = json_string_value(json_object_iter_value(member));
    return true;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The bits moved to those of a float have an exponent that is 112 too small. */
static double half_value(uint16_t bits)
{
    bool finite = (bits & 0x7c00) != 0x7c00;
    uint32_t moved = (bits & 0x8000u) << 16 | (bits & 0x7fffu) << 13 | (finite ? 0 : 0x7f800000u);
    float value;

    memcpy(&value, &moved, sizeof value);
    return finite ? (double)value * 0x1p112 : (double)value;
}

#define GET(type, from, i) ({                                                                     \
        type value_;                                                                              \
        memcpy(&value_, (const char *)(from) + (i) * (int64_t)sizeof(type), sizeof(type));        \
        value_;                                                                                   \
    })

static double element(const safetensor *t, int64_t i)
{
    switch (t->type) {
    case SAFETENSORS_F32: return (double)GET(float, t->data, i);
    case SAFETENSORS_F64: return GET(double, t->data, i);
    case SAFETENSORS_F16: return half_value(GET(uint16_t, t->data, i));
    case SAFETENSORS_BF16: {
        uint32_t bits = (uint32_t)GET(uint16_t, t->data, i) << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    case SAFETENSORS_BOOL:
    case SAFETENSORS_U8: return GET(uint8_t, t->data, i);
    case SAFETENSORS_I8: return GET(int8_t, t->data, i);
    case SAFETENSORS_I16: return GET(int16_t, t->data, i);
    case SAFETENSORS_U16: return GET(uint16_t, t->data, i);
    case SAFETENSORS_I32: return GET(int32_t, t->data, i);
    case SAFETENSORS_U32: return GET(uint32_t, t->data, i);
    case SAFETENSORS_I64: return (double)GET(int64_t, t->data, i);
    case SAFETENSORS_U64: return (double)GET(uint64_t, t->data, i);
    case SAFETENSORS_TYPE_COUNT: break;
    }
    return 0;
}

void safetensor_doubles(const safetensor *t, double *out)
{
    for (int64_t i = 0; i < t->count; i++)
        out[i] = element(t, i);
}

/* ---- write ----------------------------------------------------------------------------------- */

static void put_metadata(FILE *file, const safetensors_content *c)
{
    if (c->metadata_count == 0)
        return;
    fputs("\"__metadata__\":{", file);
    for (int i = 0; i < c->metadata_count; i++) {
        fputs(i > 0 ? "," : "", file);
        json_put_text(file, c->metadata[i][0]);
        fputc(':', file);
        json_put_text(file, c->metadata[i][1]);
    }
    fputs(c->count > 0 ? "}," : "}", file);
}

static void put_header(FILE *file, const safetensors_content *c)
{
    uint64_t offset = 0;

    fputc('{', file);
    put_metadata(file, c);
    for (int i = 0; i < c->count; i++) {
        safetensor t = c->item[i];
        measure(&t);
        fputs(i > 0 ? "," : "", file);
        json_put_text(file, t.name);
        fprintf(file, ":{\"dtype\":\"%s\",\"shape\":[", types[t.type].name);
        for (int axis = 0; axis < t.rank; axis++)
            fprintf(file, "%s%" PRId64, axis > 0 ? "," : "", t.extent[axis]);
        fprintf(file, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, offset + t.size);
        offset += t.size;
    }
    fputc('}', file);
}

static bool put_tensors(FILE *file, const safetensors_content *c)
{
    for (int i = 0; i < c->count; i++) {
        safetensor t = c->item[i];
        const void *data = c->data != NULL ? c->data(c->context, i) : t.data;
        if (measure(&t) && t.size > 0 && (data == NULL || fwrite(data, 1, t.size, file) != t.size))
            return false;
    }
    return true;
}

/* The text of the header, malloc'ed. */
static pons_status make_header(const char *path, const safetensors_content *c, char **header,
                               size_t *size, pons_error *err)
{
    text_stream s;

    if (text_stream_open(&s))
        put_header(s.to, c);
    if (!text_stream_close(&s))
        return pons_fail(err, PONS_DEVICE, "cannot write '%s': out of memory", path);
    *header = s.text;
    *size = s.size;
    return PONS_OK;
}

/* False with the errno of what failed first. */
static bool put_file(FILE *file, const char *header, size_t size, const safetensors_content *c)
{
    size_t padded = round_up_size(size, 8);
    unsigned char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    return fwrite(length, 1, 8, file) == 8 && fwrite(header, 1, size, file) == size
           && fprintf(file, "%*s", (int)(padded - size), "") >= 0 && put_tensors(file, c)
           && fflush(file) == 0;
}

pons_status safetensors_write(const char *path, const safetensors_content *content,
                              pons_error *err)
{
    char *header = NULL;
    size_t size = 0;
    FILE *file;

    if (make_header(path, content, &header, &size, err) != PONS_OK)
        return err->status;
    if (file_open_stream(path, "w", &file, err) != PONS_OK) {
        free(header);
        return err->status;
    }
    bool good = put_file(file, header, size, content) && fsync(fileno(file)) == 0;
    int cause = errno;
    if (fclose(file) != 0 && good) {
        good = false;
        cause = errno;
    }
    free(header);
    if (good)
        return PONS_OK;
    unlink(path);
    return pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", path, strerror(cause));
}

pons_status safetensors_replace(const char *path, const safetensors_content *content,
                                pons_error *err)
{
    char *header = NULL;
    size_t size = 0;
    safe_file f;

    if (make_header(path, content, &header, &size, err) != PONS_OK)
        return err->status;
    if (safe_file_open(&f, path, err) == PONS_OK) {
        if (put_file(f.file, header, size, content)) {
            safe_file_commit(&f, err);
        } else {
            pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", path, strerror(errno));
            safe_file_discard(&f);
        }
    }
    free(header);
    return err->status;
}
