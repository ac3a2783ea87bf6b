/*
 * torch_file.c - the storages of both formats, and the checksums of the newer one.
 *
 * A zip archive has PREFIX/data.pkl, PREFIX/data/KEY for each storage, and PREFIX/byteorder. The
 * older format is a row of pickles: a magic number, a version, facts about the machine, the value,
 * a list of keys; behind them lie the storages in the order of the keys, 8 bytes of count and the
 * elements each.
 */
#include "checkpoint/torch/torch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/errno_status.h"
#include "base/file/mapped_file.h"
#include "base/integer.h"
#include "checkpoint/torch/pickle.h"
#include "checkpoint/torch/pickle_names.h"
#include "checkpoint/torch/zip_archive.h"

#define DATA_PICKLE "data.pkl"

enum { OLD_VERSION = 1001, KEY_SIZE_MAX = 128 };

/* A pickle of protocol 2 that is the magic number 0x1950a86a20f9469cfc6c. */
static const unsigned char old_magic[] = {
    0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'
};

struct torch_file {
    const unsigned char *bytes;
    size_t size;
    char *where;
    mapped_file *map;           /* NULL: from memory                                              */
    arena *memory;
    torch_value *root;
    zip_archive archive;
    bool is_archive;
    const char *prefix;         /* "archive/"                                                     */
    torch_storage **storage;
    int count, room;
    name_index keys;            /* numbers of storages                                            */
};

bool torch_file_is(const void *bytes, size_t size)
{
    return (size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0)
        || (size >= sizeof old_magic && memcmp(bytes, old_magic, sizeof old_magic) == 0);
}

static pons_status out_of_memory(const torch_file *f, pons_error *err)
{
    return pons_fail(err, PONS_DEVICE, "'%s': out of memory", f->where);
}

/* ---- storages -------------------------------------------------------------------------------- */

/* The bytes of a storage of the archive, whose number is exactly that of its elements. */
static pons_status find_bytes(const torch_file *f, torch_storage *s, pons_error *err)
{
    const zip_entry *entry = NULL;
    const char *name = arena_format(f->memory, "%sdata/%s", f->prefix, s->key);

    if (zip_archive_find(&f->archive, name, &entry, err) != PONS_OK)
        return err->status;
    if (entry == NULL)
        return pons_fail(err, PONS_DATA, "'%s': storage '%.40s' is missing", f->where, s->key);
    if (entry->size != s->size)
        return pons_fail(err, PONS_DATA, "'%s': storage '%.40s' has %" PRIu64 " bytes, expected "
                         "%zu", f->where, s->key, entry->size, s->size);
    s->bytes = entry->bytes;
    s->crc = entry->crc;
    return PONS_OK;
}

static pons_status add_storage(torch_file *f, torch_storage *s, pons_error *err)
{
    if (f->count == f->room) {
        int more = max_int(64, 2 * f->room);
        f->storage = arena_grow(f->memory, f->storage, (size_t)f->count * sizeof *f->storage,
                                (size_t)more * sizeof *f->storage);
        f->room = more;
    }
    if (name_index_add(&f->keys, "", s->key, f->count) < 0)
        return out_of_memory(f, err);
    f->storage[f->count++] = s;
    return PONS_OK;
}

/* ("storage", type, key, place, count), in the older format with NULL or a view behind it. */
static pons_status read_id(const torch_file *f, const torch_value *id, torch_storage *out,
                           pons_error *err)
{
    int fields = id->kind == TORCH_TUPLE ? id->list.count : 0;
    const char *word = fields >= 5 ? torch_value_text(id->list.item[0]) : NULL;
    const torch_value *count = word != NULL ? id->list.item[4] : NULL;

    if (count == NULL || strcmp(word, "storage") != 0 || count->kind != TORCH_INTEGER
        || count->integer < 0)
        return pons_fail(err, PONS_DATA, "'%s': the id of a storage is damaged", f->where);
    if (fields > 5 && id->list.item[5]->kind != TORCH_NONE)
        return pons_fail(err, PONS_DATA, "'%s': storages that are views of others are not "
                         "supported", f->where);
    out->type = pickle_names_type(id->list.item[1]);
    out->key = torch_value_text(id->list.item[2]);
    out->count = count->integer;
    if (out->type == NULL || out->key == NULL || id->list.item[2]->text.size > KEY_SIZE_MAX
        || __builtin_mul_overflow((size_t)out->count, out->type->size, &out->size))
        return pons_fail(err, PONS_DATA, "'%s': the id of a storage is damaged", f->where);
    return PONS_OK;
}

