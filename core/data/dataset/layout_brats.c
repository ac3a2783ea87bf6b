/*
 * layout_brats.c - trees of the BraTS challenges, 2017 to 2024, as they are published.
 *
 * A case is the files of one prefix in one folder, at any depth down to DEPTH_MAX:
 *
 *   HGG/Brats18_X_1/Brats18_X_1_flair.nii.gz       _t1 _t1ce _t2 _flair _seg      until 2021
 *   BraTS-GLI-00000-000/BraTS-GLI-00000-000-t1c.nii.gz   -t1n -t1c -t2w -t2f -seg   from 2023
 *   BraTS-MEN-RT-0000-1/BraTS-MEN-RT-0000-1_t1c.nii.gz   _t1c _gtv                  radiotherapy
 *
 * The channels are t1n, t1c, t2w and t2f, in this order for every year. The meaning of an id
 * depends on the family: 4 is enhancing tumour until 2021, and resection cavity after treatment.
 * The family follows from the names alone, never from the ids in a file.
 *
 * Case 355 of 2020 has a mask without the case's name. In the folder of one case the only volume
 * without a role is its mask.
 */
#include "data/dataset/layout.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file/file_kind.h"
#include "base/file/folder_list.h"
#include "base/text/text.h"
#include "config/list.h"
#include "data/dataset/class_list.h"
#include "data/volume/volume_files.h"

enum { DEPTH_MAX = 5, CHANNELS = 4, MASK = CHANNELS, ROLES };

/* A visit number from 100 on is a scan after treatment. */
enum { VISIT_TREATED = 100 };

static const char *const channel_names[CHANNELS] = { "t1n", "t1c", "t2w", "t2f" };
static const char *const names_2017[ROLES] = { "_t1", "_t1ce", "_t2", "_flair", "_seg" };
static const char *const names_2023[ROLES] = { "-t1n", "-t1c", "-t2w", "-t2f", "-seg" };
static const char *const names_radiotherapy[ROLES] = { NULL, "_t1c", NULL, NULL, "_gtv" };

/* A row of case names with one meaning of the ids. */
typedef struct family {
    const char *name;
    const char *prefix;        /* begin of the case's name, in small or capital letters           */
    const char *const *suffix; /* [role]; NULL: the family has no such channel                    */
    const char *labels, *regions;
    int first_visit, end_visit; /* range of the last number of the name; 0, 0: any                */
    int first_year, last_year; /* years in a folder's name; 0, 0: the case's name is sufficient   */
} family;

#define LABELS_2017 "background:0 NCR:1 ED:2 ET:4"
#define REGIONS_2017 "WT:1,2,4 TC:1,4 ET:4"
#define LABELS_2023 "background:0 NCR:1 ED:2 ET:3"
#define REGIONS_2023 "WT:1,2,3 TC:1,3 ET:3"

