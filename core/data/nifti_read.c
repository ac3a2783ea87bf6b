/*
 * nifti_read - bytes of a file, its voxels as numbers, and the one transposition from the file's
 * order (i fastest) to [D, H, W, C].
 */
#include <data/nifti.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct file_bytes {
    const char *path;
    int fd;
    int64_t size;
    bool gzip;
} file_bytes;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && !strcmp(text + n - m, end);
}

/* Without O_NONBLOCK a FIFO would wait for its writer before it could be refused. */
static pons_status bytes_open(file_bytes *f, const char *path, pons_error *err)
{
    struct stat s;

    f->path = path;
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0)
        return pons_fail(err, PONS_DATA, "cannot read '%s': %s", path, strerror(errno));
    if (fstat(f->fd, &s) || !S_ISREG(s.st_mode)) {
        close(f->fd);
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is %s, expected a regular file",
                         path, S_ISDIR(s.st_mode) ? "a folder" : "no file with an end");
    }
    f->size = s.st_size;
    return PONS_OK;
}

static pons_status bytes_read(const file_bytes *f, int64_t offset, void *out, size_t size,
                              pons_error *err)
{
    char *to = out;

    while (size) {
        ssize_t got = pread(f->fd, to, size < (1u << 30) ? size : (1u << 30), offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return pons_fail(err, PONS_DATA, "cannot read '%s': %s at byte %lld", f->path,
                             got ? strerror(errno) : "it ended", (long long)offset);
        to += got;
        offset += got;
        size -= (size_t)got;
    }
    return PONS_OK;
}

/* The name and the content must agree on compression. */
static pons_status check_name(file_bytes *f, const unsigned char *head, size_t available,
                              pons_error *err)
{
    bool compressed = available >= 2 && head[0] == 0x1f && head[1] == 0x8b;

    f->gzip = ends_with(f->path, ".gz");
    if (!available)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is empty, expected a NIfTI file",
                         f->path);
    if (f->gzip && !compressed)
        return pons_fail(err, PONS_DATA, "cannot read '%s': gzip begins with %02x %02x, expected "
                         "1f 8b", f->path, head[0], available > 1 ? head[1] : 0);
    if (!f->gzip && compressed)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is compressed, expected the name "
                         "to end in '.gz'", f->path);
    return PONS_OK;
}

static pons_status header_read(file_bytes *f, nifti_layout *layout, pons_error *err)
{
    unsigned char head[16384], plain[NIFTI_HEADER_LARGEST];
    size_t available = f->size < (int64_t)sizeof head ? (size_t)f->size : sizeof head;
    pons_status status = bytes_read(f, 0, head, available, err);

    if (!status)
        status = check_name(f, head, available, err);
    if (status)
        return status;
    if (f->gzip)
        available = gzip_peek(head, available, plain, sizeof plain);
    return nifti_header_check(f->path, f->gzip ? plain : head, available, f->size, f->gzip, layout,
                              err);
}

static pons_status voxels_inflate(const file_bytes *f, const nifti_layout *layout,
                                  unsigned char *data, pons_error *err)
{
    unsigned char *packed = malloc((size_t)f->size);
    pons_status status;

    if (!packed)
        return pons_fail(err, PONS_DEVICE, "out of memory: '%s' needs %lld bytes", f->path,
                         (long long)f->size);
    status = bytes_read(f, 0, packed, (size_t)f->size, err);
    if (!status)
        status = gzip_inflate(f->path, packed, (size_t)f->size, data,
                              (size_t)(layout->offset + layout->data_size), err);
    free(packed);
    return status;
}