static pons_status find_storage(void *context, const torch_value *id, torch_storage **out,
                                pons_error *err)
{
    torch_file *f = context;
    torch_storage s = { .key = NULL };

    if (read_id(f, id, &s, err) != PONS_OK)
        return err->status;
    int number = name_index_find(&f->keys, "", s.key);
    if (number >= 0) {
        *out = f->storage[number];
        if ((*out)->type != s.type || (*out)->count != s.count)
            return pons_fail(err, PONS_DATA, "'%s': storage '%.40s' has two sizes or types",
                             f->where, s.key);
        return PONS_OK;
    }
    if (f->is_archive && find_bytes(f, &s, err) != PONS_OK)
        return err->status;
    *out = arena_alloc(f->memory, sizeof s);
    **out = s;
    return add_storage(f, *out, err);
}

/* ---- zip archives ---------------------------------------------------------------------------- */

static pons_status check_crc(const torch_file *f, const char *what, const unsigned char *bytes,
                             size_t size, uint32_t crc, pons_error *err)
{
    uint32_t found = (uint32_t)crc32_z(0, bytes, size);

    if (crc != 0 && found != crc)
        return pons_fail(err, PONS_DATA, "'%s': the checksum of '%.40s' is %08" PRIx32 ", expected "
                         "%08" PRIx32 "; the file is damaged", f->where, what, found, crc);
    return PONS_OK;
}

/* PREFIX of the only entry PREFIX/data.pkl. */
static pons_status find_prefix(torch_file *f, pons_error *err)
{
    for (int i = 0; i < f->archive.count; i++) {
        const char *name = f->archive.entry[i].name, *slash = strchr(name, '/');
        if (slash == NULL || strcmp(slash + 1, DATA_PICKLE) != 0)
            continue;
        if (f->prefix != NULL)
            return pons_fail(err, PONS_DATA, "'%s': the zip archive has two files " DATA_PICKLE,
                             f->where);
        f->prefix = arena_format(f->memory, "%.*s", (int)(slash + 1 - name), name);
    }
    if (f->prefix == NULL)
        return pons_fail(err, PONS_DATA, "'%s': the zip archive has no " DATA_PICKLE ", so it is "
                         "not a PyTorch file", f->where);
    return PONS_OK;
}

static pons_status find_file(const torch_file *f, const char *name, const zip_entry **out,
                             pons_error *err)
{
    return zip_archive_find(&f->archive, arena_format(f->memory, "%s%s", f->prefix, name), out,
                            err);
}

static pons_status check_archive(const torch_file *f, pons_error *err)
{
    const zip_entry *order = NULL, *constants = NULL;

    if (find_file(f, "byteorder", &order, err) != PONS_OK
        || find_file(f, "constants.pkl", &constants, err) != PONS_OK)
        return err->status;
    if (constants != NULL)
        return pons_fail(err, PONS_DATA, "'%s': it is a TorchScript program, expected a state "
                         "dictionary", f->where);
    if (order != NULL && (order->size != 6 || memcmp(order->bytes, "little", 6) != 0))
        return pons_fail(err, PONS_DATA, "'%s': its numbers are not little endian", f->where);
    return PONS_OK;
}

static pickle start_pickle(torch_file *f, const unsigned char *bytes, size_t size)
{
    return (pickle){ .bytes = bytes, .size = size, .where = f->where, .memory = f->memory,
                     .find_storage = find_storage, .context = f };
}