static const family families[] = {
    { "BraTS 2017, glioma", "Brats17_", names_2017, LABELS_2017, REGIONS_2017, 0, 0, 0, 0 },
    { "BraTS 2018, glioma", "Brats18_", names_2017, LABELS_2017, REGIONS_2017, 0, 0, 0, 0 },
    { "BraTS 2019, glioma", "BraTS19_", names_2017, LABELS_2017, REGIONS_2017, 0, 0, 0, 0 },
    { "BraTS 2020, glioma", "BraTS20_", names_2017, LABELS_2017, REGIONS_2017, 0, 0, 0, 0 },
    { "BraTS 2021, glioma", "BraTS2021_", names_2017, LABELS_2017, REGIONS_2017, 0, 0, 0, 0 },
    { "BraTS 2023, glioma", "BraTS-GLI-", names_2023, LABELS_2023, REGIONS_2023,
      0, VISIT_TREATED, 0, 0 },
    { "BraTS 2024, glioma after treatment", "BraTS-GLI-", names_2023, LABELS_2023 " RC:4",
      REGIONS_2023 " RC:4", VISIT_TREATED, 100 * VISIT_TREATED, 0, 0 },
    { "BraTS 2023, sub-Saharan Africa", "BraTS-SSA-", names_2023, LABELS_2023, REGIONS_2023,
      0, 0, 0, 0 },
    { "BraTS 2024, meningioma radiotherapy", "BraTS-MEN-RT-", names_radiotherapy,
      "background:0 GTV:1", NULL, 0, 0, 0, 0 },
    { "BraTS 2023, meningioma", "BraTS-MEN-", names_2023, LABELS_2023, REGIONS_2023, 0, 0, 0, 0 },
    { "BraTS 2023, metastases", "BraTS-MET-", names_2023, LABELS_2023, REGIONS_2023, 0, 0, 0, 0 },
    { "BraTS 2023, paediatric", "BraTS-PED-", names_2023, LABELS_2023, REGIONS_2023,
      0, 0, 2023, 2023 },
    { "BraTS 2024, paediatric", "BraTS-PED-", names_2023, "background:0 ET:1 NET:2 CC:3 ED:4",
      "WT:1,2,3,4 TC:1,2,3 ET:1", 0, 0, 2024, 2099 },
    { "BraTS 2024, any tumour", "BraTS-GoAT-", names_2023, LABELS_2023, REGIONS_2023, 0, 0, 0, 0 },
};

/* A volume of a folder. */
typedef struct named_file {
    const char *prefix;        /* the case's name; "" without a role                              */
    int role;                  /* -1: none                                                        */
    const char *path;
} named_file;

typedef struct found_case {
    const char *id, *folder;
    const char *file[ROLES];
    const family *family;
} found_case;

typedef struct search {
    layout_result *out;
    const dataset_settings *settings;
    found_case *item;          /* malloc'ed                                                       */
    int count, room;
} search;

/* ---- families -------------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *begin)
{
    return strncasecmp(text, begin, strlen(begin)) == 0;
}

/* The number behind the last '-' of a case's name; -1: none. */
static int visit_of(const char *id)
{
    const char *dash = strrchr(id, '-');
    int64_t visit;

    return dash != NULL && text_integer(dash + 1, &visit) && visit >= 0 && visit < 100000
               ? (int)visit : -1;
}

/* The last year from 2017 to 2099 in a name; 0: none. */
static int year_in(const char *name, size_t size)
{
    int year = 0;

    for (size_t i = 0; i + 4 <= size; i++) {
        bool begins = i == 0 || !isdigit((unsigned char)name[i - 1]);
        bool ends = i + 4 == size || !isdigit((unsigned char)name[i + 4]);
        int value = begins && ends && strspn(name + i, "0123456789") == 4 ? atoi(name + i) : 0;
        if (value >= 2017 && value <= 2099)
            year = value;
    }
    return year;
}

static bool holds_word(const char *name, size_t size, const char *word)
{
    size_t length = strlen(word);

    for (size_t i = 0; i + length <= size; i++)
        if (strncasecmp(name + i, word, length) == 0)
            return true;
    return false;
}

/* The year of a folder: the collection of The Cancer Imaging Archive has the ids of 2024. */
static int folder_year(const char *name, size_t size)
{
    int year = holds_word(name, size, "brats") ? year_in(name, size) : 0;

    return year == 0 && holds_word(name, size, "brats-peds-v") ? 2024 : year;
}

/* The year in the nearest folder of the path whose name tells one; 0: none. */
static int year_of_folder(const char *path)
{
    size_t end = strlen(path);

    while (end > 0) {
        size_t begin = end;
        while (begin > 0 && path[begin - 1] != '/')
            begin--;
        int year = folder_year(path + begin, end - begin);
        if (year != 0)
            return year;
        end = begin > 0 ? begin - 1 : 0;
    }
    return 0;
}

/* The family of a case; NULL: unknown. *year_missing: the name is of a family of several years. */
static const family *family_of(const char *id, const char *folder, bool *year_missing)
{
    int visit = visit_of(id), year = year_of_folder(folder);

    *year_missing = false;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const family *f = &families[i];
        if (!begins_with(id, f->prefix))
            continue;
        if (f->end_visit != 0 && (visit < f->first_visit || visit >= f->end_visit))
            continue;
        if (f->first_year == 0 || (year >= f->first_year && year <= f->last_year))
            return f;
        *year_missing = true;
    }
    return NULL;
}

