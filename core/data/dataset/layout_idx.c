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
    const char *word;          /* with which the names begin                                      */
    const char *images, *labels;
} idx_part;

/* Find the files of a part in a folder; NULL: there is none of that kind. */
static void find_files(const folder_entry *entry, int count, idx_part *p)
{
    for (int i = 0; i < count; i++) {
        if (entry[i].folder || strncmp(entry[i].name, p->word, strlen(p->word)) != 0)
            continue;
        if (idx_file_is(entry[i].name, 3))
            p->images = entry[i].path;
        else if (idx_file_is(entry[i].name, 1))
            p->labels = entry[i].path;
    }
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

/* Add a case for each image of a part. */
static pons_status add_part(const idx_part *p, bool held_out, layout_result *out, pons_error *err)
{
    idx_file *stack = arena_alloc(out->memory, sizeof *stack), labels;
    layout_case *cases;

    if (idx_file_read(out->memory, p->images, 3, stack, err) != PONS_OK
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
    find_files(entry, count, &train);
    find_files(entry, count, &test);
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

bool layout_idx_is(const char *folder)
{
    pons_error ignored = PONS_ERROR_INIT;
    arena *memory = arena_new();
    folder_entry *entry;
    int count;
    bool found = false;

    if (memory == NULL)
        return false;
    if (folder_list(memory, folder, &entry, &count, &ignored) == PONS_OK)
        for (int i = 0; i < count; i++)
            found = found || (!entry[i].folder && idx_file_is(entry[i].name, 3));
    arena_free(memory);
    return found;
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
