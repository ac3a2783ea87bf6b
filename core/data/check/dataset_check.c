/*
 * dataset_check.c - read every case and list all problems.
 *
 * Errors: problems of the list of cases, an unreadable file, channels or grids that differ within
 * a case, a label id that 'labels' does not list, a label value that is not whole, a file in two
 * cases. Warnings: no foreground, equal voxels in two cases, a class that no case has. A case with
 * a problem is checked further as far as possible.
 */
#include "data/check/dataset_check.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/progress.h"
#include "base/text/quote.h"
#include "data/dataset/case_file.h"
#include "data/dataset/class_list.h"
#include "data/dataset/label_map.h"
#include "data/picture/picture_read.h"
#include "data/reader/volume_read.h"
#include "data/volume/geometry.h"
#include "data/volume/volume.h"

#define IDS_MAX 4096   /* different ids; a file with more is no label                             */
#define UNLISTED_MAX 8 /* unlisted ids reported one by one                                        */

typedef struct id_count {
    int64_t id, voxels, cases;
} id_count;

typedef struct id_list {
    id_count *item;            /* malloc'ed, ascending by id                                      */
    int count, room;
} id_list;

typedef struct checker {
    const dataset *data;
    logger *log;               /* NULL: progress is not shown                                     */
    dataset_report *report;
    label_map map;
    dataset_problem *problem;  /* malloc'ed; copied into the report at the end                    */
    int problem_count, problem_room;
    id_list ids;               /* of all cases                                                    */
    uint64_t *hash;            /* [case] hash of the image's voxels; 0: not read                  */
    void *hashes;              /* a tree of the first case of each hash                           */
    bool failed;               /* out of memory                                                   */
} checker;

/* ---- lists ----------------------------------------------------------------------------------- */

