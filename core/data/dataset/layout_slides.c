/*
 * layout_slides.c - patches of whole-slide images, each with a class, from one or two lists in CSV.
 *
 *   tumor_091,53482,122481,1          slide, x, y, label; or with a first row of these names
 *   tumor_091,53482,122481,0,0,1,...  a label for each patch of a grid, column by column
 *
 * x counts columns and y rows of level 0. A list of [data] slide_validation is the validation list.
 * Rows that name a slide which cannot be used are one problem.
 */
#include "data/dataset/layout.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/file/csv_table.h"
#include "base/hash/name_index.h"
#include "base/system/memory_limit.h"
#include "base/text/text.h"

enum { OPEN_LEAST = 16, OPEN_MOST = 1024 };
enum { NAME = 0, X, Y, FIELDS, LABELS_MAX = SLIDE_GRID_MAX * SLIDE_GRID_MAX };

static const char *const field_words[FIELDS] = { "slide", "x", "y" };

/* A slide that rows have named. */
typedef struct named_slide {
    const char *path;
    int number;                /* in the pool                                                     */
    bool usable;
    int64_t rows, columns;     /* of level 0                                                      */
    double downsample;         /* of the patches' level                                           */
} named_slide;

typedef struct slides_reader {
    const slide_settings *settings;
    bool unlabelled;           /* rows need no label                                              */
    bool held_out;             /* the current list is that of validation                          */
    layout_list list;
    csv_table table;
    bool header;
    int field[FIELDS], label[LABELS_MAX], label_count, columns; /* positions in a row             */
    name_index names;
    named_slide *slide;
    int slide_count;
    slide_pool *pool;
} slides_reader;

/* ---- columns --------------------------------------------------------------------------------- */

static int label_count_of(const slides_reader *r)
{
    return (int)(r->settings->grid * r->settings->grid);
}

static pons_status refuse_columns(const slides_reader *r, const csv_row *row, pons_error *err)
{
    arena *memory = r->list.out->memory;
    int labels = label_count_of(r);
    const char *text = "", *expected = labels == 1 ? "'label'"
                                       : arena_format(memory, "%d labels, one for each patch of "
                                                      "'slide_grid'", labels);

    for (int i = 0; i < row->count && i < 12; i++)
        text = arena_format(memory, "%s%s'%s'", text, i > 0 ? ", " : "", row->cell[i]);
    return pons_fail(err, PONS_DATA, "'%s' row %d: the columns are %s, expected 'slide', 'x', 'y' "
                     "and %s", r->list.path, row->line, text, expected);
}

static void find_named_columns(slides_reader *r, const csv_row *row)
{
    for (int f = 0; f < FIELDS; f++)
        r->field[f] = -1;
    for (int i = 0; i < row->count; i++) {
        for (int f = 0; f < FIELDS; f++)
            if (strcasecmp(row->cell[i], field_words[f]) == 0)
                r->field[f] = i;
        if (strncasecmp(row->cell[i], "label", 5) == 0 && r->label_count < LABELS_MAX)
            r->label[r->label_count++] = i;
    }
}

static void place_columns(slides_reader *r, const csv_row *row)
{
    for (int f = 0; f < FIELDS; f++)
        r->field[f] = f < row->count ? f : -1;
    for (int i = FIELDS; i < row->count && r->label_count < LABELS_MAX; i++)
        r->label[r->label_count++] = i;
}

/* A file without a header has numbers in the first row. */
static bool has_position(const csv_row *row)
{
    int64_t value;

    return row->count > Y && text_integer(row->cell[X], &value)
           && text_integer(row->cell[Y], &value);
}

static pons_status find_columns(slides_reader *r, pons_error *err)
{
    const csv_row *row = r->table.row;

    if (r->table.count == 0)
        return pons_fail(err, PONS_DATA, "'%s' is empty, expected a row for each patch",
                         r->list.path);
    r->columns = row->count;
    r->label_count = 0;
    r->header = !has_position(row);
    (r->header ? find_named_columns : place_columns)(r, row);
    if (r->field[NAME] < 0 || r->field[X] < 0 || r->field[Y] < 0
        || (r->label_count != label_count_of(r) && !(r->unlabelled && r->label_count == 0)))
        return refuse_columns(r, row, err);
    return PONS_OK;
}

