/*
 * layout_idx.c - the four files of MNIST: images and labels for training, and those named t10k.
 *
 * 't10k' is the validation list, unless the INI file has a rule of its own; its cases are for tests
 * then. A file of images alone has cases without a class, for predictions.
 */
#include "data/dataset/layout.h"

#include <string.h>

#include "base/file/folder_list.h"

/* The two files of a part of the dataset. */
typedef struct idx_part {
    const char *word;          /* beginning of the names                                          */
    const char *images, *labels;
} idx_part;

/* Whether 'packed' is 'path' with .gz, as torchvision leaves it beside the file it unpacked. */
static bool is_packed_twin(const char *path, const char *packed)
{
    size_t size = strlen(path);

    return strncmp(path, packed, size) == 0 && strcmp(packed + size, ".gz") == 0;
}

/*
 * Find the file of a part and rank in a folder sorted by name; NULL: there is none. PONS_DATA:
 * there are two.
 */
static pons_status find_file(const folder_entry *entry, int count, const char *word, int rank,
                             const char **out, pons_error *err)
{
    for (int i = 0; i < count; i++) {
        if (entry[i].folder || strncmp(entry[i].name, word, strlen(word)) != 0
            || !idx_file_is(entry[i].name, rank))
            continue;
        if (*out != NULL && is_packed_twin(*out, entry[i].path))
            continue;
        if (*out != NULL)
            return pons_fail(err, PONS_DATA, "'%s' and '%s' are both %s of '%s', expected one file",
                             *out, entry[i].path, rank == 3 ? "images" : "labels", word);
        *out = entry[i].path;
    }
    return PONS_OK;
}

static pons_status find_files(const folder_entry *entry, int count, idx_part *p, pons_error *err)
{
    if (find_file(entry, count, p->word, 3, &p->images, err) == PONS_OK)
        find_file(entry, count, p->word, 1, &p->labels, err);
    return err->status;
}

static pons_status read_labels(arena *memory, const idx_part *p, const idx_file *stack,
                               idx_file *out, pons_error *err)
{
    *out = (idx_file){ .bytes = NULL };
    if (p->labels == NULL || idx_file_read(memory, p->labels, 1, out, err) != PONS_OK)
        return err->status;
    if (out->extent[0] == stack->extent[0])
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "'%s' has %lld labels, expected %lld, one for each image of "
                     "'%s'", p->labels, (long long)out->extent[0], (long long)stack->extent[0],
                     stack->path);
}

/* Refuse more images than a dataset may have cases. */
static pons_status check_count(const layout_result *out, const idx_file *stack, pons_error *err)
{
    if (stack->extent[0] <= LAYOUT_CASES_MAX - out->case_count)
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "'%s' has %lld images beside %d others, expected at most %d "
                     "in all", stack->path, (long long)stack->extent[0], out->case_count,
                     LAYOUT_CASES_MAX);
}

/* Add a case for each image of a part. */
static pons_status add_part(const idx_part *p, bool held_out, layout_result *out, pons_error *err)
{
    idx_file *stack = arena_alloc(out->memory, sizeof *stack), labels;
    layout_case *cases;

    if (idx_file_read(out->memory, p->images, 3, stack, err) != PONS_OK
        || check_count(out, stack, err) != PONS_OK
        || read_labels(out->memory, p, stack, &labels, err) != PONS_OK)
        return err->status;
    cases = arena_alloc(out->memory, (size_t)(out->case_count + stack->extent[0]) * sizeof *cases);
    if (out->case_count > 0)
        memcpy(cases, out->cases, (size_t)out->case_count * sizeof *cases);
    for (int64_t i = 0; i < stack->extent[0]; i++) {
        const char **image = arena_alloc(out->memory, sizeof *image);

        image[0] = arena_format(out->memory, "%s#%lld", p->images, (long long)i);
        cases[out->case_count + i] = (layout_case){
            .info = { .id = arena_format(out->memory, "%s_%05lld", p->word, (long long)i),
                      .image_count = 1, .image = image, .stack = stack, .slice = i,
                      .class_name = labels.bytes == NULL ? NULL
                                    : arena_format(out->memory, "%d", labels.bytes[i]) },
            .held_out = held_out, .fold = -1
        };
    }
    out->cases = cases;
    out->case_count += (int)stack->extent[0];
    out->channels = 1;
    return PONS_OK;
}

static pons_status check_files(const dataset_settings *s, const idx_part *p, pons_error *err)
{
    if (p->images == NULL)
        return pons_fail(err, PONS_DATA, "'%s' has no file '%s-images-idx3-ubyte' or .gz",
                         s->source, p->word);
    if (p->labels == NULL && !s->labels_optional)
        return pons_fail(err, PONS_DATA, "'%s' has no file '%s-labels-idx1-ubyte' or .gz",
                         s->source, p->word);
    return PONS_OK;
}

static pons_status read_folder(const dataset_settings *s, layout_result *out, pons_error *err)
{
    idx_part train = { "train", NULL, NULL }, test = { "t10k", NULL, NULL };
    bool own = s->validation == NULL || strcmp(s->validation, "own") == 0;
    folder_entry *entry;
    int count;

    if (folder_list(out->memory, s->source, &entry, &count, err) != PONS_OK)
        return err->status;
    if (find_files(entry, count, &train, err) != PONS_OK
        || find_files(entry, count, &test, err) != PONS_OK)
        return err->status;
    out->origin = arena_string(out->memory, s->source);
    out->lists_tests = test.images != NULL;
    if (!s->tests && (check_files(s, &train, err) != PONS_OK
                      || add_part(&train, false, out, err) != PONS_OK))
        return err->status;
    if ((test.images == NULL && test.labels == NULL && !s->tests) || (!own && !s->tests))
        return PONS_OK;
    out->holds_out = !s->tests;
    return check_files(s, &test, err) == PONS_OK ? add_part(&test, !s->tests, out, err)
                                                 : err->status;
}

static bool is_images(const folder_entry *entry)
{
    return !entry->folder && idx_file_is(entry->name, 3);
}

bool layout_idx_is(const char *folder)
{
    return folder_has(folder, is_images);
}

pons_status layout_idx_read(const dataset_settings *settings, layout_result *out, pons_error *err)
{
    const char *slash = strrchr(settings->source, '/');
    idx_part one = { slash != NULL ? slash + 1 : settings->source, settings->source, NULL };

    if (!idx_file_is(settings->source, 3))
        return read_folder(settings, out, err);
    one.word = arena_format(out->memory, "%.*s", (int)strcspn(one.word, "-."), one.word);
    out->origin = arena_string(out->memory, settings->source);
    return add_part(&one, false, out, err);
}
