/*
 * layout_bids.c - a dataset of BIDS, with its derivatives: scans and their discrete segmentations.
 *
 *   SOURCE/sub-01[/ses-1]/anat/sub-01[_ses-1]_T1w.nii.gz
 *   SOURCE/derivatives/PIPELINE/sub-01[/ses-1]/anat/sub-01[_ses-1][_desc-x]_dseg.nii.gz
 *
 * SOURCE may be a derivative itself. 'image_suffix' has an ending of names for each channel, and
 * 'label_suffix' one for labels; an ending may begin with entities, as in desc-manual_dseg. Images
 * come from SOURCE, and from the derivatives if SOURCE has none; labels from both.
 *
 * A case is the name of its image without the ending. Its label has all entities of the image, and
 * no other space or resolution. The names of the classes come from a table *dseg.tsv, which holds
 * for all labels of its folder and below it, as BIDS' principle of inheritance says.
 */
#include "data/dataset/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/file/folder_list.h"
#include "base/file/table_file.h"
#include "base/hash/name_index.h"
#include "base/text/text.h"
#include "data/dataset/class_list.h"
#include "data/volume/volume_files.h"

/* A volume in a folder 'anat'. */
typedef struct bids_file {
    const char *path, *stem, *folder;
    const char *prefix;        /* of its name by its folders: "sub-01" or "sub-01_ses-1"          */
    const char *key;           /* an image's stem without the ending                              */
    bool derived;              /* below 'derivatives'                                             */
} bids_file;

typedef struct file_list {
    bids_file *item;           /* malloc'ed                                                       */
    int count, room;
} file_list;

typedef struct search {
    arena *memory;
    layout_result *out;
    const dataset_settings *settings;
    const char *source;        /* without '/' at the end                                          */
    pons_texts images;         /* endings of image names                                          */
    const char *label;         /* ending of label names                                           */
    file_list volumes, tables; /* tables are sorted by folder                                     */
    file_list *channel;        /* sorted by key                                                   */
    file_list labels;          /* sorted by prefix                                                */
} search;

