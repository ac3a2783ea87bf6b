/*
 * layout_csv.c - a CSV or TSV file with a row for each case.
 *
 *   image,label          one image file; 'features,labels' are nobrainer's words for it. The label
 *                        is a file, or a word where a case has one class for the whole image
 *   image_0,image_1,...  a file for each channel; without numbers the names are the channels'
 *   case                 the case's id
 *   fold                 a number from 0; 'fold' of the INI file is held out
 *   split                train, val or test; 'test' is not used
 *
 * A table without a column 'image' has a channel in each column of image files except 'label'. A
 * table without a header has the label in the last column of each row, and channels in the others.
 */
#include "data/dataset/layout.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file/csv_table.h"
#include "base/text/text.h"
#include "data/volume/volume_files.h"

enum { COLUMN_NONE = -1, COLUMN_COUNT_MAX = 1024 };

typedef struct csv_columns {
    bool header;               /* the first row names the columns                                 */
    int count;
    int image_count, *image;   /* columns of the channels, in order                               */
    const char **channel;      /* their names; NULL: they have none                               */
    int label, id, fold, split; /* COLUMN_NONE: there is none                                     */
} csv_columns;

typedef struct csv_reader {
    layout_list list;
    csv_table table;
    csv_columns column;
    bool classes;              /* labels are classes of whole images, not files                   */
} csv_reader;

/* ---- the header ------------------------------------------------------------------------------ */

static bool is_word(const char *cell, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcasecmp(cell, *words) == 0)
            return true;
    return false;
}

static const char *const image_words[] = { "image", "images", "feature", "features", NULL };
static const char *const label_words[] = { "label", "labels", NULL };
static const char *const id_words[] = { "case", "case_id", NULL };
static const char *const fold_words[] = { "fold", NULL };
static const char *const split_words[] = { "split", NULL };

/* The name of a channel behind "image_"; NULL: the cell does not begin so. */
static const char *channel_of(const char *cell)
{
    return strncasecmp(cell, "image_", 6) == 0 && cell[6] != '\0' ? cell + 6 : NULL;
}

static bool has_image_word(const csv_row *row)
{
    for (int i = 0; i < row->count; i++)
        if (is_word(row->cell[i], image_words) || channel_of(row->cell[i]) != NULL)
            return true;
    return false;
}

static bool has_volume(const csv_row *row)
{
    for (int i = 0; i < row->count; i++)
        if (volume_file_has_suffix(row->cell[i]))
            return true;
    return false;
}

static void add_image(csv_columns *c, int column, const char *name)
{
    c->channel[c->image_count] = name;
    c->image[c->image_count++] = column;
}

/* The column of the first of 'words'; two such columns are refused. */
static pons_status find_column(const csv_reader *r, const csv_row *row, const char *const *words,
                               int *out, pons_error *err)
{
    *out = COLUMN_NONE;
    for (int i = 0; i < row->count; i++) {
        if (!is_word(row->cell[i], words))
            continue;
        if (*out != COLUMN_NONE)
            return pons_fail(err, PONS_DATA, "'%s' row %d: the columns %d and %d are both '%s'",
                             r->list.path, row->line, *out + 1, i + 1, words[0]);
        *out = i;
    }
    return PONS_OK;
}

/* Find the columns of images. 'next' is the first row of a case, or NULL. */
static void find_images(csv_columns *c, const csv_row *row, const csv_row *next)
{
    bool named = has_image_word(row);

    for (int i = 0; i < row->count; i++) {
        const char *cell = row->cell[i], *channel = channel_of(cell);
        if (i == c->label || i == c->id || i == c->fold || i == c->split)
            continue;
        if (named && is_word(cell, image_words))
            add_image(c, i, NULL);
        else if (named && channel != NULL)
            add_image(c, i, channel);
        else if (!named && next != NULL && i < next->count
                 && volume_file_has_suffix(next->cell[i]))
            add_image(c, i, cell);
    }
}

