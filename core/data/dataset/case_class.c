/*
 * case_class.c - collect the classes of a dataset from the words of its cases, and look each word
 * up.
 */
#include "data/dataset/case_class.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash/name_index.h"
#include "base/text/text.h"
#include "data/dataset/class_list.h"

/* ---- the words of the cases ------------------------------------------------------------------ */

typedef struct word_list {
    int count;
    const char **word;         /* distinct words                                                  */
    bool numbers;              /* all are label ids                                               */
} word_list;

/* A label id: a number without sign and leading zeros. */
static bool is_id(const char *word)
{
    int64_t value;

    return text_integer(word, &value) && value >= 0 && value <= LABEL_ID_MAX
           && (word[0] != '0' || word[1] == '\0') && word[0] != '+' && word[0] != '-';
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_numbers(const void *a, const void *b)
{
    return atoi(*(const char *const *)a) - atoi(*(const char *const *)b);
}

/* The words of the training cases, sorted. */
static pons_status collect_words(const layout_result *found, word_list *out, pons_error *err)
{
    name_index known = { NULL };

    *out = (word_list){ .numbers = true };
    out->word = arena_alloc(found->memory, (size_t)found->case_count * sizeof *out->word + 1);
    for (int i = 0; i < found->case_count; i++) {
        const char *word = found->cases[i].info.class_name;
        int earlier;

        if (word == NULL || (found->holds_out && found->cases[i].held_out))
            continue;
        earlier = name_index_add(&known, "", word, out->count);
        if (earlier < 0) {
            name_index_clear(&known);
            return pons_fail(err, PONS_DEVICE, "out of memory");
        }
        if (earlier < out->count)
            continue;
        out->word[out->count++] = word;
        out->numbers = out->numbers && is_id(word);
    }
    name_index_clear(&known);
    if (out->count > 0)
        qsort(out->word, (size_t)out->count, sizeof *out->word,
              out->numbers ? compare_numbers : compare_words);
    return PONS_OK;
}

/* Refuse a word that 'labels' of resolved.ini cannot hold as NAME:ID. */
static pons_status check_word(const char *word, const char *origin, pons_error *err)
{
    bool plain = word[0] != '\0';

    for (const char *c = word; *c != '\0'; c++)
        plain = plain && (unsigned char)*c >= 32 && *c != 127 && strchr(":\"'\\", *c) == NULL;
    return plain ? PONS_OK : pons_fail(err, PONS_DATA, "'%s' has the class '%s', expected a name "
                                       "without colons and quotes", origin, word);
}

static pons_status make_classes(const layout_result *found, dataset *d, pons_error *err)
{
    word_list words;
    data_class *list;
    int *ids;

    if (collect_words(found, &words, err) != PONS_OK)
        return err->status;
    if (words.count > CASE_CLASS_COUNT_MAX)
        return pons_fail(err, PONS_DATA, "'%s' has %d classes, expected at most %d", found->origin,
                         words.count, CASE_CLASS_COUNT_MAX);
    list = arena_alloc(d->memory, (size_t)words.count * sizeof *list + 1);
    ids = arena_alloc(d->memory, (size_t)words.count * sizeof *ids + 1);
    for (int i = 0; i < words.count; i++) {
        if (check_word(words.word[i], found->origin, err) != PONS_OK)
            return err->status;
        ids[i] = words.numbers ? atoi(words.word[i]) : i;
        list[i] = (data_class){ words.word[i], 1, &ids[i] };
    }
    d->classes = list;
    d->class_count = words.count;
    return PONS_OK;
}

/* ---- the class of a case --------------------------------------------------------------------- */

/* "'cat', 'dog', ..., 'owl'": at most the first four names. */
static const char *names_text(const dataset *d)
{
    const char *text = "";

    for (int c = 0; c < d->class_count && c < 4; c++)
        text = arena_format(d->memory, "%s%s'%s'", text, c > 0 ? ", " : "", d->classes[c].name);
    return d->class_count > 4 ? arena_format(d->memory, "%s or one of %d others", text,
                                             d->class_count - 4) : text;
}

static bool names_a_class(const dataset *d, const name_index *names)
{
    for (int i = 0; i < d->case_count; i++)
        if (d->cases[i].class_name != NULL
            && name_index_find(names, "", d->cases[i].class_name) >= 0)
            return true;
    return false;
}

static int find_class(const dataset *d, const name_index *names, const char *word, bool by_id)
{
    if (!by_id)
        return name_index_find(names, "", word);
    return is_id(word) ? class_index_of_id(d->classes, d->class_count, atoi(word)) : -1;
}

/*
 * Words are names of classes; where none of them is one, those of tables and stacks are ids of
 * 'labels'. The name of a folder is never an id.
 */
static void find_classes(layout_result *found, dataset *d, const name_index *names,
                         data_case *cases)
{
    bool by_id = !names_a_class(d, names);

    for (int i = 0; i < d->case_count; i++) {
        data_case *c = &cases[i];

        if (c->class_name == NULL)
            continue;
        c->class_index = find_class(d, names, c->class_name,
                                    by_id && (c->class_place != NULL || c->stack != NULL));
        if (c->class_index < 0)
            layout_problem(found, c->id, c->image[0], "%s has the class '%s', expected %s",
                           c->class_place != NULL ? c->class_place
                           : arena_format(d->memory, "'%s'", c->image[0]), c->class_name,
                           names_text(d));
    }
}

/* Set the class of each case by its word. */
static pons_status set_classes(layout_result *found, dataset *d, data_case *cases, pons_error *err)
{
    name_index names = { NULL };
    bool enough = true;

    for (int c = 0; c < d->class_count && enough; c++)
        enough = name_index_add(&names, "", d->classes[c].name, c) >= 0;
    if (enough)
        find_classes(found, d, &names, cases);
    name_index_clear(&names);
    return enough ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory");
}

pons_status case_class_resolve(const dataset_settings *s, layout_result *found, dataset *d,
                               pons_error *err)
{
    data_case *cases = arena_alloc(d->memory, (size_t)d->case_count * sizeof *cases + 1);

    if (s->labels.count > 0)
        class_list_parse(d->memory, "labels", &s->labels, CASE_CLASS_COUNT_MAX, &d->classes,
                         &d->class_count, err);
    else if (!s->labels_optional)
        make_classes(found, d, err);
    if (err->status != PONS_OK)
        return err->status;
    if (class_index_of_name(d->classes, d->class_count, "ignore") >= 0)
        return pons_fail(err, PONS_CONFIG, "'labels' has 'ignore', which is for voxels, expected "
                         "classes of whole images");
    if (d->class_count == 0 && !s->labels_optional && found->problem_count == 0)
        return pons_fail(err, PONS_DATA, "'%s' tells the class of no image, expected one for each",
                         found->origin);
    if (d->class_count == 1 && found->problem_count == 0)
        return pons_fail(err, PONS_DATA, "'%s' has one class, '%s', expected at least 2",
                         found->origin, d->classes[0].name);
    memcpy(cases, d->cases, (size_t)d->case_count * sizeof *cases);
    if (d->class_count > 0 && set_classes(found, d, cases, err) != PONS_OK)
        return err->status;
    d->cases = cases;
    return PONS_OK;
}
