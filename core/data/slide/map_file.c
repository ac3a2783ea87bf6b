/*
 * map_file.c - write and read maps by libtiff.
 */
#include "data/slide/map_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/integer.h"
#include "data/slide/slide.h"
#include "data/tiff/tiff_file.h"

/* Bytes of values from which on a file is BigTIFF; a classic one ends at 4 GiB. */
static const int64_t BIG_FROM = (int64_t)1 << 31;

/* ---- the file ------------------------------------------------------------------------------- */

static tmsize_t read_bytes(void *context, void *out, tmsize_t size)
{
    return (tmsize_t)fread(out, 1, (size_t)size, context);
}

static tmsize_t write_bytes(void *context, void *from, tmsize_t size)
{
    return (tmsize_t)fwrite(from, 1, (size_t)size, context);
}

static toff_t seek(void *context, toff_t offset, int whence)
{
    FILE *file = context;

    return fseeko(file, (off_t)offset, whence) == 0 ? (toff_t)ftello(file) : (toff_t)-1;
}

static toff_t size_of(void *context)
{
    FILE *file = context;
    off_t at = ftello(file), size;

    fseeko(file, 0, SEEK_END);
    size = ftello(file);
    fseeko(file, at, SEEK_SET);
    return (toff_t)size;
}

static tiff_file file_of(FILE *file, const char *path, pons_error *err)
{
    return (tiff_file){ .stream = { read_bytes, write_bytes, seek, size_of, file }, .action = "map",
                        .path = path, .use = "maps of slides", .err = err };
}

/* ---- writing --------------------------------------------------------------------------------- */

struct map_writer {
    safe_file file;
    tiff_file stream;
    int64_t rows, columns;
    int classes;
    float *tile;                  /* [MAP_TILE][MAP_TILE][classes]                                */
};

/* The facts as JSON; malloc'ed, NULL: out of memory. */
static char *description_of(const map_facts *f)
{
    json_t *classes = json_array(), *all;
    char *text = NULL;

    for (int c = 0; c < f->class_count && classes != NULL; c++)
        json_array_append_new(classes, json_string(f->name[c]));
    all = json_pack("{s:o, s:[ff], s:[ff]}", "classes", classes, "step", f->step[0], f->step[1],
                    "micrometres", f->micrometres[0], f->micrometres[1]);
    if (all != NULL && f->slide != NULL)
        json_object_set_new(all, "slide", json_string(f->slide));
    if (all != NULL)
        text = json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(all);
    return text;
}