static const char *header_text(arena *memory, const csv_row *row)
{
    const char *text = "";

    for (int i = 0; i < row->count && i < 12; i++)
        text = arena_format(memory, "%s%s'%s'", text, i > 0 ? ", " : "", row->cell[i]);
    return text;
}

/* Cases with labels have a column of them, under a name that tells it from a channel. */
static pons_status check_label(const csv_reader *r, const csv_row *row, pons_error *err)
{
    if (r->column.label != COLUMN_NONE || r->list.unlabelled)
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "'%s' row %d: the columns are %s, expected one of them to be "
                     "'label'", r->list.path, row->line, header_text(r->list.out->memory, row));
}

static pons_status check_images(const csv_reader *r, const csv_row *row, pons_error *err)
{
    const csv_columns *c = &r->column;

    if (c->image_count == 0)
        return pons_fail(err, PONS_DATA, "'%s' row %d: the columns are %s, expected 'image' and "
                         "'label'", r->list.path, row->line,
                         header_text(r->list.out->memory, row));
    for (int i = 0; i < c->image_count; i++) {
        if (c->channel[i] == NULL && c->image_count > 1)
            return pons_fail(err, PONS_DATA, "'%s' row %d: '%s' stands beside other columns of "
                             "images, expected image_NAME for each channel", r->list.path,
                             row->line, row->cell[c->image[i]]);
        for (int k = 0; k < i; k++)
            if (strcmp(c->channel[i], c->channel[k]) == 0)
                return pons_fail(err, PONS_DATA, "'%s' row %d: the columns %d and %d are both '%s'",
                                 r->list.path, row->line, c->image[k] + 1, c->image[i] + 1,
                                 row->cell[c->image[i]]);
    }
    return PONS_OK;
}

/* Channels 0 to N - 1 are put in order, and lose their names. Other names stay. */
static pons_status order_channels(csv_reader *r, const csv_row *row, pons_error *err)
{
    csv_columns *c = &r->column;
    int *order = arena_alloc(r->list.out->memory, (size_t)c->image_count * sizeof *order);
    int numbers = 0;

    if (c->channel[0] == NULL) {
        c->channel = NULL;
        return PONS_OK;
    }
    for (int i = 0; i < c->image_count; i++) {
        int64_t number;
        if (!text_integer(c->channel[i], &number))
            continue;
        if (number < 0 || number >= c->image_count)
            return pons_fail(err, PONS_DATA, "'%s' row %d: the column '%s' has the number %lld, "
                             "expected 0 to %d", r->list.path, row->line,
                             row->cell[c->image[i]], (long long)number, c->image_count - 1);
        order[number] = c->image[i];
        numbers++;
    }
    if (numbers != 0 && numbers != c->image_count)
        return pons_fail(err, PONS_DATA, "'%s' row %d: some columns of images have numbers and "
                         "others have names", r->list.path, row->line);
    if (numbers == c->image_count) {
        c->image = order;
        c->channel = NULL;
    }
    return PONS_OK;
}

/* Read the columns' names from the first row. */
static pons_status read_header(csv_reader *r, pons_error *err)
{
    const csv_row *row = &r->table.row[0], *next = r->table.count > 1 ? row + 1 : NULL;
    csv_columns *c = &r->column;

    c->header = true;
    if (find_column(r, row, label_words, &c->label, err) != PONS_OK
        || find_column(r, row, id_words, &c->id, err) != PONS_OK
        || find_column(r, row, fold_words, &c->fold, err) != PONS_OK
        || find_column(r, row, split_words, &c->split, err) != PONS_OK)
        return err->status;
    find_images(c, row, next);
    if (check_images(r, row, err) != PONS_OK || check_label(r, row, err) != PONS_OK)
        return err->status;
    return order_channels(r, row, err);
}