static bool has_family_name(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (begins_with(name, families[i].prefix))
            return true;
    return false;
}

/* Whether every word of 'part' is a word of 'whole'. */
static bool holds_words(const char *whole, const char *part)
{
    size_t size = strcspn(part, " ");

    for (; *part != '\0'; part += size + (part[size] == ' '), size = strcspn(part, " ")) {
        const char *at = whole;
        while (strncmp(at, part, size) != 0 || (at[size] != ' ' && at[size] != '\0')) {
            at += strcspn(at, " ");
            if (*at++ == '\0')
                return false;
        }
    }
    return true;
}

/* Whether the ids of 'part' have the same meaning in 'whole', which may list more of them. */
static bool family_covers(const family *whole, const family *part)
{
    return whole->suffix == part->suffix && holds_words(whole->labels, part->labels);
}

/* ---- cases of a folder ----------------------------------------------------------------------- */

static named_file name_file(arena *memory, const char *path)
{
    static const char *const *const all[] = { names_2017, names_2023, names_radiotherapy };
    const char *stem = volume_file_stem(memory, path);

    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        for (int role = 0; role < ROLES; role++) {
            const char *suffix = all[n][role];
            if (suffix == NULL || !text_ends_with(stem, suffix) || strlen(stem) == strlen(suffix))
                continue;
            return (named_file){ arena_format(memory, "%.*s", (int)(strlen(stem) - strlen(suffix)),
                                              stem), role, path };
        }
    return (named_file){ "", -1, path };
}

static int compare_named(const void *a, const void *b)
{
    const named_file *left = a, *right = b;
    int order = strcmp(left->prefix, right->prefix);

    return order != 0 ? order : strcmp(left->path, right->path);
}

static found_case *append_case(search *s, pons_error *err)
{
    if (s->count == s->room) {
        int room = 2 * s->room + 64;
        found_case *more = realloc(s->item, (size_t)room * sizeof *more);
        if (more == NULL) {
            pons_fail(err, PONS_DEVICE, "out of memory");
            return NULL;
        }
        s->item = more;
        s->room = room;
    }
    return &s->item[s->count++];
}

/* Group files with a role, sorted by prefix, to cases. */
static pons_status group_files(search *s, const char *folder, const named_file *file, int count,
                               pons_error *err)
{
    found_case *c = NULL;

    for (int i = 0; i < count; i++) {
        const char *other;
        if (i == 0 || strcmp(file[i].prefix, file[i - 1].prefix) != 0) {
            c = append_case(s, err);
            if (c == NULL)
                return err->status;
            *c = (found_case){ .id = file[i].prefix, .folder = folder };
        }
        other = c->file[file[i].role];
        if (other != NULL)
            layout_problem(s->out, c->id, file[i].path, "found '%s' and '%s', expected one of them",
                           other, file[i].path);
        else
            c->file[file[i].role] = file[i].path;
    }
    return PONS_OK;
}

/* Take the only volume without a role as the mask of the only case of a folder. */
static void claim_mask(search *s, found_case *c, const named_file *spare, int count)
{
    if (c->file[MASK] != NULL || count != 1)
        return;
    c->file[MASK] = spare->path;
    layout_warning(s->out, c->id, spare->path, "'%s' is taken as the mask, as the only other "
                   "volume of its folder", spare->path);
}

