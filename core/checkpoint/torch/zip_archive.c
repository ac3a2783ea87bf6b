/*
 * zip_archive.c - the reader of a zip archive's central directory (PKWARE APPNOTE 6.3, sections 4.3
 * and 4.5.3). The local headers only give the places of the data.
 */
#include "checkpoint/torch/zip_archive.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"

enum {
    END_SIZE = 22, COMMENT_MAX = 65535, LOCATOR_SIZE = 20, END64_SIZE = 56, ENTRY_SIZE = 46,
    LOCAL_SIZE = 30
};

#define END_MARK 0x06054b50u
#define END64_MARK 0x06064b50u
#define LOCATOR_MARK 0x07064b50u
#define ENTRY_MARK 0x02014b50u
#define LOCAL_MARK 0x04034b50u

/* The bytes of an archive, and of its central directory. */
typedef struct span {
    const unsigned char *bytes;
    uint64_t size;
    uint64_t begin, end;    /* of the directory                                                   */
    uint64_t count;         /* entries                                                            */
} span;

static uint64_t number_at(const unsigned char *at, int size)
{
    uint64_t value = 0;

    for (int i = size - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static pons_status refuse_end(const char *where, pons_error *err)
{
    return pons_fail(err, PONS_DATA, "'%s': the end of the zip archive is missing or damaged; the "
                     "file may be cut", where);
}

/* The place of the end record; its comment ends with the file. */
static bool find_end(const span *s, uint64_t *out)
{
    uint64_t room = s->size < END_SIZE ? 0 : s->size - END_SIZE;

    if (s->size < END_SIZE)
        return false;
    for (uint64_t back = 0; back <= min_u64(room, COMMENT_MAX); back++) {
        const unsigned char *at = s->bytes + room - back;
        if (number_at(at, 4) == END_MARK && number_at(at + 20, 2) == back) {
            *out = room - back;
            return true;
        }
    }
    return false;
}

/* The directory's place and size as the zip64 record says, if there is one before 'end'. */
static bool read_end64(span *s, uint64_t end, bool *found)
{
    const unsigned char *locator, *at;
    uint64_t place, size;

    *found = false;
    if (end < LOCATOR_SIZE || number_at(s->bytes + end - LOCATOR_SIZE, 4) != LOCATOR_MARK)
        return true;
    locator = s->bytes + end - LOCATOR_SIZE;
    place = number_at(locator + 8, 8);
    if (end - LOCATOR_SIZE < END64_SIZE || place > end - LOCATOR_SIZE - END64_SIZE)
        return false;
    at = s->bytes + place;
    if (number_at(at, 4) != END64_MARK)
        return false;
    s->count = number_at(at + 32, 8);
    size = number_at(at + 40, 8);
    s->begin = number_at(at + 48, 8);
    *found = true;
    if (s->begin > place || size > place - s->begin)
        return false;
    s->end = s->begin + size;
    return true;
}

static pons_status find_directory(span *s, const char *where, pons_error *err)
{
    uint64_t end, size;
    bool found;

    if (!find_end(s, &end) || !read_end64(s, end, &found))
        return refuse_end(where, err);
    if (!found) {
        s->count = number_at(s->bytes + end + 10, 2);
        size = number_at(s->bytes + end + 12, 4);
        s->begin = number_at(s->bytes + end + 16, 4);
        if (s->begin > end || size > end - s->begin)
            return refuse_end(where, err);
        s->end = s->begin + size;
    }
    if (s->count > (s->end - s->begin) / ENTRY_SIZE)
        return refuse_end(where, err);
    return PONS_OK;
}

/* Replace sizes and place of all ones by those of the zip64 field among the extra fields. */
static bool read_extra(const unsigned char *at, uint64_t size, uint64_t value[3])
{
    while (size >= 4) {
        uint64_t id = number_at(at, 2), length = number_at(at + 2, 2), used = 0;
        if (length > size - 4)
            return false;
        for (int i = 0; id == 1 && i < 3; i++) {
            if (value[i] != UINT32_MAX)
                continue;
            if (used + 8 > length)
                return false;
            value[i] = number_at(at + 4 + used, 8);
            used += 8;
        }
        at += 4 + length;
        size -= 4 + length;
    }
    return true;
}

/* The data behind the local header at 'place', which has the same name. */
static bool find_data(const span *s, uint64_t place, zip_entry *e)
{
    const unsigned char *at = s->bytes + place;
    uint64_t name, skip;

    if (s->begin < LOCAL_SIZE || place > s->begin - LOCAL_SIZE || number_at(at, 4) != LOCAL_MARK)
        return false;
    name = number_at(at + 26, 2);
    skip = LOCAL_SIZE + name + number_at(at + 28, 2);
    if (skip > s->begin - place || name != strlen(e->name)
        || memcmp(at + LOCAL_SIZE, e->name, name) != 0 || e->size > s->begin - place - skip)
        return false;
    e->bytes = at + skip;
    return true;
}

/* Read the entry at *place of the directory, and move *place behind it. */
static bool read_entry(const span *s, uint64_t *place, arena *a, zip_entry *e)
{
    const unsigned char *at = s->bytes + *place;
    uint64_t name, extra, whole, value[3]; /* size, packed size, place of the local header */
    char *text;

    if (s->end - *place < ENTRY_SIZE || number_at(at, 4) != ENTRY_MARK)
        return false;
    name = number_at(at + 28, 2);
    extra = number_at(at + 30, 2);
    whole = ENTRY_SIZE + name + extra + number_at(at + 32, 2);
    if (whole > s->end - *place)
        return false;
    text = arena_alloc(a, name + 1);
    memcpy(text, at + ENTRY_SIZE, name);
    value[0] = number_at(at + 24, 4);
    value[1] = number_at(at + 20, 4);
    value[2] = number_at(at + 42, 4);
    if (strlen(text) != name || !read_extra(at + ENTRY_SIZE + name, extra, value))
        return false;
    *e = (zip_entry){ .name = text, .size = value[1], .crc = (uint32_t)number_at(at + 16, 4),
                      .method = (unsigned)number_at(at + 10, 2),
                      .encrypted = (number_at(at + 8, 2) & 1) != 0 };
    *place += whole;
    return (e->method != 0 || value[0] == value[1]) && find_data(s, value[2], e);
}

static pons_status read_entries(const span *s, arena *a, zip_archive *z, pons_error *err)
{
    uint64_t place = s->begin, total = 0;

    z->entry = arena_alloc(a, (size_t)(s->count + 1) * sizeof *z->entry);
    for (; (uint64_t)z->count < s->count; z->count++) {
        zip_entry *e = &z->entry[z->count];
        if (!read_entry(s, &place, a, e))
            return pons_fail(err, PONS_DATA, "'%s': entry %d of the zip archive is damaged",
                             z->where, z->count + 1);
        total += e->size;
        if (total > s->size)
            return pons_fail(err, PONS_DATA, "'%s': entries of the zip archive overlap", z->where);
        int number = name_index_add(&z->names, "", e->name, z->count);
        if (number < 0)
            return pons_fail(err, PONS_DEVICE, "'%s': out of memory", z->where);
        if (number != z->count)
            return pons_fail(err, PONS_DATA, "'%s': the zip archive has two entries '%.200s'",
                             z->where, e->name);
    }
    return PONS_OK;
}

pons_status zip_archive_read(const unsigned char *bytes, size_t size, const char *where, arena *a,
                             zip_archive *out, pons_error *err)
{
    span s = { .bytes = bytes, .size = size };

    *out = (zip_archive){ .where = where };
    if (find_directory(&s, where, err) == PONS_OK)
        read_entries(&s, a, out, err);
    if (err->status != PONS_OK)
        zip_archive_clear(out);
    return err->status;
}

void zip_archive_clear(zip_archive *z)
{
    name_index_clear(&z->names);
}

pons_status zip_archive_find(const zip_archive *z, const char *name, const zip_entry **out,
                             pons_error *err)
{
    int number = name_index_find(&z->names, "", name);
    const zip_entry *e = number >= 0 ? &z->entry[number] : NULL;

    if (e != NULL && (e->method != 0 || e->encrypted))
        return pons_fail(err, PONS_DATA, "'%s': entry '%.200s' of the zip archive is %s, expected "
                         "a stored one", z->where, name,
                         e->encrypted ? "encrypted" : "compressed");
    *out = e;
    return PONS_OK;
}
