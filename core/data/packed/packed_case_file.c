/*
 * packed_case_file.c - write and map files of packed cases.
 *
 * A file has a header and the parts of the case, each at a multiple of 64 bytes, the codes at a
 * multiple of a page. Numbers have native byte order; a file of another byte order or version is
 * refused, and the cache makes it again.
 */
#include "data/packed/packed_case_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/hash/hash128.h"
#include "base/integer.h"

enum { PART_TABLE = 0, PART_CODES, PART_TARGET, PART_BEFORE, PART_NOTE, PART_COUNT };
enum { VERSION = 2, PAGE = 4096, ALIGNMENT = 64 };

typedef struct file_part {
    uint64_t offset, size;
} file_part;

/* Without padding, so that equal members give equal bytes. */
typedef struct file_header {
    char magic[8];             /* "PONSCASE" */
    uint32_t byte_order, version;
    char key[64];
    uint64_t size;             /* size of the file */
    file_part part[PART_COUNT];
    int64_t image_extent[3], image_start[3], image_inside[3];
    double image_affine[3][4];
    int64_t label_extent[3], label_start[3], label_inside[3];
    double label_affine[3][4];
    int64_t image_channels, label_channels, image_type, label_type;
    int64_t code_size, sets, set_count, block_count, packed_size;
    double background_above;
    hash128 body;              /* of what follows the header */
    hash128 head;              /* of the members before */
} file_header;

/* ---- shape ----------------------------------------------------------------------------------- */

static void put_volume(const pons_volume *v, int64_t extent[3], int64_t start[3],
                       int64_t inside[3], double affine[3][4])
{
    memcpy(extent, v->extent, sizeof v->extent);
    memcpy(start, v->inside_start, sizeof v->inside_start);
    memcpy(inside, v->inside_extent, sizeof v->inside_extent);
    memcpy(affine, v->affine, sizeof v->affine);
}

static pons_volume get_volume(int64_t type, int64_t channels, const int64_t extent[3],
                              const int64_t start[3], const int64_t inside[3],
                              const double affine[3][4])
{
    pons_volume v = { .type = (pons_type)type, .channels = (int)channels };

    memcpy(v.extent, extent, sizeof v.extent);
    memcpy(v.inside_start, start, sizeof v.inside_start);
    memcpy(v.inside_extent, inside, sizeof v.inside_extent);
    memcpy(v.affine, affine, sizeof v.affine);
    return v;
}

static void set_part_offsets(file_header *h, const packed_case *p, const char *note)
{
    uint64_t voxels = (uint64_t)pons_volume_count(&p->image), at = sizeof *h;
    const uint64_t sizes[PART_COUNT] = {
        [PART_TABLE] = (uint64_t)p->table_count * sizeof *p->table,
        [PART_CODES] = voxels * (uint64_t)p->image.channels * (uint64_t)p->code_size,
        [PART_TARGET] = p->target == NULL ? 0
                        : (uint64_t)pons_volume_count(&p->label) * (uint64_t)p->label.channels,
        [PART_BEFORE] = p->before == NULL ? 0
                        : ((uint64_t)p->block_count + 1) * (uint64_t)p->set_count *
                              sizeof *p->before,
        [PART_NOTE] = strlen(note) + 1
    };

    for (int n = 0; n < PART_COUNT; n++) {
        at = round_up_u64(at, n == PART_CODES ? PAGE : ALIGNMENT);
        h->part[n] = (file_part){ at, sizes[n] };
        at += sizes[n];
    }
    h->size = at;
}

size_t packed_case_file_size(const packed_case *p, const char *note)
{
    file_header h;

    set_part_offsets(&h, p, note);
    return (size_t)h.size;
}

static void fill_header(file_header *h, const char *key, const packed_case *p, const char *note)
{
    memset(h, 0, sizeof *h);
    memcpy(h->magic, "PONSCASE", sizeof h->magic);
    h->byte_order = 0x01020304;
    h->version = VERSION;
    memcpy(h->key, key, sizeof h->key);
    set_part_offsets(h, p, note);
    put_volume(&p->image, h->image_extent, h->image_start, h->image_inside, h->image_affine);
    put_volume(&p->label, h->label_extent, h->label_start, h->label_inside, h->label_affine);
    h->image_channels = p->image.channels;
    h->label_channels = p->label.channels;
    h->image_type = p->image.type;
    h->label_type = p->label.type;
    h->code_size = p->code_size;
    h->sets = p->sets;
    h->set_count = p->set_count;
    h->block_count = p->block_count;
    h->packed_size = (int64_t)p->size;
    h->background_above = p->background_above;
}

/* ---- write ----------------------------------------------------------------------------------- */

/* The whole file in memory: written in one go, and its hash is that of what is written. */
static void fill_body(char *bytes, const file_header *h, const packed_case *p, const char *note)
{
    const void *const from[PART_COUNT] = {
        [PART_TABLE] = p->table, [PART_CODES] = p->codes, [PART_TARGET] = p->target,
        [PART_BEFORE] = p->before, [PART_NOTE] = note
    };

    for (int n = 0; n < PART_COUNT; n++)
        if (h->part[n].size > 0)
            memcpy(bytes + h->part[n].offset, from[n], h->part[n].size);
}

