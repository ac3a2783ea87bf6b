/*
 * torch_write.c - values as a pickle of protocol 2, and their storages as entries of an archive.
 */
#include "checkpoint/torch/torch_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file/file.h"
#include "base/text/text_stream.h"
#include "checkpoint/torch/zip_writer.h"

/* Instructions of the pickle machine. */
enum {
    PROTO = '\x80', NONE = 'N', NEWTRUE = '\x88', NEWFALSE = '\x89', BININT = 'J', LONG1 = '\x8a',
    BINFLOAT = 'G', BINUNICODE = 'X', EMPTY_LIST = ']', EMPTY_DICT = '}', EMPTY_TUPLE = ')',
    MARK = '(', APPENDS = 'e', SETITEMS = 'u', TUPLE = 't', REDUCE = 'R', BINPERSID = 'Q',
    STOP = '.'
};

#define ORDERED_DICT "ccollections\nOrderedDict\n)R"

typedef struct writer {
    FILE *pickle;
    const char *where;
    arena *memory;
    const torch_storage **storage; /* in the order of their keys                                  */
    int count, room;
    byte_progress *progress;
    pons_error *err;
} writer;

static void put_number(const writer *w, int size, uint64_t value)
{
    for (int i = 0; i < size; i++)
        fputc((int)(value >> 8 * i & 0xff), w->pickle);
}

static void put_integer(const writer *w, int64_t value)
{
    bool small = value >= INT32_MIN && value <= INT32_MAX;

    fputc(small ? BININT : LONG1, w->pickle);
    if (!small)
        fputc(8, w->pickle);
    put_number(w, small ? 4 : 8, (uint64_t)value);
}

static void put_real(const writer *w, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    fputc(BINFLOAT, w->pickle);
    for (int i = 7; i >= 0; i--)
        fputc((int)(bits >> 8 * i & 0xff), w->pickle);
}

static void put_text(const writer *w, const char *bytes, size_t size)
{
    fputc(BINUNICODE, w->pickle);
    put_number(w, 4, size);
    fwrite(bytes, 1, size, w->pickle);
}