static pons_status read_archive(torch_file *f, pons_error *err)
{
    const zip_entry *data = NULL;
    pickle p;

    f->is_archive = true;
    if (zip_archive_read(f->bytes, f->size, f->where, f->memory, &f->archive, err) != PONS_OK
        || find_prefix(f, err) != PONS_OK || check_archive(f, err) != PONS_OK
        || find_file(f, DATA_PICKLE, &data, err) != PONS_OK
        || check_crc(f, DATA_PICKLE, data->bytes, data->size, data->crc, err) != PONS_OK)
        return err->status;
    p = start_pickle(f, data->bytes, data->size);
    if (pickle_run(&p, err) == PONS_OK)
        f->root = p.root;
    return err->status;
}

/* ---- the older format ------------------------------------------------------------------------ */

/* The pickle at *at, which moves behind it. */
static pons_status read_pickle(torch_file *f, size_t *at, torch_value **out, pons_error *err)
{
    pickle p = start_pickle(f, f->bytes + *at, f->size - *at);

    if (pickle_run(&p, err) != PONS_OK)
        return err->status;
    *at += p.end;
    *out = p.root;
    return PONS_OK;
}

static pons_status check_old(const torch_file *f, const torch_value *version,
                             const torch_value *machine, pons_error *err)
{
    const torch_value *little = torch_value_find(machine, "little_endian");

    if (version->kind != TORCH_INTEGER || version->integer != OLD_VERSION)
        return pons_fail(err, PONS_DATA, "'%s': the version of its format is not %d", f->where,
                         OLD_VERSION);
    if (little == NULL || little->kind != TORCH_FLAG || !little->flag)
        return pons_fail(err, PONS_DATA, "'%s': its numbers are not little endian", f->where);
    return PONS_OK;
}

/* The elements of one storage at *at, which moves behind them. */
static pons_status place_storage(torch_file *f, const char *key, size_t *at, pons_error *err)
{
    int number = key != NULL ? name_index_find(&f->keys, "", key) : -1;
    torch_storage *s = number >= 0 ? f->storage[number] : NULL;
    uint64_t count = 0;

    if (s == NULL || s->bytes != NULL)
        return pons_fail(err, PONS_DATA, "'%s': the list of storages is damaged", f->where);
    if (f->size - *at < 8 || f->size - *at - 8 < s->size)
        return pons_fail(err, PONS_DATA, "'%s': the file ends within storage '%.40s'", f->where,
                         key);
    for (int i = 7; i >= 0; i--)
        count = count << 8 | f->bytes[*at + (size_t)i];
    if (count != (uint64_t)s->count)
        return pons_fail(err, PONS_DATA, "'%s': storage '%.40s' has %" PRIu64 " elements, expected "
                         "%" PRId64, f->where, key, count, s->count);
    s->bytes = f->bytes + *at + 8;
    *at += 8 + s->size;
    return PONS_OK;
}

static pons_status place_storages(torch_file *f, const torch_value *keys, size_t at,
                                  pons_error *err)
{
    if (keys->kind != TORCH_LIST || keys->list.count != f->count)
        return pons_fail(err, PONS_DATA, "'%s': the list of storages has %d keys, expected %d",
                         f->where, torch_value_count(keys), f->count);
    for (int i = 0; i < keys->list.count; i++)
        if (place_storage(f, torch_value_text(keys->list.item[i]), &at, err) != PONS_OK)
            return err->status;
    if (at != f->size)
        return pons_fail(err, PONS_DATA, "'%s': the storages end at byte %zu, the file at %zu",
                         f->where, at, f->size);
    return PONS_OK;
}