static void set_resolution(const tiff_file *s, const map_facts *f)
{
    static const double micrometres_of_centimetre = 10000;

    if (!(f->micrometres[0] > 0) || !(f->micrometres[1] > 0))
        return;
    s->lib.TIFFSetField(s->tiff, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
    s->lib.TIFFSetField(s->tiff, TIFFTAG_YRESOLUTION,
                        micrometres_of_centimetre / f->micrometres[0]);
    s->lib.TIFFSetField(s->tiff, TIFFTAG_XRESOLUTION,
                        micrometres_of_centimetre / f->micrometres[1]);
}

static pons_status set_tags(const tiff_file *s, const map_facts *f, pons_error *err)
{
    const struct { uint32_t tag; int value; } tags[] = {
        { TIFFTAG_IMAGEWIDTH, (int)f->columns }, { TIFFTAG_IMAGELENGTH, (int)f->rows },
        { TIFFTAG_TILEWIDTH, MAP_TILE }, { TIFFTAG_TILELENGTH, MAP_TILE },
        { TIFFTAG_SAMPLESPERPIXEL, f->class_count }, { TIFFTAG_BITSPERSAMPLE, 32 },
        { TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP },
        { TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG },
        { TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK },
        { TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE },
    };
    char *description = description_of(f);
    uint16_t *extra = calloc((size_t)f->class_count, sizeof *extra);

    if (description == NULL || extra == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for map '%s'", s->path);
    for (size_t i = 0; i < sizeof tags / sizeof *tags && err->status == PONS_OK; i++)
        s->lib.TIFFSetField(s->tiff, tags[i].tag, tags[i].value);
    if (err->status == PONS_OK) {
        if (f->class_count > 1)
            s->lib.TIFFSetField(s->tiff, TIFFTAG_EXTRASAMPLES, f->class_count - 1, extra);
        s->lib.TIFFSetField(s->tiff, TIFFTAG_SOFTWARE, "pons");
        s->lib.TIFFSetField(s->tiff, TIFFTAG_IMAGEDESCRIPTION, description);
        set_resolution(s, f);
    }
    free(extra);
    free(description);
    return err->status;
}

pons_status map_writer_open(const char *path, const map_facts *facts, map_writer **out,
                            pons_error *err)
{
    int64_t size = facts->rows * facts->columns * facts->class_count * (int64_t)sizeof(float);
    map_writer *w;

    if (facts->class_count > UINT16_MAX)
        return pons_fail(err, PONS_CONFIG, "map '%s': %d classes, expected at most the %d samples "
                         "of a TIFF file", path, facts->class_count, UINT16_MAX);
    w = calloc(1, sizeof *w);
    if (w == NULL || (w->tile = malloc((size_t)MAP_TILE * MAP_TILE * (size_t)facts->class_count
                                       * sizeof *w->tile)) == NULL) {
        free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory for map '%s'", path);
    }
    w->rows = facts->rows;
    w->columns = facts->columns;
    w->classes = facts->class_count;
    if (safe_file_open(&w->file, path, err) != PONS_OK) {
        free(w->tile);
        free(w);
        return err->status;
    }
    w->stream = file_of(w->file.file, w->file.path, err);
    if (tiff_open(&w->stream, size >= BIG_FROM ? "w8" : "w4") != PONS_OK
        || set_tags(&w->stream, facts, err) != PONS_OK)
        return map_writer_close(w, err);
    *out = w;
    return PONS_OK;
}

/* Cut tile 'column' from rows of a band; points beyond the map are 0. */
static void cut_tile(const map_writer *w, const float *values, int64_t rows, int64_t column)
{
    size_t tile_row = (size_t)MAP_TILE * (size_t)w->classes;
    int64_t columns = min_i64(MAP_TILE, w->columns - column);

    memset(w->tile, 0, MAP_TILE * tile_row * sizeof *w->tile);
    for (int64_t y = 0; y < rows; y++)
        memcpy(w->tile + (size_t)y * tile_row, values + (y * w->columns + column) * w->classes,
               (size_t)(columns * w->classes) * sizeof *w->tile);
}

pons_status map_writer_put(map_writer *w, int64_t band, const float *values, pons_error *err)
{
    tiff_file *s = &w->stream;
    int64_t row = band * MAP_TILE, rows = min_i64(MAP_TILE, w->rows - row);
    tmsize_t size = (tmsize_t)MAP_TILE * MAP_TILE * w->classes * (tmsize_t)sizeof *w->tile;

    s->err = err;
    for (int64_t column = 0; column < w->columns && err->status == PONS_OK; column += MAP_TILE) {
        cut_tile(w, values, rows, column);
        if (s->lib.TIFFWriteEncodedTile(s->tiff, s->lib.TIFFComputeTile(s->tiff, (uint32_t)column,
                                                                        (uint32_t)row, 0, 0),
                                        w->tile, size) < 0)
            pons_fail(err, PONS_FAILURE, "map '%s': libtiff cannot write a tile", s->path);
    }
    return err->status;
}

/* A failed write of the file has a better message than libtiff's about it. */
static void name_write_error(map_writer *w, pons_error *err)
{
    if (w->file.file != NULL && (fflush(w->file.file) != 0 || ferror(w->file.file))) {
        *err = (pons_error)PONS_ERROR_INIT;
        safe_file_commit(&w->file, err);
    } else
        safe_file_discard(&w->file);
}

pons_status map_writer_close(map_writer *w, pons_error *err)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (w == NULL)
        return err->status;
    w->stream.err = err;
    if (err->status == PONS_OK && !w->stream.lib.TIFFWriteDirectory(w->stream.tiff))
        pons_fail(err, PONS_FAILURE, "map '%s': libtiff cannot complete it", w->stream.path);
    w->stream.err = err->status == PONS_OK ? err : &ignored;
    tiff_close(&w->stream);
    if (err->status == PONS_OK)
        safe_file_commit(&w->file, err);
    else
        name_write_error(w, err);
    free(w->tile);
    free(w);
    return err->status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The words of a description. */
struct map_text {
    json_t *json;
    const char **name;
};

typedef struct map_reading {
    tiff_file stream;
    map_file *out;
    uint16_t bits;
} map_reading;

static pons_status refuse(const map_reading *r, const char *what, int64_t found,
                          const char *expected)
{
    return pons_fail(r->stream.err, PONS_DATA, "map '%s': '%s' is %lld, expected %s",
                     r->stream.path, what, (long long)found, expected);
}

static void read_pair(const json_t *json, const char *key, double out[2])
{
    const json_t *list = json_object_get(json, key);

    for (size_t i = 0; i < 2 && json_array_size(list) == 2; i++)
        out[i] = json_number_value(json_array_get(list, i));
}

/* The resolution of the tags, which other programs write too. */
static void read_resolution(const map_reading *r, map_facts *f)
{
    const tiff_file *s = &r->stream;
    float x = 0, y = 0;
    uint16_t unit = RESUNIT_NONE;

    s->lib.TIFFGetField(s->tiff, TIFFTAG_XRESOLUTION, &x);
    s->lib.TIFFGetField(s->tiff, TIFFTAG_YRESOLUTION, &y);
    s->lib.TIFFGetField(s->tiff, TIFFTAG_RESOLUTIONUNIT, &unit);
    if (!(x > 0) || !(y > 0) || (unit != RESUNIT_CENTIMETER && unit != RESUNIT_INCH))
        return;
    double micrometres = unit == RESUNIT_CENTIMETER ? 10000 : 25400;
    f->micrometres[0] = micrometres / y;
    f->micrometres[1] = micrometres / x;
}

/* The description of our own files; that of others is passed over. */
static pons_status read_description(map_reading *r)
{
    const tiff_file *s = &r->stream;
    map_facts *f = &r->out->facts;
    struct map_text *t = r->out->text = calloc(1, sizeof *t);
    const json_t *classes;
    char *text = NULL;

    if (t == NULL || (t->name = calloc((size_t)f->class_count, sizeof *t->name)) == NULL)
        return pons_fail(s->err, PONS_DEVICE, "out of memory for map '%s'", s->path);
    if (!s->lib.TIFFGetField(s->tiff, TIFFTAG_IMAGEDESCRIPTION, &text)
        || (t->json = json_loads(text, 0, NULL)) == NULL)
        return PONS_OK;
    classes = json_object_get(t->json, "classes");
    read_pair(t->json, "step", f->step);
    read_pair(t->json, "micrometres", f->micrometres);
    f->slide = json_string_value(json_object_get(t->json, "slide"));
    if (json_array_size(classes) != (size_t)f->class_count)
        return PONS_OK;
    for (int c = 0; c < f->class_count; c++)
        if ((t->name[c] = json_string_value(json_array_get(classes, (size_t)c))) == NULL)
            return PONS_OK;
    f->name = t->name;
    return PONS_OK;
}

/* A point has at least a pixel, and lies within a slide. */
static pons_status check_steps(const map_reading *r)
{
    const map_facts *f = &r->out->facts;

    for (int a = 0; a < 2; a++)
        if (f->step[a] != 0 && !(f->step[a] >= 1 && f->step[a] <= SLIDE_SIDE_MAX))
            return pons_fail(r->stream.err, PONS_DATA, "map '%s': 'step' is %.6g, expected 1 to "
                             "%d pixels", r->stream.path, f->step[a], SLIDE_SIDE_MAX);
    return PONS_OK;
}

static pons_status read_facts(map_reading *r)
{
    const tiff_file *s = &r->stream;
    map_facts *f = &r->out->facts;
    uint16_t format = SAMPLEFORMAT_UINT, samples = 1, planes = PLANARCONFIG_CONTIG;
    uint32_t columns = 0, rows = 0;

    s->lib.TIFFGetField(s->tiff, TIFFTAG_IMAGEWIDTH, &columns);
    s->lib.TIFFGetField(s->tiff, TIFFTAG_IMAGELENGTH, &rows);
    s->lib.TIFFGetFieldDefaulted(s->tiff, TIFFTAG_BITSPERSAMPLE, &r->bits);
    s->lib.TIFFGetFieldDefaulted(s->tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    s->lib.TIFFGetFieldDefaulted(s->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    s->lib.TIFFGetFieldDefaulted(s->tiff, TIFFTAG_PLANARCONFIG, &planes);
    if (rows < 1 || columns < 1 || samples < 1
        || (int64_t)rows * columns > MAP_POINTS_MAX / samples)
        return pons_fail(s->err, PONS_DATA, "map '%s': it has %u x %u points of %u values, "
                         "expected 1 to %d in all", s->path, columns, rows, samples,
                         MAP_POINTS_MAX);
    if (!(r->bits == 32 && format == SAMPLEFORMAT_IEEEFP)
        && !(r->bits == 8 && format == SAMPLEFORMAT_UINT))
        return refuse(r, "BitsPerSample", r->bits, "32 of floating point, or 8");
    if (planes != PLANARCONFIG_CONTIG && samples > 1)
        return refuse(r, "PlanarConfiguration", planes, "1 (the values of a point together)");
    *f = (map_facts){ .rows = rows, .columns = columns, .class_count = samples };
    read_resolution(r, f);
    return read_description(r) == PONS_OK ? check_steps(r) : s->err->status;
}

static pons_status begin_blocks(map_reading *r)
{
    tiff_file *s = &r->stream;
    map_facts *f = &r->out->facts;
    int64_t values = f->rows * f->columns * f->class_count;

    tiff_find_blocks(s, (uint32_t)f->columns, (uint32_t)f->rows);
    if (s->width < 1 || s->height < 1 || s->block_size < 1
        || s->block_size > (tmsize_t)MAP_POINTS_MAX * (tmsize_t)sizeof(float))
        return refuse(r, "size of a tile or strip", (int64_t)s->block_size, "1 byte to 1 GiB");
    r->out->values = malloc((size_t)values * sizeof *r->out->values);
    if (r->out->values == NULL)
        return pons_fail(s->err, PONS_DEVICE, "out of memory: map '%s' has %lld values", s->path,
                         (long long)values);
    return PONS_OK;
}

/* Copy the points of the block at (row, column) that lie in the map. */
static void take_block(const map_reading *r, int64_t row, int64_t column)
{
    const map_facts *f = &r->out->facts;
    int64_t rows = min_i64(r->stream.height, f->rows - row);
    int64_t values = min_i64(r->stream.width, f->columns - column) * f->class_count;

    for (int64_t y = 0; y < rows; y++) {
        float *to = r->out->values + ((row + y) * f->columns + column) * f->class_count;
        int64_t from = y * r->stream.width * f->class_count;

        if (r->bits == 32)
            memcpy(to, r->stream.block + (size_t)from * sizeof *to, (size_t)values * sizeof *to);
        else
            for (int64_t i = 0; i < values; i++)
                to[i] = (float)r->stream.block[from + i] / 255;
    }
}

static pons_status read_block(map_reading *r, int64_t row, int64_t column)
{
    int64_t rows = min_i64(r->stream.height, r->out->facts.rows - row);

    if (tiff_read_block(&r->stream, (uint32_t)column, (uint32_t)row, 0, rows) == PONS_OK)
        take_block(r, row, column);
    return r->stream.err->status;
}

static pons_status read_map(map_reading *r)
{
    const map_facts *f = &r->out->facts;

    /* The mode 'm' turns off memory mapping of the file. */
    if (tiff_open(&r->stream, "rm") != PONS_OK || read_facts(r) != PONS_OK
        || begin_blocks(r) != PONS_OK)
        return r->stream.err->status;
    for (int64_t row = 0; row < f->rows; row += r->stream.height)
        for (int64_t column = 0; column < f->columns; column += r->stream.width)
            if (read_block(r, row, column) != PONS_OK)
                return r->stream.err->status;
    return PONS_OK;
}

pons_status map_file_read(const char *path, map_file *out, pons_error *err)
{
    FILE *file = file_open_reader(path);
    map_reading r = { .stream = file_of(file, path, err), .out = out };

    *out = (map_file){ .values = NULL };
    if (file == NULL)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read '%s': %s", path,
                         strerror(errno));
    read_map(&r);
    tiff_close(&r.stream);
    fclose(file);
    return err->status;
}

void map_file_clear(map_file *m)
{
    free(m->values);
    if (m->text != NULL) {
        json_decref(m->text->json);
        free(m->text->name);
        free(m->text);
    }
    *m = (map_file){ .values = NULL };
}