static void put_word(const writer *w, const char *text)
{
    put_text(w, text, strlen(text));
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* The key of a storage, which is noted at its first use. */
static int storage_key(writer *w, const torch_storage *s)
{
    for (int i = w->count - 1; i >= 0; i--)
        if (w->storage[i] == s)
            return i;
    if (w->count == w->room) {
        int room = 2 * w->room + 64;
        w->storage = arena_grow(w->memory, w->storage, (size_t)w->count * sizeof *w->storage,
                                (size_t)room * sizeof *w->storage);
        w->room = room;
    }
    w->storage[w->count] = s;
    return w->count++;
}

static void put_extents(const writer *w, int rank, const int64_t extent[])
{
    fputc(MARK, w->pickle);
    for (int i = 0; i < rank; i++)
        put_integer(w, extent[i]);
    fputc(TUPLE, w->pickle);
}

/* torch._utils._rebuild_tensor_v2(storage, offset, extents, strides, False, OrderedDict()). */
static void put_tensor(writer *w, const torch_tensor *t)
{
    char key[16];

    if (t->type->storage == NULL) {
        pons_fail(w->err, PONS_CONFIG, "'%s': tensors of type %s cannot be written", w->where,
                  t->type->name);
        return;
    }
    snprintf(key, sizeof key, "%d", storage_key(w, t->storage));
    fputs("ctorch._utils\n_rebuild_tensor_v2\n((", w->pickle);
    put_word(w, "storage");
    fprintf(w->pickle, "ctorch\n%s\n", t->type->storage);
    put_word(w, key);
    put_word(w, "cpu");
    put_integer(w, t->storage->count);
    fputc(TUPLE, w->pickle);
    fputc(BINPERSID, w->pickle);
    put_integer(w, t->offset);
    put_extents(w, t->rank, t->extent);
    put_extents(w, t->rank, t->stride);
    fputc(NEWFALSE, w->pickle);
    fputs(ORDERED_DICT, w->pickle);
    fputc(TUPLE, w->pickle);
    fputc(REDUCE, w->pickle);
}

/* ---- trees ----------------------------------------------------------------------------------- */

static bool is_state(const torch_value *v)
{
    int count = torch_value_count(v);

    for (int i = 0; i < count; i++)
        if (torch_value_item(v, i)->kind != TORCH_TENSOR)
            return false;
    return count > 0;
}

static void put_value(writer *w, const torch_value *v);

/* Items between a mark and the instruction that takes them all. */
static void put_items(writer *w, const torch_value *v, int last)
{
    fputc(MARK, w->pickle);
    for (int i = 0; i < v->list.count; i++)
        put_value(w, v->list.item[i]);
    fputc(last, w->pickle);
}

static void put_value(writer *w, const torch_value *v)
{
    switch (v->kind) {
    case TORCH_NONE: fputc(NONE, w->pickle); break;
    case TORCH_FLAG: fputc(v->flag ? NEWTRUE : NEWFALSE, w->pickle); break;
    case TORCH_INTEGER: put_integer(w, v->integer); break;
    case TORCH_REAL: put_real(w, v->real); break;
    case TORCH_TEXT: put_text(w, v->text.bytes, v->text.size); break;
    case TORCH_TENSOR: put_tensor(w, v->tensor); break;
    case TORCH_TUPLE: put_items(w, v, TUPLE); break;
    case TORCH_LIST:
        fputc(EMPTY_LIST, w->pickle);
        put_items(w, v, APPENDS);
        break;
    case TORCH_DICTIONARY:
        fputs(is_state(v) ? ORDERED_DICT : (char[]){ EMPTY_DICT, '\0' }, w->pickle);
        put_items(w, v, SETITEMS);
        break;
    case TORCH_BYTES: case TORCH_SET: case TORCH_OTHER:
        pons_fail(w->err, PONS_CONFIG, "'%s': %s cannot be written", w->where,
                  torch_kind_name(v->kind));
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The pickle's bytes, which the caller frees. */
static pons_status make_pickle(writer *w, const torch_value *root, text_stream *out)
{
    if (text_stream_open(out)) {
        w->pickle = out->to;
        fputc(PROTO, w->pickle);
        fputc(2, w->pickle);
        put_value(w, root);
        fputc(STOP, w->pickle);
    }
    if (!text_stream_close(out))
        pons_fail(w->err, PONS_DEVICE, "'%s': out of memory", w->where);
    return w->err->status;
}

static pons_status write_storages(const writer *w, zip_writer *z, pons_error *err)
{
    int64_t size = 0;

    for (int i = 0; i < w->count; i++)
        size += (int64_t)w->storage[i]->size;
    byte_progress_begin(w->progress, size);
    for (int i = 0; i < w->count && err->status == PONS_OK; i++) {
        const torch_storage *s = w->storage[i];
        zip_writer_add(z, arena_format(w->memory, "archive/data/%d", i), s->bytes, s->size, err);
        byte_progress_add(w->progress, (int64_t)s->size);
    }
    byte_progress_end(w->progress);
    return err->status;
}

static pons_status write_entries(const writer *w, zip_writer *z, const char *pickle, size_t size,
                                 pons_error *err)
{
    if (zip_writer_add(z, "archive/data.pkl", pickle, size, err) != PONS_OK
        || zip_writer_add(z, "archive/byteorder", "little", 6, err) != PONS_OK
        || write_storages(w, z, err) != PONS_OK)
        return err->status;
    if (zip_writer_add(z, "archive/version", "3\n", 2, err) == PONS_OK)
        zip_writer_end(z, err);
    return err->status;
}

static pons_status write_archive(const writer *w, const char *pickle, size_t size, pons_error *err)
{
    safe_file f;
    zip_writer z = { .where = w->where, .memory = w->memory };

    if (safe_file_open(&f, w->where, err) != PONS_OK)
        return err->status;
    z.file = f.file;
    if (write_entries(w, &z, pickle, size, err) == PONS_OK)
        safe_file_commit(&f, err);
    else
        safe_file_discard(&f);
    return err->status;
}

pons_status torch_file_write(const char *path, const torch_value *root, byte_progress *progress,
                             pons_error *err)
{
    writer w = { .where = path, .memory = arena_new(), .progress = progress, .err = err };
    text_stream pickle;

    if (w.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", path);
    if (make_pickle(&w, root, &pickle) == PONS_OK)
        write_archive(&w, pickle.text, pickle.size, err);
    free(pickle.text);
    arena_free(w.memory);
    return err->status;
}
