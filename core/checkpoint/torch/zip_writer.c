/*
 * zip_writer.c - local headers, data and the central directory (PKWARE APPNOTE 6.3, sections 4.3.7,
 * 4.3.12 and 4.3.16). An extra field of the local header fills up to the place of the data.
 */
#include "checkpoint/torch/zip_writer.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

enum { ALIGNMENT = 64, LOCAL_SIZE = 30, EXTRA_SIZE = 4, ENTRY_SIZE = 46, END_SIZE = 22 };
enum { ENTRIES_MAX = 65534 };

/* The extra field that PyTorch pads with, "FB", and 1 January 1980. */
enum { PADDING_ID = 0x4246, DATE = 0x0021 };

#define LOCAL_MARK 0x04034b50u
#define ENTRY_MARK 0x02014b50u
#define END_MARK 0x06054b50u

/* A record of little-endian numbers. */
typedef struct record {
    unsigned char bytes[64];
    size_t size;
} record;

static void put(record *r, int size, uint64_t value)
{
    for (int i = 0; i < size; i++)
        r->bytes[r->size++] = (unsigned char)(value >> 8 * i);
}

static bool write_bytes(zip_writer *w, const void *bytes, size_t size)
{
    w->size += size;
    return size == 0 || fwrite(bytes, 1, size, w->file) == size;
}

static pons_status refuse_write(const zip_writer *w, pons_error *err)
{
    return pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", w->where, strerror(errno));
}

/* Fields that the local header and the directory have alike: from flags to the name's length. */
static void put_common(record *r, const zip_written *e)
{
    put(r, 2, 0);               /* flags */
    put(r, 2, 0);               /* method: stored */
    put(r, 2, 0);               /* time */
    put(r, 2, DATE);
    put(r, 4, e->crc);
    put(r, 4, e->size);
    put(r, 4, e->size);
    put(r, 2, strlen(e->name));
}

static bool write_local(zip_writer *w, const zip_written *e)
{
    static const unsigned char zeros[ALIGNMENT];
    uint64_t start = w->size + LOCAL_SIZE + strlen(e->name) + EXTRA_SIZE;
    size_t padding = (size_t)(-start % ALIGNMENT);
    record r = { .size = 0 }, extra = { .size = 0 };

    put(&r, 4, LOCAL_MARK);
    put(&r, 2, 20);             /* version 2.0 extracts it */
    put_common(&r, e);
    put(&r, 2, EXTRA_SIZE + padding);
    put(&extra, 2, PADDING_ID);
    put(&extra, 2, padding);
    return write_bytes(w, r.bytes, r.size) && write_bytes(w, e->name, strlen(e->name))
           && write_bytes(w, extra.bytes, extra.size) && write_bytes(w, zeros, padding);
}

static bool write_entry(zip_writer *w, const zip_written *e)
{
    record r = { .size = 0 };

    put(&r, 4, ENTRY_MARK);
    put(&r, 2, 20);             /* version 2.0 made it, and extracts it */
    put(&r, 2, 20);
    put_common(&r, e);
    put(&r, 2, 0);              /* extra field, comment, disk, attributes */
    put(&r, 2, 0);
    put(&r, 2, 0);
    put(&r, 2, 0);
    put(&r, 4, 0);
    put(&r, 4, e->place);
    return write_bytes(w, r.bytes, r.size) && write_bytes(w, e->name, strlen(e->name));
}

static void grow(zip_writer *w)
{
    int room = 2 * w->room + 16;

    w->entry = arena_grow(w->memory, w->entry, (size_t)w->count * sizeof *w->entry,
                          (size_t)room * sizeof *w->entry);
    w->room = room;
}

/* Whether an entry, its row of the directory and the end still lie below 4 GiB. */
static bool fits(const zip_writer *w, const char *name, size_t size)
{
    uint64_t directory = END_SIZE + ENTRY_SIZE + strlen(name);

    for (int i = 0; i < w->count; i++)
        directory += ENTRY_SIZE + strlen(w->entry[i].name);
    return w->count < ENTRIES_MAX && size < UINT32_MAX
           && w->size + LOCAL_SIZE + strlen(name) + EXTRA_SIZE + ALIGNMENT + size + directory
              < UINT32_MAX;
}

pons_status zip_writer_add(zip_writer *w, const char *name, const void *bytes, size_t size,
                           pons_error *err)
{
    zip_written e = { .name = name, .crc = (uint32_t)crc32_z(0, bytes, size),
                      .size = (uint32_t)size, .place = (uint32_t)w->size };

    if (!fits(w, name, size))
        return pons_fail(err, PONS_CONFIG, "'%s': the weights are larger than the 4 GiB of a zip "
                         "archive", w->where);
    if (w->count == w->room)
        grow(w);
    w->entry[w->count++] = e;
    if (!write_local(w, &e) || !write_bytes(w, bytes, size))
        return refuse_write(w, err);
    return PONS_OK;
}

pons_status zip_writer_end(zip_writer *w, pons_error *err)
{
    uint64_t begin = w->size;
    record r = { .size = 0 };
    bool good = true;

    for (int i = 0; good && i < w->count; i++)
        good = write_entry(w, &w->entry[i]);
    put(&r, 4, END_MARK);
    put(&r, 2, 0);              /* this disk, and that of the directory */
    put(&r, 2, 0);
    put(&r, 2, (uint64_t)w->count);
    put(&r, 2, (uint64_t)w->count);
    put(&r, 4, w->size - begin);
    put(&r, 4, begin);
    put(&r, 2, 0);              /* comment */
    if (!good || !write_bytes(w, r.bytes, r.size))
        return refuse_write(w, err);
    return PONS_OK;
}