pons_status nifti_bytes_read(const char *path, nifti_layout *layout, void **data, pons_error *err)
{
    file_bytes f;
    void *fresh = NULL;
    pons_status status = bytes_open(&f, path, err);

    if (status)
        return status;
    status = header_read(&f, layout, err);
    if (!status && data) {
        fresh = malloc((size_t)(layout->offset + layout->data_size));
        if (!fresh)
            status = pons_fail(err, PONS_DEVICE, "out of memory: the voxels of '%s' need %lld "
                               "bytes", path, (long long)(layout->offset + layout->data_size));
        else if (f.gzip)
            status = voxels_inflate(&f, layout, fresh, err);
        else
            status = bytes_read(&f, 0, fresh, (size_t)f.size, err);
    }
    close(f.fd);
    if (status)
        free(fresh);
    else if (data)
        *data = fresh;
    return status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

enum { SIDE_I = 64, SIDE_K = 16 };

/* What goes through the transposition, and what it has met that must be refused. */
typedef struct conversion {
    const nifti_layout *layout;
    const unsigned char *from;
    volume *to;
    bool label;
    int64_t bad_count, bad_first;  /* voxels refused; smallest index in the file's order */
    double bad_value;
} conversion;

static void swap_row(const unsigned char *from, int64_t count, int size, unsigned char *to)
{
    for (int64_t n = 0; n < count; n++)
        for (int b = 0; b < size; b++)
            to[n * size + b] = from[n * size + size - 1 - b];
}

static void note_bad(conversion *c, int64_t index, double value)
{
    if (!c->bad_count++ || index < c->bad_first) {
        c->bad_first = index;
        c->bad_value = value;
    }
}

/* One row along i, as doubles: order of bytes, slope and intercept, finite and whole numbers. */
static void row_load(conversion *c, int64_t index, int64_t count, double *row)
{
    const volume_facts *facts = &c->layout->facts;
    const nifti_kind *kind = c->layout->kind;
    const unsigned char *from = c->from + index * kind->size;
    unsigned char swapped[SIDE_I * 8];

    if (facts->big_endian && kind->size > 1) {
        swap_row(from, count, kind->size, swapped);
        from = swapped;
    }
    kind->load(from, count, row);
    if (c->label) {
        for (int64_t n = 0; n < count; n++)
            if (!(row[n] == rint(row[n]) && fabs(row[n]) <= INT32_MAX)) {
                note_bad(c, index + n, row[n]);
                row[n] = 0;
            }
        return;
    }
    if (kind->floating)
        for (int64_t n = 0; n < count; n++)
            if (!isfinite(row[n]))
                note_bad(c, index + n, row[n]);
    if (facts->slope != 1 || facts->intercept != 0)
        for (int64_t n = 0; n < count; n++)
            row[n] = row[n] * facts->slope + facts->intercept;
}

/* A tile of rows of channel c at plane j: [k][i] doubles to [i][k] of the volume. */
static void tile_store(const conversion *c, double tile[SIDE_K][SIDE_I], const int64_t at[4],
                       int64_t i_count, int64_t k_count)
{
    const volume *v = c->to;
    int64_t channels = v->channels;

    for (int64_t i = 0; i < i_count; i++) {
        int64_t first = (((at[0] + i) * v->extent[1] + at[1]) * v->extent[2] + at[2]) * channels +
                        at[3];
        if (c->label)
            for (int64_t k = 0; k < k_count; k++)
                ((int32_t *)v->voxels)[first + k * channels] = (int32_t)tile[k][i];
        else
            for (int64_t k = 0; k < k_count; k++)
                ((float *)v->voxels)[first + k * channels] = (float)tile[k][i];
    }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void transpose_channel(conversion *c, int64_t channel)
{
    const int64_t *n = c->layout->extent;
    double tile[SIDE_K][SIDE_I];
    int64_t at[4] = { 0, 0, 0, channel };

    for (at[0] = 0; at[0] < n[0]; at[0] += SIDE_I)
        for (at[2] = 0; at[2] < n[2]; at[2] += SIDE_K)
            for (at[1] = 0; at[1] < n[1]; at[1]++) {
                int64_t i_count = least(SIDE_I, n[0] - at[0]);
                int64_t k_count = least(SIDE_K, n[2] - at[2]);

                for (int64_t k = 0; k < k_count; k++)
                    row_load(c, ((channel * n[2] + at[2] + k) * n[1] + at[1]) * n[0] + at[0],
                             i_count, tile[k]);
                tile_store(c, tile, at, i_count, k_count);
            }
}

static pons_status refuse_bad(const char *path, const conversion *c, pons_error *err)
{
    const int64_t *n = c->layout->extent;
    int64_t at = c->bad_first;
    long long i = at % n[0], j = at / n[0] % n[1], k = at / n[0] / n[1] % n[2];

    return pons_fail(err, PONS_DATA, "cannot read '%s': %lld voxels are %s, the first %g at %lld "
                     "%lld %lld, expected %s", path, (long long)c->bad_count,
                     c->label ? "no label" : "not finite", c->bad_value, i, j, k,
                     c->label ? "whole numbers" : "finite numbers");
}

static pons_status convert(const char *path, const nifti_layout *layout, const void *data,
                           bool label, volume *out, pons_error *err)
{
    volume fresh;
    conversion c = { .layout = layout, .from = (const unsigned char *)data + layout->offset,
                     .to = &fresh, .label = label };
    pons_status status = pons_volume_init(&fresh, label ? PONS_I32 : PONS_F32,
                                          (int)layout->extent[3], layout->extent, err);

    if (status)
        return status;
    memcpy(fresh.affine, layout->facts.grid.affine, sizeof fresh.affine);
    for (int64_t channel = 0; channel < layout->extent[3]; channel++)
        transpose_channel(&c, channel);
    if (c.bad_count) {
        pons_volume_clear(&fresh);
        return refuse_bad(path, &c, err);
    }
    *out = fresh;
    return PONS_OK;
}

static pons_status check_label(const char *path, const nifti_layout *layout, pons_error *err)
{
    const volume_facts *facts = &layout->facts;

    if (facts->slope != 1 || facts->intercept != 0)
        return pons_fail(err, PONS_DATA, "cannot read label '%s': 'scl_slope' is %g and "
                         "'scl_inter' %g, expected 1 and 0", path, facts->slope,
                         facts->intercept);
    if (facts->channels != 1)
        return pons_fail(err, PONS_DATA, "cannot read label '%s': 'dim[4]' is %d, expected 1",
                         path, facts->channels);
    return PONS_OK;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static pons_status volume_read(const char *path, bool label, volume *out, volume_facts *facts,
                               pons_error *err)
{
    nifti_layout layout;
    void *data;
    pons_status status = nifti_bytes_read(path, &layout, &data, err);

    if (status)
        return status;
    if (label)
        status = check_label(path, &layout, err);
    if (!status)
        status = convert(path, &layout, data, label, out, err);
    free(data);
    if (!status && facts)
        *facts = layout.facts;
    return status;
}

pons_status volume_read_facts(const char *path, volume_facts *facts, pons_error *err)
{
    nifti_layout layout;
    pons_status status = nifti_bytes_read(path, &layout, NULL, err);

    if (!status)
        *facts = layout.facts;
    return status;
}

pons_status volume_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return volume_read(path, false, out, facts, err);
}

pons_status volume_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return volume_read(path, true, out, facts, err);
}

/* Channels of 'part' into the volume from channel 'first' on. */
static void put_channels(const volume *part, volume *out, int first)
{
    int64_t count = pons_volume_count(out);
    const float *from = part->voxels;
    float *to = (float *)out->voxels + first;

    for (int64_t n = 0; n < count; n++, from += part->channels, to += out->channels)
        for (int c = 0; c < part->channels; c++)
            to[c] = from[c];
}

static pons_status count_channels(int count, const char *const *path, volume_grid *grid,
                                  int *channels, pons_error *err)
{
    volume_facts facts;
    pons_status status;

    *channels = 0;
    for (int n = 0; n < count; n++) {
        status = volume_read_facts(path[n], &facts, err);
        if (status)
            return status;
        if (n == 0)
            *grid = facts.grid;
        else
            status = volume_grid_compare(&facts.grid, path[n], grid, path[0], err);
        if (status)
            return status;
        *channels += facts.channels;
    }
    return PONS_OK;
}

pons_status volume_read_channels(int count, const char *const *path, volume *out,
                                 volume_grid *grid, pons_error *err)
{
    volume fresh, part;
    volume_facts facts;
    volume_grid first = { .units = 0 };
    int channels, done = 0;
    pons_status status;

    if (count == 1) {
        status = volume_read_image(path[0], out, &facts, err);
        if (!status && grid)
            *grid = facts.grid;
        return status;
    }
    status = count_channels(count, path, &first, &channels, err);
    if (!status)
        status = pons_volume_init(&fresh, PONS_F32, channels, first.extent, err);
    if (status)
        return status;
    memcpy(fresh.affine, first.affine, sizeof fresh.affine);
    for (int n = 0; n < count && !status; n++) {
        status = volume_read_image(path[n], &part, NULL, err);
        if (status)
            break;
        put_channels(&part, &fresh, done);
        done += part.channels;
        pons_volume_clear(&part);
    }
    if (status) {
        pons_volume_clear(&fresh);
        return status;
    }
    *out = fresh;
    if (grid)
        *grid = first;
    return PONS_OK;
}