/* The columns of a file without a header: images, then the label. */
static void place_columns(csv_columns *c, const csv_row *row)
{
    int images = row->count > 1 ? row->count - 1 : 1;

    for (int i = 0; i < images; i++)
        add_image(c, i, NULL);
    c->channel = NULL;
    if (row->count > 1)
        c->label = row->count - 1;
}

static pons_status find_columns(csv_reader *r, pons_error *err)
{
    arena *memory = r->list.out->memory;
    const csv_row *row = r->table.row;
    csv_columns *c = &r->column;

    if (r->table.count == 0)
        return pons_fail(err, PONS_DATA, "'%s' is empty, expected a row for each case",
                         r->list.path);
    if (row->count > COLUMN_COUNT_MAX)
        return pons_fail(err, PONS_DATA, "'%s' row %d has %d cells, expected at most %d",
                         r->list.path, row->line, row->count, COLUMN_COUNT_MAX);
    *c = (csv_columns){ .count = row->count, .label = COLUMN_NONE, .id = COLUMN_NONE,
                        .fold = COLUMN_NONE, .split = COLUMN_NONE };
    c->image = arena_alloc(memory, (size_t)row->count * sizeof *c->image);
    c->channel = arena_alloc(memory, (size_t)row->count * sizeof *c->channel);
    if (has_image_word(row) || !has_volume(row))
        return read_header(r, err);
    place_columns(c, row);
    return PONS_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* "row 3, column 'label'", or the column's number if the file has no header. */
static const char *cell_place(const csv_reader *r, const csv_row *row, int column)
{
    arena *memory = r->list.out->memory;

    return r->column.header ? arena_format(memory, "row %d, column '%s'", row->line,
                                           r->table.row[0].cell[column])
                            : arena_format(memory, "row %d, column %d", row->line, column + 1);
}

static void cell_problem(csv_reader *r, const csv_row *row, int column, const char *expected)
{
    layout_problem(r->list.out, NULL, r->list.path, "'%s' %s: found '%s', expected %s",
                   r->list.path, cell_place(r, row, column), row->cell[column], expected);
}

/* The path in a cell; NULL, with a problem, for an empty cell. */
static const char *read_file(csv_reader *r, const csv_row *row, int column, data_case *c)
{
    if (row->cell[column][0] != '\0')
        return layout_list_file(&r->list, cell_place(r, row, column), row->cell[column], c);
    cell_problem(r, row, column, "a file");
    return NULL;
}

typedef enum row_use { ROW_TRAINING = 0, ROW_VALIDATION, ROW_TEST, ROW_WRONG } row_use;

static row_use read_split(csv_reader *r, const csv_row *row)
{
    static const char *const words[][4] = {
        [ROW_TRAINING] = { "train", "training", "tr", NULL },
        [ROW_VALIDATION] = { "val", "valid", "validation", NULL },
        [ROW_TEST] = { "test", "testing", NULL },
    };
    int column = r->column.split;

    if (column == COLUMN_NONE)
        return ROW_TRAINING;
    for (int use = 0; use < ROW_WRONG; use++)
        if (is_word(row->cell[column], words[use]))
            return (row_use)use;
    cell_problem(r, row, column, "train, val or test");
    return ROW_WRONG;
}

static bool read_fold(csv_reader *r, const csv_row *row, int *fold)
{
    int column = r->column.fold;
    int64_t number;

    *fold = -1;
    if (column == COLUMN_NONE || row->cell[column][0] == '\0')
        return true;
    if (!text_integer(row->cell[column], &number) || number < 0 || number > INT32_MAX) {
        cell_problem(r, row, column, "a whole number from 0");
        return false;
    }
    *fold = (int)number;
    return true;
}

static bool read_images(csv_reader *r, const csv_row *row, data_case *c)
{
    const csv_columns *of = &r->column;
    const char **image = arena_alloc(r->list.out->memory,
                                     (size_t)of->image_count * sizeof *image);

    for (int i = 0; i < of->image_count; i++) {
        image[i] = read_file(r, row, of->image[i], c);
        if (image[i] == NULL)
            return false;
    }
    c->image = image;
    c->image_count = of->image_count;
    return true;
}

static void read_label(csv_reader *r, const csv_row *row, data_case *c)
{
    c->label = read_file(r, row, r->column.label, c);
    c->incomplete = c->incomplete || c->label == NULL;
}

static void read_class(csv_reader *r, const csv_row *row, data_case *c)
{
    int column = r->column.label;

    c->class_name = row->cell[column];
    c->class_place = arena_format(r->list.out->memory, "'%s' %s", r->list.path,
                                  cell_place(r, row, column));
    if (c->class_name[0] != '\0')
        return;
    cell_problem(r, row, column, "a class");
    c->class_name = NULL;
}

/* Add the case of a row; what is wrong with it is noted, and the next one is read. */
static void read_row(csv_reader *r, const csv_row *row)
{
    const csv_columns *of = &r->column;
    list_entry e = { .place = arena_format(r->list.out->memory, "row %d", row->line) };
    data_case *c = &e.found.info;

    if (row->count != of->count) {
        layout_problem(r->list.out, NULL, r->list.path, "'%s' row %d has %d cell%s, expected %d as "
                       "in row %d", r->list.path, row->line, row->count,
                       row->count == 1 ? "" : "s", of->count, r->table.row[0].line);
        return;
    }
    row_use use = read_split(r, row);
    r->list.out->unused_count += use == ROW_TEST && !r->list.tests;
    r->list.out->lists_tests = r->list.out->lists_tests || use == ROW_TEST;
    if (use == ROW_WRONG || (use == ROW_TEST) != r->list.tests
        || !read_fold(r, row, &e.found.fold) || !read_images(r, row, c))
        return;
    e.found.held_out = use == ROW_VALIDATION;
    if (of->id != COLUMN_NONE && row->cell[of->id][0] == '\0') {
        cell_problem(r, row, of->id, "a name");
        return;
    }
    c->id = of->id != COLUMN_NONE ? row->cell[of->id] : NULL;
    if (of->label != COLUMN_NONE
        && (row->cell[of->label][0] != '\0' || !r->list.unlabelled))
        (r->classes ? read_class : read_label)(r, row, c);
    layout_list_add(&r->list, &e);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The first row names an image, or is a case. */
bool layout_csv_is(const char *path)
{
    pons_error ignored = PONS_ERROR_INIT;
    arena *memory;
    csv_table table;
    bool found;

    if (!text_ends_with(path, ".csv") && !text_ends_with(path, ".tsv"))
        return false;
    memory = arena_new();
    if (memory == NULL)
        return false;
    found = csv_table_read(memory, path, &table, &ignored) == PONS_OK && table.count > 0
            && (has_image_word(&table.row[0]) || has_volume(&table.row[0])
                || (table.count > 1 && has_volume(&table.row[1])));
    arena_free(memory);
    return found;
}

pons_status layout_csv_read(const dataset_settings *settings, layout_result *out, pons_error *err)
{
    csv_reader r = { .list = { .path = out->origin, .out = out, .tests = settings->tests,
                             .unlabelled = settings->tests || settings->labels_optional },
                     .classes = settings->target == TARGET_OF_CASE };

    if (csv_table_read(out->memory, out->origin, &r.table, err) != PONS_OK
        || find_columns(&r, err) != PONS_OK)
        return err->status;
    layout_list_init(&r.list, out->origin, (size_t)r.table.count, out);
    out->channel_names = r.column.channel;
    out->channels = r.column.image_count > 1 ? r.column.image_count : 0;
    for (int i = r.column.header ? 1 : 0; i < r.table.count; i++)
        read_row(&r, &r.table.row[i]);
    return layout_list_finish(&r.list, err);
}