static pons_status append_file(file_list *l, bids_file file, pons_error *err)
{
    if (l->count == l->room) {
        int room = 2 * l->room + 64;
        bids_file *more = realloc(l->item, (size_t)room * sizeof *more);
        if (more == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        l->item = more;
        l->room = room;
    }
    l->item[l->count++] = file;
    return PONS_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const bids_file *left = a, *right = b;
    int order = strcmp(left->key, right->key);

    return order != 0 ? order : strcmp(left->path, right->path);
}

static int compare_prefixes(const void *a, const void *b)
{
    const bids_file *left = a, *right = b;
    int order = strcmp(left->prefix, right->prefix);

    return order != 0 ? order : strcmp(left->path, right->path);
}

static int compare_folders(const void *a, const void *b)
{
    const bids_file *left = a, *right = b;
    int order = strcmp(left->folder, right->folder);

    return order != 0 ? order : strcmp(left->path, right->path);
}

static void sort_files(file_list *l, int (*compare)(const void *, const void *))
{
    if (l->count > 0)
        qsort(l->item, (size_t)l->count, sizeof *l->item, compare);
}

/* ---- entities -------------------------------------------------------------------------------- */

/* Whether 'stem' has the part "space-MNI" or "dseg" between its underscores. */
static bool stem_has(const char *stem, const char *part, size_t size)
{
    for (;;) {
        size_t length = strcspn(stem, "_");
        if (length == size && memcmp(stem, part, size) == 0)
            return true;
        stem += length;
        if (*stem++ == '\0')
            return false;
    }
}

/* Whether 'stem' has all parts of 'parts'. */
static bool stem_has_all(const char *stem, const char *parts)
{
    for (;;) {
        size_t length = strcspn(parts, "_");
        if (!stem_has(stem, parts, length))
            return false;
        parts += length;
        if (*parts++ == '\0')
            return true;
    }
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Whether a label lies on the grid of an image: no other space or resolution. */
static bool same_grid(const char *label, const char *image)
{
    static const char *const own[] = { "space-orig", "space-T1w", "space-individual" };

    for (const char *part = label; ; part++) {
        size_t length = strcspn(part, "_");
        bool grid = begins_with(part, "space-") || begins_with(part, "res-");
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            grid = grid && !(length == strlen(own[i]) && memcmp(part, own[i], length) == 0);
        if (grid && !stem_has(image, part, length))
            return false;
        part += length;
        if (*part == '\0')
            return true;
    }
}

/* Whether 'stem' ends with '_' and 'ending'. */
static bool has_ending(const char *stem, const char *ending)
{
    size_t size = strlen(stem), length = strlen(ending);

    return size > length + 1 && stem[size - length - 1] == '_' && text_ends_with(stem, ending);
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Collect tables, and volumes where 'prefix' is not NULL. */
static pons_status collect_files(search *s, const folder_entry *entry, int count,
                                 const char *folder, const char *prefix, bool derived,
                                 pons_error *err)
{
    for (int i = 0; i < count; i++) {
        bids_file file = { .path = entry[i].path, .folder = folder, .prefix = prefix,
                           .derived = derived };
        if (entry[i].folder)
            continue;
        if (text_ends_with(entry[i].name, "_dseg.tsv") || strcmp(entry[i].name, "dseg.tsv") == 0) {
            file.stem = arena_format(s->memory, "%.*s", (int)strlen(entry[i].name) - 4,
                                     entry[i].name);
            append_file(&s->tables, file, err);
        } else if (prefix != NULL && file_kind_ending(entry[i].name, FILE_VOLUME) > 0) {
            file.stem = volume_file_stem(s->memory, entry[i].name);
            append_file(&s->volumes, file, err);
        }
    }
    return err->status;
}

static pons_status search_anat(search *s, const char *folder, const char *prefix, bool derived,
                               pons_error *err)
{
    folder_entry *entry;
    int count;

    if (folder_list(s->memory, folder, &entry, &count, err) == PONS_OK)
        collect_files(s, entry, count, folder, prefix, derived, err);
    return err->status;
}

/* The folder of a subject ("sub-01"), or a folder "ses-1" in it ("sub-01_ses-1"). */
static pons_status search_subject(search *s, const char *folder, const char *prefix, bool derived,
                                  pons_error *err)
{
    folder_entry *entry;
    int count;

    if (folder_list(s->memory, folder, &entry, &count, err) != PONS_OK
        || collect_files(s, entry, count, folder, NULL, derived, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        if (!entry[i].folder)
            continue;
        if (strcmp(entry[i].name, "anat") == 0)
            search_anat(s, entry[i].path, prefix, derived, err);
        else if (begins_with(entry[i].name, "ses-") && strchr(prefix, '_') == NULL)
            search_subject(s, entry[i].path,
                           arena_format(s->memory, "%s_%s", prefix, entry[i].name), derived, err);
    }
    return err->status;
}

/* A dataset or derivative: its subjects and tables. */
static pons_status search_tree(search *s, const char *folder, bool derived, pons_error *err)
{
    folder_entry *entry;
    int count;

    if (folder_list(s->memory, folder, &entry, &count, err) != PONS_OK
        || collect_files(s, entry, count, folder, NULL, derived, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++)
        if (entry[i].folder && begins_with(entry[i].name, "sub-"))
            search_subject(s, entry[i].path, entry[i].name, derived, err);
    return err->status;
}

static pons_status search_derivatives(search *s, pons_error *err)
{
    const char *folder = arena_format(s->memory, "%s/derivatives", s->source);
    folder_entry *entry;
    int count;

    if (!folder_is_there(folder))
        return PONS_OK;
    if (search_tree(s, folder, true, err) != PONS_OK
        || folder_list(s->memory, folder, &entry, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++)
        if (entry[i].folder && !begins_with(entry[i].name, "sub-"))
            search_tree(s, entry[i].path, true, err);
    return err->status;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Whether a volume's name agrees with its folders; else it is a problem. */
static bool check_name(search *s, const bids_file *file)
{
    if (begins_with(file->stem, file->prefix) && file->stem[strlen(file->prefix)] == '_')
        return true;
    layout_problem(s->out, NULL, file->path, "found '%s', expected a name that begins with '%s_'",
                   file->path, file->prefix);
    return false;
}

/* Files of one ending; 'derived' false: only those of the source itself. */
static pons_status list_ending(search *s, const char *ending, bool derived, file_list *out,
                               pons_error *err)
{
    for (int i = 0; i < s->volumes.count && err->status == PONS_OK; i++) {
        bids_file file = s->volumes.item[i];
        if (!has_ending(file.stem, ending) || (file.derived && !derived) || !check_name(s, &file))
            continue;
        file.key = arena_format(s->memory, "%.*s",
                                (int)(strlen(file.stem) - strlen(ending) - 1), file.stem);
        append_file(out, file, err);
    }
    return err->status;
}

/* The first of several files with one key stays; the others are problems. */
static void keep_first_files(search *s, file_list *l)
{
    int kept = 0;

    sort_files(l, compare_keys);
    for (int i = 0; i < l->count; i++) {
        const bids_file *f = &l->item[i];
        if (kept > 0 && strcmp(f->key, l->item[kept - 1].key) == 0)
            layout_problem(s->out, f->key, f->path, "found '%s' and '%s', expected one of them",
                           l->item[kept - 1].path, f->path);
        else
            l->item[kept++] = *f;
    }
    l->count = kept;
}

static pons_status list_images(search *s, pons_error *err)
{
    for (int c = 0; c < s->images.count; c++) {
        file_list *l = &s->channel[c];
        if (list_ending(s, s->images.item[c], false, l, err) == PONS_OK && l->count == 0)
            list_ending(s, s->images.item[c], true, l, err);
        if (err->status != PONS_OK)
            return err->status;
        keep_first_files(s, l);
        if (l->count == 0)
            return pons_fail(err, PONS_DATA, "'%s' has no image sub-*_%s.nii.gz in a folder "
                             "sub-*/anat or sub-*/ses-*/anat, expected one for 'image_suffix'",
                             s->source, s->images.item[c]);
    }
    return PONS_OK;
}

static const bids_file *find_key(const file_list *l, const char *key)
{
    int low = 0, high = l->count;

    while (low < high) {
        int middle = (low + high) / 2;
        if (strcmp(l->item[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->count && strcmp(l->item[low].key, key) == 0 ? &l->item[low] : NULL;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The label of an image; NULL: none. Several are a problem. */
static const bids_file *find_label(search *s, const bids_file *image, bool *ambiguous)
{
    const bids_file *found = NULL;
    int low = 0, high = s->labels.count;

    *ambiguous = false;
    while (low < high) {
        int middle = (low + high) / 2;
        if (strcmp(s->labels.item[middle].prefix, image->prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->labels.count; low++) {
        const bids_file *l = &s->labels.item[low];
        if (strcmp(l->prefix, image->prefix) != 0)
            break;
        if (!stem_has_all(l->stem, image->key) || !same_grid(l->stem, image->key))
            continue;
        if (found != NULL && !*ambiguous) {
            layout_problem(s->out, image->key, l->path, "found the labels '%s' and '%s', expected "
                           "one: 'label_suffix' such as desc-manual_%s selects it", found->path,
                           l->path, s->label);
            *ambiguous = true;
        }
        found = found != NULL ? found : l;
    }
    return found;
}

/* The table for a label: in the nearest folder above it, the one with most entities. */
static const bids_file *find_table(const search *s, const bids_file *label)
{
    size_t size = strlen(label->folder), stop = strlen(s->source);

    for (; size >= stop; size--) {
        const char *folder = arena_format(s->memory, "%.*s", (int)size, label->folder);
        const bids_file *best = NULL;
        int low = 0, high = s->tables.count;
        while (low < high) {
            int middle = (low + high) / 2;
            if (strcmp(s->tables.item[middle].folder, folder) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < s->tables.count && strcmp(s->tables.item[low].folder, folder) == 0; low++) {
            const bids_file *t = &s->tables.item[low];
            if (stem_has_all(label->stem, t->stem)
                && (best == NULL || strlen(t->stem) > strlen(best->stem)))
                best = t;
        }
        if (best != NULL)
            return best;
        while (size > stop && label->folder[size - 1] != '/')
            size--;
    }
    return NULL;
}

/* ---- classes --------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    return ((const data_class *)a)->id[0] - ((const data_class *)b)->id[0];
}

/* Columns 'index' and 'name', ordered by index; 0 is background if it has no row. */
static pons_status read_names(arena *memory, const char *path, const data_class **classes,
                              int *count, pons_error *err)
{
    table_file t;

    if (table_file_read(memory, path, &t, err) != PONS_OK)
        return err->status;
    int index = table_file_column(&t, "index"), name = table_file_column(&t, "name"), n = 0;
    if (index < 0 || name < 0)
        return pons_fail(err, PONS_DATA, "'%s' has no column '%s', expected 'index' and 'name'",
                         t.path, index < 0 ? "index" : "name");
    data_class *list = arena_alloc(memory, ((size_t)t.row_count + 1) * sizeof *list);
    bool background = false;
    for (int i = 0; i < t.row_count; i++) {
        int *id = arena_alloc(memory, sizeof *id);
        int64_t value;
        if (!text_integer(t.row[i].cell[index], &value) || value < 0 || value > LABEL_ID_MAX)
            return pons_fail(err, PONS_DATA, "'%s' line %d: found the index '%s', expected 0 to %d",
                             t.path, t.row[i].line, t.row[i].cell[index], LABEL_ID_MAX);
        if (t.row[i].cell[name][0] == '\0')
            return pons_fail(err, PONS_DATA, "'%s' line %d: found no name for index %d", t.path,
                             t.row[i].line, (int)value);
        *id = (int)value;
        background = background || value == 0;
        list[n++] = (data_class){ t.row[i].cell[name], 1, id };
    }
    if (!background)
        list[n++] = (data_class){ "background", 1, arena_alloc(memory, sizeof(int)) };
    qsort(list, (size_t)n, sizeof *list, compare_ids);
    *classes = list;
    *count = n;
    return class_list_check(arena_format(memory, "labels of %s", t.path), false, list, n, PONS_DATA,
                            err);
}

static bool same_classes(const data_class *a, int count_a, const data_class *b, int count_b)
{
    bool same = count_a == count_b;

    for (int i = 0; same && i < count_a; i++)
        same = a[i].id[0] == b[i].id[0] && strcmp(a[i].name, b[i].name) == 0;
    return same;
}

/* Take the classes of a table; every table of the dataset has to name the same. */
static pons_status take_table(search *s, const char *path, const char **first, pons_error *err)
{
    const data_class *classes = NULL;
    int count = 0;

    if (read_names(s->memory, path, &classes, &count, err) != PONS_OK)
        return err->status;
    if (*first == NULL) {
        *first = path;
        s->out->classes = classes;
        s->out->class_count = count;
    } else if (!same_classes(classes, count, s->out->classes, s->out->class_count)) {
        return pons_fail(err, PONS_DATA, "'%s' and '%s' name different classes, expected the same\n"
                         "hint: [data] labels names them for all cases", *first, path);
    }
    return PONS_OK;
}

static pons_status read_classes(search *s, const bids_file *const *label, int count,
                                pons_error *err)
{
    bool given = s->settings->labels.count > 0 || s->settings->label_table != NULL;
    const char *first = NULL;
    name_index read = { NULL };

    for (int i = 0; i < count && !given && err->status == PONS_OK; i++) {
        const bids_file *table = find_table(s, label[i]);
        if (table != NULL && name_index_find(&read, "", table->path) < 0
            && take_table(s, table->path, &first, err) == PONS_OK)
            name_index_add(&read, "", table->path, i);
    }
    name_index_clear(&read);
    if (err->status == PONS_OK && first == NULL && count > 0
        && (strcmp(s->label, "mask") == 0 || has_ending(s->label, "mask"))) {
        data_class *mask = arena_alloc(s->memory, 2 * sizeof *mask);
        int *id = arena_alloc(s->memory, 2 * sizeof *id);
        id[1] = 1;
        mask[0] = (data_class){ "background", 1, &id[0] };
        mask[1] = (data_class){ "mask", 1, &id[1] };
        s->out->classes = mask;
        s->out->class_count = 2;
    }
    return err->status;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Make the case of a key, whose first file is 'there'; false: it is left out. */
static bool make_case(search *s, const bids_file *there, data_case *c, const bids_file **label)
{
    const char **image = arena_alloc(s->memory, (size_t)s->images.count * sizeof *image);
    bool ambiguous;

    *c = (data_case){ .id = there->key, .image = image };
    for (int i = 0; i < s->images.count; i++) {
        const bids_file *f = find_key(&s->channel[i], there->key);
        if (!layout_add_channel(s->settings, f != NULL ? f->path : NULL, image, c))
            layout_problem(s->out, c->id, there->path, "found '%s', expected '%s_%s.nii.gz' "
                           "beside it", there->path, there->key, s->images.item[i]);
    }
    *label = find_label(s, there, &ambiguous);
    if (*label != NULL)
        c->label = (*label)->path;
    c->incomplete = c->incomplete || ambiguous;
    if (*label != NULL || s->settings->labels_optional)
        return true;
    layout_warning(s->out, c->id, there->path, "'%s' has no label *_%s and is left out",
                   there->path, s->label);
    return false;
}

static bool has_earlier_file(const search *s, int channel, const char *key)
{
    for (int c = 0; c < channel; c++)
        if (find_key(&s->channel[c], key) != NULL)
            return true;
    return false;
}

static pons_status make_cases(search *s, pons_error *err)
{
    layout_result *out = s->out;
    int room = 0, labels = 0;

    for (int c = 0; c < s->images.count; c++)
        room += s->channel[c].count;
    out->cases = arena_alloc(s->memory, (size_t)room * sizeof *out->cases);
    const bids_file **label = arena_alloc(s->memory, (size_t)room * sizeof *label);
    for (int c = 0; c < s->images.count; c++)
        for (int i = 0; i < s->channel[c].count; i++) {
            const bids_file *there = &s->channel[c].item[i];
            if (has_earlier_file(s, c, there->key))
                continue;
            if (!make_case(s, there, &out->cases[out->case_count].info, &label[labels]))
                continue;
            out->case_count++;
            labels += label[labels] != NULL;
        }
    if (out->case_count == 0)
        return pons_fail(err, PONS_DATA, "no image of '%s' has a label *_%s.nii.gz with its "
                         "entities, expected one beside it or in derivatives\nhint: 'label_suffix' "
                         "has another ending, such as mask", s->source, s->label);
    return read_classes(s, label, labels, err);
}

static pons_status read_tree(search *s, pons_error *err)
{
    if (search_tree(s, s->source, false, err) != PONS_OK || search_derivatives(s, err) != PONS_OK)
        return err->status;
    sort_files(&s->tables, compare_folders);
    sort_files(&s->volumes, compare_prefixes);
    if (list_images(s, err) != PONS_OK
        || list_ending(s, s->label, true, &s->labels, err) != PONS_OK)
        return err->status;
    return make_cases(s, err);
}

static const char *const *copy_names(arena *memory, const pons_texts *names)
{
    const char **copy = arena_alloc(memory, (size_t)names->count * sizeof *copy);

    for (int i = 0; i < names->count; i++)
        copy[i] = arena_string(memory, names->item[i]);
    return copy;
}

pons_status layout_bids_read(const dataset_settings *settings, layout_result *out, pons_error *err)
{
    static const char *const usual[] = { "T1w" };
    search s = { .memory = out->memory, .out = out, .settings = settings };
    char *source = arena_string(out->memory, settings->source);

    while (strlen(source) > 1 && source[strlen(source) - 1] == '/')
        source[strlen(source) - 1] = '\0';
    s.source = source;
    s.images = settings->image_suffix.count > 0 ? settings->image_suffix : (pons_texts){ 1, usual };
    s.label = settings->label_suffix != NULL && settings->label_suffix[0] != '\0'
                  ? settings->label_suffix : "dseg";
    s.channel = arena_alloc(out->memory, (size_t)s.images.count * sizeof *s.channel);
    out->origin = source;
    out->channels = s.images.count;
    out->channel_names = copy_names(out->memory, &s.images);
    read_tree(&s, err);
    for (int c = 0; c < s.images.count; c++)
        free(s.channel[c].item);
    free(s.volumes.item);
    free(s.tables.item);
    free(s.labels.item);
    return err->status;
}