/* ---- slides ---------------------------------------------------------------------------------- */

static const char *slide_file(const slides_reader *r, const char *name)
{
    const char *pattern = r->settings->files, *star = pattern != NULL ? strchr(pattern, '*') : NULL;
    arena *memory = r->list.out->memory;

    if (star != NULL)
        return arena_format(memory, "%.*s%s%s", (int)(star - pattern), pattern, name, star + 1);
    return arena_format(memory, "%s%s", name[0] == '/' ? "" : r->list.folder, name);
}

static pons_status read_facts(slides_reader *r, named_slide *n, pons_error *err)
{
    const slide_level *top;
    int level = (int)r->settings->level;
    slide *s;

    if (slide_pool_borrow(r->pool, n->number, &s, err) != PONS_OK)
        return err->status;
    top = slide_level_at(s, 0);
    n->rows = top->rows;
    n->columns = top->columns;
    if (level >= slide_level_count(s))
        pons_fail(err, PONS_DATA, "'%s' has %d level%s, but 'slide_level' is %d", n->path,
                  slide_level_count(s), text_plural(slide_level_count(s)), level);
    else if (slide_check_level(s, level, err) == PONS_OK)
        n->downsample = slide_level_at(s, level)->downsample;
    slide_pool_release(r->pool, n->number, false);
    return err->status;
}