static pons_status search_folder(search *s, const char *folder, int depth, pons_error *err)
{
    arena *memory = s->out->memory;
    int count, files = 0, spare = 0, before = s->count;
    folder_entry *entry;

    if (folder_list(memory, folder, &entry, &count, err) != PONS_OK)
        return err->status;
    named_file *named = arena_alloc(memory, (size_t)count * sizeof *named + 1);
    for (int i = 0; i < count; i++)
        if (!entry[i].folder && file_kind_ending(entry[i].name, FILE_VOLUME) > 0)
            named[files++] = name_file(memory, entry[i].path);
    if (files > 0)
        qsort(named, (size_t)files, sizeof *named, compare_named);
    while (spare < files && named[spare].role < 0)
        spare++;
    if (group_files(s, folder, named + spare, files - spare, err) != PONS_OK)
        return err->status;
    if (s->count == before + 1)
        claim_mask(s, &s->item[before], named, spare);
    for (int i = 0; i < count && depth < DEPTH_MAX; i++)
        if (entry[i].folder && search_folder(s, entry[i].path, depth + 1, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* ---- the dataset ----------------------------------------------------------------------------- */

/* Whether the INI file names the classes, so that the family is not needed for them. */
static bool classes_given(const dataset_settings *s)
{
    return s->labels.count > 0 || s->label_table != NULL;
}

/* The first file of a case. */
static const char *first_file(const found_case *c)
{
    int role = 0;

    while (role < ROLES - 1 && c->file[role] == NULL)
        role++;
    return c->file[role];
}

/* Find the family of every case; a case without one is a problem. */
static void find_families(search *s)
{
    for (int i = 0; i < s->count; i++) {
        found_case *c = &s->item[i];
        bool year_missing;
        c->family = family_of(c->id, c->folder, &year_missing);
        if (c->family == NULL && year_missing && classes_given(s->settings))
            c->family = family_of(c->id, "BraTS2023", &year_missing);
        if (c->family != NULL)
            continue;
        if (year_missing)
            layout_problem(s->out, c->id, c->folder, "found '%s' without a year, expected a "
                           "folder's name with BraTS and 2023 (ids NCR:1 ED:2 ET:3) or 2024 (ids "
                           "ET:1 NET:2 CC:3 ED:4), or 'labels' in [data]", c->folder);
        else
            layout_problem(s->out, c->id, first_file(c), "found '%s', expected a case's name of "
                           "BraTS, such as BraTS20_Training_001 or BraTS-GLI-00000-000, in place "
                           "of '%s'", first_file(c), c->id);
    }
}

/* Warn that all cases are read with the ids of 'wide', which include those of 'narrow'. */
static void warn_of_mixture(search *s, const found_case *narrow, const found_case *wide)
{
    layout_warning(s->out, NULL, narrow->folder, "'%s' is of %s and '%s' of %s: all cases are read "
                   "with the ids of the latter (%s)", narrow->id, narrow->family->name, wide->id,
                   wide->family->name, wide->family->labels);
}

/* The family that covers those of all cases; NULL without a case. */
static pons_status choose_family(search *s, const family **out, pons_error *err)
{
    const found_case *widest = NULL, *narrow = NULL;

    for (int i = 0; i < s->count; i++) {
        const found_case *c = &s->item[i];
        if (c->family != NULL && (widest == NULL || family_covers(c->family, widest->family)))
            widest = c;
    }
    for (int i = 0; i < s->count; i++) {
        const found_case *c = &s->item[i];
        if (c->family == NULL)
            continue;
        if (family_covers(widest->family, c->family)) {
            if (narrow == NULL && !family_covers(c->family, widest->family))
                narrow = c;
            continue;
        }
        if (classes_given(s->settings) && c->family->suffix[0] != NULL
            && widest->family->suffix[0] != NULL)
            continue;
        return pons_fail(err, PONS_DATA, "'%s' is of %s (%s) and '%s' of %s (%s), expected one "
                         "meaning of the ids in '%s'", widest->id, widest->family->name,
                         widest->family->labels, c->id, c->family->name, c->family->labels,
                         s->settings->source);
    }
    if (narrow != NULL && !classes_given(s->settings))
        warn_of_mixture(s, narrow, widest);
    *out = widest != NULL ? widest->family : NULL;
    s->out->sign = widest != NULL ? first_file(widest) : NULL;
    return PONS_OK;
}

/* Files that the family expects and the folder lacks are problems. */
static data_case make_case(const search *s, const found_case *c)
{
    arena *memory = s->out->memory;
    const char **image = arena_alloc(memory, CHANNELS * sizeof *image);
    data_case info = { .id = c->id, .image = image, .label = c->file[MASK] };
    const char *there = first_file(c);

    for (int role = 0; role < ROLES; role++) {
        const char *suffix = c->family->suffix[role];
        bool complete = true;
        if (suffix != NULL && role < CHANNELS)
            complete = layout_add_channel(s->settings, c->file[role], image, &info);
        else if (suffix != NULL && c->file[MASK] == NULL && !s->settings->labels_optional)
            complete = false;
        if (!complete)
            layout_problem(s->out, c->id, there, "found '%s', expected '%s/%s%s.nii.gz' beside it",
                           there, c->folder, c->id, suffix);
        info.incomplete = info.incomplete || !complete;
    }
    return info;
}

static pons_status parse_words(arena *memory, const char *key, const char *words,
                               const data_class **classes, int *count, pons_error *err)
{
    pons_texts items = { 0, NULL };

    if (words == NULL)
        return PONS_OK;
    items.item = (const char *const *)list_split(memory, words, &items.count);
    return class_list_parse(memory, key, &items, CLASS_COUNT_MAX, classes, count, err);
}

static pons_status fill_family(search *s, const family *f, pons_error *err)
{
    layout_result *out = s->out;
    const char **names = arena_alloc(out->memory, CHANNELS * sizeof *names);

    out->recognised = classes_given(s->settings)
                          ? f->name : arena_format(out->memory, "%s, ids %s", f->name, f->labels);
    out->channels = 0;
    for (int role = 0; role < CHANNELS; role++)
        if (f->suffix[role] != NULL)
            names[out->channels++] = channel_names[role];
    out->channel_names = names;
    if (parse_words(out->memory, "labels", f->labels, &out->classes, &out->class_count, err)
        != PONS_OK)
        return err->status;
    return parse_words(out->memory, "regions", f->regions, &out->regions, &out->region_count, err);
}

static pons_status read_tree(search *s, pons_error *err)
{
    const family *family = NULL;

    if (search_folder(s, s->settings->source, 0, err) != PONS_OK)
        return err->status;
    if (s->count == 0)
        return pons_fail(err, PONS_DATA, "folder '%s' holds no case of BraTS, expected files such "
                         "as BraTS20_Training_001_flair.nii.gz or BraTS-GLI-00000-000-t2f.nii.gz "
                         "in it or below it", s->settings->source);
    find_families(s);
    if (choose_family(s, &family, err) != PONS_OK)
        return err->status;
    if (family == NULL)
        return dataset_problems_fail(s->out->problem, s->out->problem_count, "", err);
    s->out->cases = arena_alloc(s->out->memory, (size_t)s->count * sizeof *s->out->cases);
    for (int i = 0; i < s->count; i++)
        if (s->item[i].family != NULL)
            s->out->cases[s->out->case_count++].info = make_case(s, &s->item[i]);
    return fill_family(s, family, err);
}

pons_status layout_brats_read(const dataset_settings *settings, layout_result *out,
                              pons_error *err)
{
    search s = { .out = out, .settings = settings };

    out->origin = arena_string(out->memory, settings->source);
    read_tree(&s, err);
    free(s.item);
    return err->status;
}

/* ---- recognition ----------------------------------------------------------------------------- */

static bool holds_case_name(arena *memory, const char *folder, int depth)
{
    pons_error ignored = PONS_ERROR_INIT;
    folder_entry *entry;
    int count;

    if (folder_list(memory, folder, &entry, &count, &ignored) != PONS_OK)
        return false;
    for (int i = 0; i < count; i++)
        if (has_family_name(entry[i].name))
            return true;
    for (int i = 0; i < count && depth > 0; i++)
        if (entry[i].folder && holds_case_name(memory, entry[i].path, depth - 1))
            return true;
    return false;
}

bool layout_brats_is(const char *folder)
{
    arena *memory = arena_new();
    bool is = memory != NULL && holds_case_name(memory, folder, 2);

    if (memory != NULL)
        arena_free(memory);
    return is;
}