static pons_status read_old(torch_file *f, pons_error *err)
{
    torch_value *version = NULL, *machine = NULL, *keys = NULL;
    size_t at = sizeof old_magic;

    if (read_pickle(f, &at, &version, err) != PONS_OK
        || read_pickle(f, &at, &machine, err) != PONS_OK
        || check_old(f, version, machine, err) != PONS_OK
        || read_pickle(f, &at, &f->root, err) != PONS_OK
        || read_pickle(f, &at, &keys, err) != PONS_OK)
        return err->status;
    return place_storages(f, keys, at, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status read_either(torch_file *f, pons_error *err)
{
    if (!torch_file_is(f->bytes, f->size))
        return pons_fail(err, PONS_DATA, "'%s': it is not a PyTorch file", f->where);
    return f->bytes[0] == 'P' ? read_archive(f, err) : read_old(f, err);
}

static torch_file *file_new(const char *where)
{
    torch_file *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    f->where = strdup(where);
    f->memory = arena_new();
    if (f->where == NULL || f->memory == NULL) {
        torch_file_close(f);
        return NULL;
    }
    return f;
}

static pons_status file_finish(torch_file *f, torch_file **out, pons_error *err)
{
    if (err->status == PONS_OK && f->map != NULL && !mapped_file_is_whole(f->map))
        pons_fail(err, PONS_DATA, "'%s': the file was cut while it was read", f->where);
    if (err->status == PONS_OK)
        *out = f;
    else
        torch_file_close(f);
    return err->status;
}

pons_status torch_file_read(const void *data, size_t size, const char *where, torch_file **out,
                            pons_error *err)
{
    torch_file *f = file_new(where);

    if (f == NULL)
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", where);
    f->bytes = data;
    f->size = size;
    read_either(f, err);
    return file_finish(f, out, err);
}

static pons_status map_file(torch_file *f, int descriptor, pons_error *err)
{
    struct stat facts;

    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode))
        return pons_fail(err, PONS_DATA, "'%s' is not a regular file", f->where);
    if (facts.st_size == 0)
        return pons_fail(err, PONS_DATA, "'%s' is empty", f->where);
    f->size = (size_t)facts.st_size;
    f->map = mapped_file_open(descriptor, 0, f->size);
    if (f->map == NULL)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read '%s': %s", f->where,
                         strerror(errno));
    f->bytes = mapped_file_bytes(f->map);
    return PONS_OK;
}

pons_status torch_file_open(const char *path, torch_file **out, pons_error *err)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    torch_file *f;

    if (descriptor < 0)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot open '%s': %s", path,
                         strerror(errno));
    f = file_new(path);
    if (f == NULL) {
        close(descriptor);
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", path);
    }
    if (map_file(f, descriptor, err) == PONS_OK)
        read_either(f, err);
    close(descriptor);
    return file_finish(f, out, err);
}

void torch_file_close(torch_file *f)
{
    if (f == NULL)
        return;
    zip_archive_clear(&f->archive);
    name_index_clear(&f->keys);
    mapped_file_close(f->map);
    arena_free(f->memory);
    free(f->where);
    free(f);
}

size_t torch_file_size(const torch_file *f)
{
    return f->size;
}

const torch_value *torch_file_root(const torch_file *f)
{
    return f->root;
}

pons_status torch_file_elements(torch_file *f, const torch_tensor *t, void *buffer,
                                const void **out, pons_error *err)
{
    torch_storage *s = t->storage;

    if (t->overlaps)
        return pons_fail(err, PONS_DATA, "'%s': elements of a tensor over storage '%.40s' overlap",
                         f->where, s->key);
    if (s->crc != 0 && check_crc(f, s->key, s->bytes, s->size, s->crc, err) != PONS_OK)
        return err->status;
    s->crc = 0;
    *out = torch_tensor_elements(t, buffer);
    if (f->map != NULL && !mapped_file_is_whole(f->map))
        return pons_fail(err, PONS_DATA, "'%s': the file was cut while it was read", f->where);
    return PONS_OK;
}

void torch_file_release(const torch_file *f, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), begin, end;

    if (f->map == NULL || from < f->bytes || from > f->bytes + f->size)
        return;
    begin = round_up_size((size_t)(from - f->bytes), page);
    end = (size_t)(from - f->bytes) + size;
    end -= end % page;
    if (begin < end)
        madvise((void *)(uintptr_t)(f->bytes + begin), end - begin, MADV_DONTNEED);
}