static void add_problem(checker *c, const data_case *info, const char *file, bool warning,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

static void push_problem(checker *c, dataset_problem problem)
{
    if (c->problem_count == c->problem_room) {
        int room = 2 * c->problem_room + 16;
        dataset_problem *more = realloc(c->problem, (size_t)room * sizeof *more);
        if (more == NULL) {
            c->failed = true;
            return;
        }
        c->problem = more;
        c->problem_room = room;
    }
    c->problem[c->problem_count++] = problem;
    c->report->error_count += !problem.warning;
}

/*
 * Add a problem. 'format' begins with a verb; the file's name precedes it unless it is in the
 * text.
 */
static void add_problem(checker *c, const data_case *info, const char *file, bool warning,
                        const char *format, ...)
{
    pons_error named = PONS_ERROR_INIT;
    char line[sizeof named.text];
    va_list list;

    va_start(list, format);
    quote_format(line, sizeof line, format, list);
    va_end(list);
    if (strstr(line, file) == NULL)
        pons_fail(&named, PONS_DATA, "'%s' %s", file, line);
    push_problem(c, (dataset_problem){
        info->id, file,
        arena_string(c->report->memory, named.status != PONS_OK ? named.text : line), warning
    });
}

static void add_file_error(checker *c, const data_case *info, const char *file,
                           const pons_error *cause)
{
    add_problem(c, info, file, false, "%s", cause->text);
}

/* The count of an id, added if new; NULL: no capacity or more than IDS_MAX ids. */
static id_count *count_of_id(id_list *l, int64_t id)
{
    int low = 0, high = l->count;

    while (low < high) {
        int middle = (low + high) / 2;
        if (l->item[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < l->count && l->item[low].id == id)
        return &l->item[low];
    if (l->count == l->room) {
        int room = 2 * l->room + 64;
        id_count *more = l->room < IDS_MAX ? realloc(l->item, (size_t)room * sizeof *more) : NULL;
        if (more == NULL)
            return NULL;
        l->item = more;
        l->room = room;
    }
    memmove(&l->item[low + 1], &l->item[low], (size_t)(l->count - low) * sizeof *l->item);
    l->count++;
    l->item[low] = (id_count){ .id = id };
    return &l->item[low];
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Count the voxels of each id; false: too many ids. */
static bool count_voxels(const volume *label, id_list *out)
{
    int64_t count = pons_volume_count(label);
    const int32_t *ids = label->voxels;

    for (int64_t begin = 0, end; begin < count; begin = end) {
        id_count *item = count_of_id(out, ids[begin]);
        for (end = begin; end < count && ids[end] == ids[begin]; end++)
            ;
        if (item == NULL)
            return false;
        item->voxels += end - begin;
    }
    return true;
}

/* Add one id of a case to the totals; true: foreground. */
static bool check_id(checker *c, const data_case *info, int64_t id, int64_t voxels)
{
    id_count *total = count_of_id(&c->ids, id);
    int target;

    if (total == NULL)
        return true;
    total->voxels += voxels;
    total->cases++;
    if (c->data->class_count == 0)
        return id != 0;
    target = label_map_class_index(&c->map, id);
    if (target < 0)
        add_problem(c, info, info->label, false,
                    "has id %" PRId64 " in %" PRId64 " voxel%s, which 'labels' does not list", id,
                    voxels, voxels == 1 ? "" : "s");
    return target > 0 && target != LABEL_MAP_IGNORED;
}

/* The number of ids that 'labels' does not list; *first is the first of them. */
static int count_unlisted(const checker *c, const id_list *ids, id_count *first)
{
    int count = 0;

    for (int i = 0; i < ids->count && c->data->class_count > 0; i++) {
        if (label_map_class_index(&c->map, ids->item[i].id) < 0 && count++ == 0)
            *first = ids->item[i];
    }
    return count;
}

/* Add one case's voxels of a class to its total. */
static void add_class_total(const data_class *class, const id_list *ids, label_total *total)
{
    int64_t voxels = 0;

    for (int i = 0; i < ids->count; i++) {
        int64_t id = ids->item[i].id;
        if (id >= 0 && id <= LABEL_ID_MAX && class_index_of_id(class, 1, (int)id) == 0)
            voxels += ids->item[i].voxels;
    }
    total->voxels += voxels;
    total->cases += voxels > 0;
}

static void add_class_totals(const checker *c, const id_list *ids)
{
    const dataset *d = c->data;
    dataset_report *r = c->report;

    for (int i = 0; i < d->class_count; i++)
        add_class_total(&d->classes[i], ids, &r->class_total[i]);
    for (int i = 0; i < d->region_count; i++)
        add_class_total(&d->regions[i], ids, &r->region_total[i]);
    if (d->ignored != NULL)
        add_class_total(d->ignored, ids, &r->ignored_total);
}

/* Check all ids of a label; the number of foreground voxels. */
static int64_t check_ids(checker *c, const data_case *info, const volume *label)
{
    id_list ids = { .count = 0 };
    id_count first = { .id = 0 };
    int64_t foreground = 0;
    bool counted = count_voxels(label, &ids);
    int unlisted = count_unlisted(c, &ids, &first);

    if (!counted)
        add_problem(c, info, info->label, false, "has more than %d different ids%s",
                    min_int(ids.count, IDS_MAX), ids.count < IDS_MAX ? ", and memory is full" : "");
    else if (unlisted > UNLISTED_MAX)
        add_problem(c, info, info->label, false,
                    "has %d ids that 'labels' does not list, the first is id %" PRId64
                    " in %" PRId64 " voxel%s", unlisted, first.id, first.voxels,
                    first.voxels == 1 ? "" : "s");
    if (!counted || unlisted > UNLISTED_MAX) {
        foreground = pons_volume_count(label);
        ids.count = 0;
    }
    add_class_totals(c, &ids);
    for (int i = 0; i < ids.count; i++) {
        if (check_id(c, info, ids.item[i].id, ids.item[i].voxels))
            foreground += ids.item[i].voxels;
    }
    free(ids.item);
    return foreground;
}

/* 'grid' belongs to file 'grid_of'; NULL: no image could be read. */
static void check_label(checker *c, const data_case *info, const volume_grid *grid,
                        const char *grid_of, dataset_facts *facts)
{
    pons_error cause = PONS_ERROR_INIT;
    volume label = { .voxels = NULL };
    volume_facts header;

    if (info->label == NULL)
        return;
    if (volume_read_label(info->label, &label, &header, &cause) != PONS_OK) {
        add_file_error(c, info, info->label, &cause);
        facts->readable = false;
        return;
    }
    if (grid_of != NULL
        && volume_grid_compare(&header.grid, info->label, grid, grid_of, &cause) != PONS_OK)
        add_file_error(c, info, info->label, &cause);
    facts->foreground = check_ids(c, info, &label);
    if (facts->foreground == 0)
        add_problem(c, info, info->label, true, "has no foreground");
    pons_volume_clear(&label);
}

/* ---- images ---------------------------------------------------------------------------------- */

/* A hash of the voxels; never 0. */
static uint64_t hash_voxels(const volume *image)
{
    int64_t count = pons_volume_count(image) * image->channels;
    const float *x = image->voxels;
    uint64_t hash = 1;

    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash | 1;
}

/* Read one image file and add its channels and hash. The first file gives the grid. */
static bool check_image(checker *c, const data_case *info, int file, volume_grid *grid,
                        const char **grid_of, int *channels, uint64_t *hash)
{
    const char *path = info->image[file];
    pons_error cause = PONS_ERROR_INIT;
    volume_facts header;
    volume image;

    if (case_file_image(info, file, &image, &header, &cause) != PONS_OK
        || picture_match_channels(path, c->data->channels, &image, &cause) != PONS_OK) {
        add_file_error(c, info, path, &cause);
        return false;
    }
    if (*grid_of == NULL) {
        *grid = header.grid;
        *grid_of = path;
    } else if (volume_grid_compare(&header.grid, path, grid, *grid_of, &cause) != PONS_OK) {
        add_file_error(c, info, path, &cause);
    }
    *channels += image.channels;
    *hash = *hash * 31 + hash_voxels(&image);
    pons_volume_clear(&image);
    return true;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static void find_equal_image(checker *c, const data_case *info)
{
    uint64_t *own = &c->hash[info->rank], **first = tsearch(own, &c->hashes, compare_hashes);

    if (first == NULL)
        c->failed = true;
    else if (*first != own)
        add_problem(c, info, info->image[0], true, "has the same voxels as case '%s'",
                    c->data->cases[*first - c->hash].id);
}

static void keep_hash(void *hash)
{
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void record_grid(checker *c, const volume_grid *grid, dataset_facts *facts)
{
    volume place = { .channels = 1 };
    case_geometry g;

    for (int a = 0; a < 3; a++) {
        facts->extent[a] = (int)grid->extent[a];
        facts->spacing[a] = grid->spacing[a];
        facts->voxels *= grid->extent[a];
    }
    volume_orientation_codes((const double (*)[4])grid->affine, facts->orientation);
    memcpy(facts->affine, grid->affine, sizeof facts->affine);
    memcpy(place.extent, grid->extent, sizeof place.extent);
    memcpy(place.affine, grid->affine, sizeof place.affine);
    case_geometry_of_position(&place, &g);
    case_geometry_join(&c->report->geometry, &g);
}

static void check_case(checker *c, const data_case *info, dataset_facts *facts)
{
    volume_grid grid;
    const char *grid_of = NULL;
    uint64_t hash = 0;
    int channels = 0, read = 0;

    *facts = (dataset_facts){ .rank = info->rank };
    for (int file = 0; file < info->image_count; file++)
        read += check_image(c, info, file, &grid, &grid_of, &channels, &hash);
    facts->readable = read == info->image_count && !info->incomplete;
    if (facts->readable && channels != c->data->channels)
        add_problem(c, info, info->image[0], false, "has %d channel%s, expected %d", channels,
                    channels == 1 ? "" : "s", c->data->channels);
    facts->voxels = 1;
    if (read > 0)
        record_grid(c, &grid, facts);
    if (facts->readable) {
        c->hash[info->rank] = hash;
        find_equal_image(c, info);
    }
    check_label(c, info, &grid, grid_of, facts);
    if (info->class_index >= 0 && c->data->target == TARGET_OF_CASE)
        c->report->class_total[info->class_index].cases++;
}

typedef struct used_file {
    const char *path;
    const data_case *info;
} used_file;

static int compare_files(const void *a, const void *b)
{
    const used_file *left = a, *right = b;
    int order = strcmp(left->path, right->path);

    return order != 0 ? order : left->info->rank - right->info->rank;
}

/* Report each file that occurs twice: as image and label, or in two cases. */
static void check_shared_files(checker *c)
{
    const dataset *d = c->data;
    size_t count = 0;
    used_file *used;

    for (int i = 0; i < d->case_count; i++)
        count += (size_t)d->cases[i].image_count + 1;
    used = arena_alloc(c->report->memory, count * sizeof *used);
    count = 0;
    for (int i = 0; i < d->case_count; i++) {
        for (int k = 0; k < d->cases[i].image_count; k++)
            used[count++] = (used_file){ d->cases[i].image[k], &d->cases[i] };
        if (d->cases[i].label != NULL)
            used[count++] = (used_file){ d->cases[i].label, &d->cases[i] };
    }
    qsort(used, count, sizeof *used, compare_files);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(used[i].path, used[i - 1].path) == 0)
            add_problem(c, used[i].info, used[i].path, false, "is also a file of case '%s'",
                        used[i - 1].info->id);
    }
}

static bool class_occurs(const checker *c, const data_class *class)
{
    for (int i = 0; i < c->ids.count; i++) {
        int64_t id = c->ids.item[i].id;
        if (id >= 0 && id <= LABEL_ID_MAX && class_index_of_id(class, 1, (int)id) == 0)
            return true;
    }
    return false;
}

/* Whether a class is known of any case: TARGET_OF_CASE, or a label id that has been read. */
static bool has_classes(const checker *c)
{
    return c->data->target == TARGET_OF_CASE || c->ids.count > 0;
}

/* Warn of classes that no label contains, unless an unreadable file may contain them. */
static void check_classes_occur(checker *c)
{
    const dataset *d = c->data;
    const data_class *list = d->region_count > 0 ? d->regions : d->classes;
    int count = d->region_count > 0 ? d->region_count : d->class_count;

    for (int i = 0; i < count && has_classes(c) && c->report->error_count == 0; i++) {
        if (d->target == TARGET_OF_CASE ? c->report->class_total[i].cases == 0
                                        : !class_occurs(c, &list[i]))
            push_problem(c, (dataset_problem){
                .text = class_list_missing_text(c->report->memory, d, i), .warning = true
            });
    }
}

/* ---- report ---------------------------------------------------------------------------------- */

/* Copy the lists into the report's memory. */
static void finish_report(checker *c)
{
    dataset_report *r = c->report;
    int count = c->ids.count;
    dataset_problem *problem = arena_alloc(r->memory, (size_t)c->problem_count * sizeof *problem);
    int64_t *column = arena_alloc(r->memory, 3 * (size_t)c->ids.count * sizeof *column);

    if (c->problem_count > 0)
        memcpy(problem, c->problem, (size_t)c->problem_count * sizeof *problem);
    for (int i = 0; i < count; i++) {
        column[i] = c->ids.item[i].id;
        column[count + i] = c->ids.item[i].voxels;
        column[2 * count + i] = c->ids.item[i].cases;
    }
    r->problem = problem;
    r->problem_count = c->problem_count;
    r->id_count = count;
    r->id = column;
    r->id_voxels = column + count;
    r->id_cases = column + 2 * count;
}

static pons_status first_problem(const dataset_report *r, pons_error *err)
{
    for (int i = 0; i < r->problem_count; i++) {
        if (!r->problem[i].warning)
            return dataset_problems_fail(&r->problem[i], r->error_count, "", err);
    }
    return PONS_OK;
}

static pons_status run_check(checker *c, pons_error *err)
{
    const dataset *d = c->data;
    dataset_facts *facts = arena_alloc(c->report->memory, (size_t)d->case_count * sizeof *facts);
    case_progress progress = { .verb = "checking", .count = d->case_count };

    if (label_map_init(&c->map, d, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < d->problem_count; i++)
        push_problem(c, d->problem[i]);
    for (int i = 0; i < d->warning_count; i++)
        push_problem(c, d->warning[i]);
    for (int i = 0; i < d->case_count; i++) {
        if (c->log != NULL)
            case_progress_show(&progress, c->log, i, 0);
        check_case(c, &d->cases[i], &facts[i]);
    }
    if (c->log != NULL)
        case_progress_end(c->log);
    check_shared_files(c);
    check_classes_occur(c);
    finish_report(c);
    c->report->facts = facts;
    c->report->facts_count = d->case_count;
    return c->failed ? pons_fail(err, PONS_DEVICE, "out of memory") : PONS_OK;
}

pons_status dataset_check(const dataset *d, logger *l, dataset_report **report, pons_error *err)
{
    arena *memory = arena_new();
    checker c = { .data = d, .log = l };

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    c.report = arena_alloc(memory, sizeof *c.report);
    c.report->memory = memory;
    c.report->class_total = arena_alloc(memory,
                                        (size_t)d->class_count * sizeof *c.report->class_total);
    c.report->region_total = arena_alloc(memory,
                                         (size_t)d->region_count * sizeof *c.report->region_total);
    case_geometry_init(&c.report->geometry);
    c.hash = arena_alloc(memory, (size_t)d->case_count * sizeof *c.hash);
    pons_status status = run_check(&c, err);
    label_map_clear(&c.map);
    free(c.problem);
    free(c.ids.item);
    tdestroy(c.hashes, keep_hash);
    if (status != PONS_OK) {
        arena_free(memory);
        return status;
    }
    *report = c.report;
    return first_problem(c.report, err);
}

void dataset_report_free(dataset_report *report)
{
    if (report != NULL)
        arena_free(report->memory);
}