pons_status packed_case_file_make(const char *key, const packed_case *p, const char *note,
                                  char **out, size_t *size, pons_error *err)
{
    file_header h;
    char *bytes;

    fill_header(&h, key, p, note);
    bytes = calloc(1, h.size);
    if (bytes == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: a case of the cache needs %llu bytes",
                         (unsigned long long)h.size);
    fill_body(bytes, &h, p, note);
    h.body = hash128_of(bytes + sizeof h, h.size - sizeof h);
    h.head = hash128_of(&h, offsetof(file_header, head));
    memcpy(bytes, &h, sizeof h);
    *out = bytes;
    *size = (size_t)h.size;
    return PONS_OK;
}

pons_status packed_case_file_write(const char *path, const char *key, const packed_case *p,
                                   const char *note, pons_error *err)
{
    safe_file f;
    char *bytes;
    size_t size;

    if (packed_case_file_make(key, p, note, &bytes, &size, err) != PONS_OK)
        return err->status;
    if (safe_file_open_swept(&f, path, err) == PONS_OK) {
        if (safe_file_write(&f, bytes, size, err) == PONS_OK)
            safe_file_commit(&f, err);
        else
            safe_file_discard(&f);
    }
    free(bytes);
    return err->status;
}

/* ---- map ------------------------------------------------------------------------------------- */

static const char *file_problem(const file_header *h, const char *bytes, size_t size,
                                const char *key)
{
    hash128 found;

    if (size < sizeof *h || memcmp(h->magic, "PONSCASE", sizeof h->magic) != 0)
        return "it is no cached case";
    if (h->byte_order != 0x01020304 || h->version != VERSION)
        return "another version of pons has written it";
    found = hash128_of(h, offsetof(file_header, head));
    if (memcmp(&found, &h->head, sizeof found) != 0)
        return "its header is damaged";
    if (memcmp(h->key, key, sizeof h->key) != 0)
        return "it holds another case";
    if (h->size != size)
        return "its length is not what it was";
    found = hash128_of(bytes + sizeof *h, size - sizeof *h);
    return memcmp(&found, &h->body, sizeof found) != 0 ? "its checksum is wrong" : NULL;
}

static void *part_address(const file_header *h, char *bytes, int part)
{
    return h->part[part].size > 0 ? bytes + h->part[part].offset : NULL;
}

static void set_case_parts(const file_header *h, mapped_file *m, packed_case *p, const char **note)
{
    char *bytes = mapped_file_bytes(m);

    *p = (packed_case){
        .image = get_volume(h->image_type, h->image_channels, h->image_extent, h->image_start,
                            h->image_inside, h->image_affine),
        .label = get_volume(h->label_type, h->label_channels, h->label_extent, h->label_start,
                            h->label_inside, h->label_affine),
        .code_size = (int)h->code_size,
        .table_count = (int)(h->part[PART_TABLE].size / sizeof *p->table),
        .table = part_address(h, bytes, PART_TABLE), .codes = part_address(h, bytes, PART_CODES),
        .target = part_address(h, bytes, PART_TARGET), .before = part_address(h, bytes,
                                                                              PART_BEFORE),
        .sets = (sampling_sets)h->sets, .set_count = (int)h->set_count,
        .background_above = h->background_above, .block_count = h->block_count,
        .size = (size_t)h->packed_size, .mapping = m, .mapping_size = (size_t)h->size
    };
    *note = part_address(h, bytes, PART_NOTE);
}

pons_status packed_case_file_use(mapped_file *m, size_t size, const char *key, packed_case *p,
                                 const char **note, pons_error *err)
{
    file_header h = { .size = 0 };
    const char *problem;

    memcpy(&h, mapped_file_bytes(m), size < sizeof h ? size : sizeof h);
    problem = file_problem(&h, mapped_file_bytes(m), size, key);
    if (problem != NULL)
        return pons_fail(err, PONS_DATA, "%s", problem);
    set_case_parts(&h, m, p, note);
    return PONS_OK;
}

static pons_status map_open_file(int fd, const char *path, const char *key, packed_case *p,
                                 const char **note, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    struct stat s;
    mapped_file *m;

    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size < (off_t)sizeof(file_header))
        return pons_fail(err, PONS_DATA, "'%s' cannot be used: it is no cached case", path);
    m = mapped_file_open(fd, 0, (size_t)s.st_size);
    if (m == NULL)
        return pons_fail(err, PONS_FAILURE, "cannot map '%s': %s", path, strerror(errno));
    if (packed_case_file_use(m, (size_t)s.st_size, key, p, note, &problem) == PONS_OK)
        return PONS_OK;
    mapped_file_close(m);
    return pons_fail(err, PONS_DATA, "'%s' cannot be used: %s", path, problem.text);
}

pons_status packed_case_file_map(const char *path, const char *key, packed_case *p,
                                 const char **note, pons_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    pons_status status;

    if (fd < 0)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot open '%s': %s", path,
                         strerror(errno));
    status = map_open_file(fd, path, key, p, note, err);
    close(fd);
    return status;
}

pons_status packed_case_file_map_shared(int fd, int64_t offset, size_t size, packed_case *p,
                                        pons_error *err)
{
    mapped_file *m = mapped_file_open(fd, (off_t)offset, size);
    file_header h;
    const char *note;

    if (m == NULL)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot map %zu bytes of shared "
                         "memory: %s", size, strerror(errno));
    memcpy(&h, mapped_file_bytes(m), sizeof h);
    set_case_parts(&h, m, p, &note);
    return PONS_OK;
}