/* Open the slide that a row is the first to name; one that cannot be used is a problem. */
static pons_status add_slide(slides_reader *r, const csv_row *row, const char *name,
                             pons_error *err)
{
    pons_error cause = PONS_ERROR_INIT;
    named_slide *n = &r->slide[r->slide_count];

    *n = (named_slide){ .path = slide_file(r, name) };
    n->number = slide_pool_add(r->pool, n->path);
    if (n->number < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    n->usable = read_facts(r, n, &cause) == PONS_OK;
    if (cause.status != PONS_OK && cause.status != PONS_DATA)
        return pons_fail(err, cause.status, "%s", cause.text);
    if (!n->usable)
        layout_problem(r->list.out, NULL, r->list.path, "'%s' row %d: %s", r->list.path, row->line,
                       cause.text);
    r->slide_count++;
    return PONS_OK;
}

static pons_status find_slide(slides_reader *r, const csv_row *row, const named_slide **out,
                              pons_error *err)
{
    const char *name = row->cell[r->field[NAME]];
    int number = name_index_add(&r->names, "", name, r->slide_count);

    if (number < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (number == r->slide_count && add_slide(r, row, name, err) != PONS_OK)
        return err->status;
    *out = &r->slide[number];
    return PONS_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *cell_place(const slides_reader *r, const csv_row *row, int column)
{
    arena *memory = r->list.out->memory;

    return r->header ? arena_format(memory, "'%s' row %d, column '%s'", r->list.path, row->line,
                                    r->table.row[0].cell[column])
                     : arena_format(memory, "'%s' row %d, column %d", r->list.path, row->line,
                                    column + 1);
}

static void cell_problem(slides_reader *r, const csv_row *row, int column, const char *expected)
{
    layout_problem(r->list.out, NULL, r->list.path, "%s: found '%s', expected %s",
                   cell_place(r, row, column), row->cell[column], expected);
}

/* Read x or y, which lies in 0 .. count - 1. */
static bool read_position(slides_reader *r, const csv_row *row, int field, int64_t count,
                          int64_t *out)
{
    int column = r->field[field];

    if (text_integer(row->cell[column], out) && *out >= 0 && *out < count)
        return true;
    cell_problem(r, row, column, arena_format(r->list.out->memory, "0 to %lld, a %s of the slide",
                                              (long long)count - 1,
                                              field == X ? "column" : "row"));
    return false;
}

/* Pixels of the level along a side of what lies at a position. */
static int64_t whole_extent(const slide_settings *s)
{
    return s->grid > 1 && s->region > 0 ? s->region : s->grid * s->extent;
}

/* Pixels of the level from the first patch of the grid to the next. */
static int64_t grid_step(const slide_settings *s)
{
    return s->grid > 1 ? (whole_extent(s) - s->extent) / (s->grid - 1) : 0;
}

/* A row whose slide and position are known. */
typedef struct patch_row {
    const csv_row *row;
    const named_slide *slide;
    const char *stem, *place;
    int64_t at[2];             /* x, y                                                            */
} patch_row;

/* The first pixel of patch 'cell' of the grid along x (0) or y (1), in pixels of level 0. */
static int64_t first_pixel(const slides_reader *r, const patch_row *p, int axis, int64_t cell)
{
    const slide_settings *s = r->settings;
    int64_t position = p->at[axis];
    double scale = p->slide->downsample;

    if (!s->corner)
        position -= (int64_t)floor((double)(whole_extent(s) / 2) * scale);
    return position + (int64_t)floor((double)(cell * grid_step(s)) * scale);
}

/* The slide's name as part of a case's id: '_' for '/', and without the ending of a file. */
static const char *id_stem(const slides_reader *r, const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    bool ending = r->settings->files == NULL && dot != NULL && (slash == NULL || dot > slash);
    char *stem = arena_format(r->list.out->memory, "%.*s",
                              (int)(ending ? (size_t)(dot - name) : strlen(name)), name);

    for (char *c = stem; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    return stem;
}

static bool set_class(slides_reader *r, const csv_row *row, int column, data_case *c)
{
    c->class_name = row->cell[column];
    c->class_place = cell_place(r, row, column);
    if (c->class_name[0] == '\0')
        cell_problem(r, row, column, "a class");
    return c->class_name[0] != '\0';
}

/* Add the patch of one cell of the grid; cells are numbered column by column. */
static void add_patch(slides_reader *r, const patch_row *p, int cell)
{
    arena *memory = r->list.out->memory;
    const slide_settings *s = r->settings;
    int grid = (int)s->grid, across = cell / grid, down = cell % grid;
    slide_patch *patch = arena_alloc(memory, sizeof *patch);
    const char **image = arena_alloc(memory, sizeof *image);
    list_entry e = { .path = r->list.path, .place = p->place,
                     .found = { .fold = -1, .held_out = r->held_out } };
    data_case *c = &e.found.info;

    *patch = (slide_patch){ r->pool, p->slide->number,
                            { (int)s->level, first_pixel(r, p, 1, down),
                              first_pixel(r, p, 0, across), s->extent, s->extent } };
    image[0] = arena_format(memory, "%s#%lld,%lld,%lld@%d", p->slide->path,
                            (long long)patch->region.column, (long long)patch->region.row,
                            (long long)s->extent, (int)s->level);
    c->id = grid == 1 ? arena_format(memory, "%s_%lld_%lld", p->stem, (long long)p->at[0],
                                     (long long)p->at[1])
                      : arena_format(memory, "%s_%lld_%lld_%d%d", p->stem, (long long)p->at[0],
                                     (long long)p->at[1], down, across);
    c->image = image;
    c->image_count = 1;
    c->patch = patch;
    if (r->label_count == 0 || set_class(r, p->row, r->label[cell], c))
        layout_list_add(&r->list, &e);
}

static pons_status read_row(slides_reader *r, const csv_row *row, pons_error *err)
{
    patch_row p = { .row = row };

    if (row->count != r->columns) {
        layout_problem(r->list.out, NULL, r->list.path, "'%s' row %d has %d cell%s, expected %d as "
                       "in row %d", r->list.path, row->line, row->count,
                       text_plural(row->count), r->columns, r->table.row[0].line);
        return PONS_OK;
    }
    if (row->cell[r->field[NAME]][0] == '\0') {
        cell_problem(r, row, r->field[NAME], "a slide");
        return PONS_OK;
    }
    if (find_slide(r, row, &p.slide, err) != PONS_OK || !p.slide->usable
        || !read_position(r, row, X, p.slide->columns, &p.at[0])
        || !read_position(r, row, Y, p.slide->rows, &p.at[1]))
        return err->status;
    p.stem = id_stem(r, row->cell[r->field[NAME]]);
    p.place = arena_format(r->list.out->memory, "row %d", row->line);
    for (int cell = 0; cell < label_count_of(r); cell++)
        add_patch(r, &p, cell);
    return PONS_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Add the rows of a list behind those of earlier ones. */
static pons_status read_list(slides_reader *r, const char *path, bool held_out, pons_error *err)
{
    layout_result *out = r->list.out;
    size_t patches;

    r->list.path = path;
    r->held_out = held_out;
    if (csv_table_read(out->memory, path, &r->table, err) != PONS_OK
        || find_columns(r, err) != PONS_OK)
        return err->status;
    patches = (size_t)r->table.count * (size_t)label_count_of(r);
    if (patches > LAYOUT_CASES_MAX)
        return pons_fail(err, PONS_DATA, "'%s' has %zu patches, expected at most %d", path, patches,
                         LAYOUT_CASES_MAX);
    layout_list_begin(&r->list, path, patches);
    r->slide = arena_grow(out->memory, r->slide, (size_t)r->slide_count * sizeof *r->slide,
                          ((size_t)r->slide_count + (size_t)r->table.count) * sizeof *r->slide);
    for (int i = r->header ? 1 : 0; i < r->table.count && err->status == PONS_OK; i++)
        read_row(r, &r->table.row[i], err);
    return err->status;
}

/* Decoded tiles of open slides take at most an eighth of the memory. */
static int open_limit(const slide_settings *s)
{
    double share = memory_limit_bytes() / 8 / SLIDE_CACHE_SIZE;

    return s->open > 0 ? s->open : (int)fmin(fmax(share, OPEN_LEAST), OPEN_MOST);
}

static pons_status check_settings(const slide_settings *s, pons_error *err)
{
    if (s->files != NULL && (strchr(s->files, '*') == NULL
                             || strchr(s->files, '*') != strrchr(s->files, '*')))
        return pons_fail(err, PONS_CONFIG, "'slides' is '%s', expected one * in it, which stands "
                         "for a slide's name", s->files);
    if (s->region != 0 && (s->grid == 1 || s->region < s->extent))
        return pons_fail(err, PONS_CONFIG, s->grid == 1
                         ? "'slide_region' is %lld, but 'slide_grid' is 1"
                         : "'slide_region' is %lld, expected at least 'slide_patch', %lld",
                         (long long)s->region, (long long)s->extent);
    return PONS_OK;
}

bool layout_slides_is(const char *path)
{
    pons_error ignored = PONS_ERROR_INIT;
    slides_reader r = { .list = { .out = NULL } };
    arena *memory = arena_new();
    bool found = false;

    if (memory == NULL)
        return false;
    if (csv_table_read(memory, path, &r.table, &ignored) == PONS_OK && r.table.count > 0) {
        find_named_columns(&r, r.table.row);
        found = has_position(r.table.row)
                || (r.field[NAME] >= 0 && r.field[X] >= 0 && r.field[Y] >= 0);
    }
    arena_free(memory);
    return found;
}

pons_status layout_slides_read(const dataset_settings *settings, layout_result *out,
                               pons_error *err)
{
    const slide_settings *s = &settings->slide;
    slides_reader r = { .settings = s, .list = { .out = out },
                        .unlabelled = settings->tests || settings->labels_optional };
    bool own = settings->validation == NULL || strcmp(settings->validation, "own") == 0;
    const char *source = out->origin;

    if (check_settings(s, err) != PONS_OK)
        return err->status;
    out->slides = r.pool = slide_pool_new(open_limit(s));
    if (r.pool == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (read_list(&r, source, false, err) == PONS_OK && s->validation != NULL)
        read_list(&r, s->validation, own, err);
    name_index_clear(&r.names);
    if (err->status != PONS_OK)
        return err->status;
    out->origin = source;
    out->channels = 3;
    return layout_list_finish(&r.list, err);
}
