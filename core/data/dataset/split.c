/*
 * split.c - the rules of data.validation, one function each.
 *
 * 'random' and 'fold' use one permutation of the sorted cases, keyed by the seed. Folds of one
 * seed are disjoint and cover every case.
 */
#include "data/dataset/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numpy_shuffle.h"
#include "base/random.h"
#include "base/text/text.h"

enum { NNUNET_SEED = 12345 };

typedef struct split_input {
    const char *rule;  /* the whole value of the option                                           */
    const char *text;  /* the part behind the colon                                               */
    uint64_t seed;
    const int64_t *fold;
    int case_count;
    const data_case *cases;
} split_input;

/* A permutation of the ranks; the caller frees it. */
static int *permute_cases(const split_input *in, pons_error *err)
{
    uint64_t stream = random_stream_hash("data.validation");
    int *order = malloc((size_t)in->case_count * sizeof *order);

    if (order == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory");
        return NULL;
    }
    for (int i = 0; i < in->case_count; i++)
        order[i] = i;
    for (int i = in->case_count - 1; i > 0; i--) {
        uint32_t u[4];
        random_data(in->seed, stream, 0, 0, (uint64_t)i, 0, u);
        int j = (int)(((uint64_t)u[0] * (uint64_t)(i + 1)) >> 32);
        int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return order;
}

static pons_status split_none(const split_input *in, split_part *part, pons_error *err)
{
    return PONS_OK;
}

static pons_status split_random(const split_input *in, split_part *part, pons_error *err)
{
    double share;
    int count, *order;

    if (!text_real(in->text, &share) || share < 0 || share >= 1)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s', expected a share from 0 to below 1", in->rule);
    count = (int)floor(share * in->case_count + 0.5);
    if (share > 0 && count == 0)
        count = 1;
    if (count >= in->case_count)
        count = in->case_count - 1;
    if (count <= 0)
        return PONS_OK;
    order = permute_cases(in, err);
    if (order == NULL)
        return err->status;
    for (int i = 0; i < count; i++)
        part[order[i]] = SPLIT_VALIDATION;
    free(order);
    return PONS_OK;
}

/* Parse a whole number from 0 to 'limit' that ends at character 'stop'; -1: malformed. */
static long parse_number(const char *text, char stop, const char **next, long limit)
{
    char *end;
    long value;

    if (*text < '0' || *text > '9')
        return -1;
    value = strtol(text, &end, 10);
    if (*end != stop || value > limit)
        return -1;
    *next = stop == '\0' ? end : end + 1;
    return value;
}

static pons_status split_last(const split_input *in, split_part *part, pons_error *err)
{
    const char *next;
    long count = parse_number(in->text, '\0', &next, INT32_MAX);

    if (count < 0)
        return pons_fail(err, PONS_CONFIG, "'validation' is '%s', expected last:COUNT", in->rule);
    if (count >= in->case_count)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s' but there %s %d case%s, expected fewer held out "
                         "than there are%s", in->rule, in->case_count == 1 ? "is" : "are",
                         in->case_count, text_plural(in->case_count),
                         in->case_count == 1 ? "\nhint: --set data.validation=none" : "");
    for (int i = in->case_count - (int)count; i < in->case_count; i++)
        part[i] = SPLIT_VALIDATION;
    return PONS_OK;
}

static pons_status split_fold(const split_input *in, split_part *part, pons_error *err)
{
    const char *next = "";
    long fold = parse_number(in->text, '/', &next, INT32_MAX);
    long folds = fold < 0 ? -1 : parse_number(next, '\0', &next, INT32_MAX);
    int *order;

    if (folds < 2 || fold >= folds)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s', expected fold:K/N with N at least 2 and K from 0 "
                         "to N - 1", in->rule);
    if (folds > in->case_count)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s' but there %s %d case%s, expected at most as many "
                         "folds as cases", in->rule, in->case_count == 1 ? "is" : "are",
                         in->case_count, text_plural(in->case_count));
    order = permute_cases(in, err);
    if (order == NULL)
        return err->status;
    for (int i = (int)fold; i < in->case_count; i += (int)folds)
        part[order[i]] = SPLIT_VALIDATION;
    free(order);
    return PONS_OK;
}

/* The rank of the case with the first 'size' bytes of a text as id; -1: none. Ids ascend. */
static int find_id(const split_input *in, const char *text, size_t size)
{
    int low = 0, high = in->case_count;

    while (low < high) {
        int middle = low + (high - low) / 2;
        const char *id = in->cases[middle].id;
        int order = strncmp(id, text, size);
        if (order == 0 && id[size] == '\0')
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static pons_status split_names(const split_input *in, split_part *part, pons_error *err)
{
    const char *at = in->text;
    int count = 0;

    do {
        size_t size = strcspn(at, ",");
        int found = find_id(in, at, size);
        if (found < 0)
            return pons_fail(err, PONS_CONFIG, "'validation' names '%.*s', which is no case",
                             (int)size, at);
        if (part[found] == SPLIT_VALIDATION)
            return pons_fail(err, PONS_CONFIG, "'validation' names '%.*s' twice", (int)size, at);
        count++;
        part[found] = SPLIT_VALIDATION;
        at += size;
    } while (*at++ == ',');
    if (count == in->case_count)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' names all %d cases, expected fewer held out than there are",
                         count);
    return PONS_OK;
}

static pons_status split_file(const split_input *in, split_part *part, pons_error *err)
{
    return split_file_mark(in->text, in->fold, in->case_count, in->cases, part, err);
}

/*
 * Folds 0 to 4 are those of scikit-learn's KFold(5, shuffle=True, random_state=12345). A larger
 * number holds out a fifth of its own, and these may overlap.
 */
static pons_status split_nnunet(const split_input *in, split_part *part, pons_error *err)
{
    int64_t fold = in->fold != NULL ? *in->fold : 0;
    int64_t size = in->case_count / NNUNET_FOLDS, rest = in->case_count % NNUNET_FOLDS;
    int64_t first = (int64_t)(in->case_count * 0.8), end = in->case_count;
    bool shares = fold < NNUNET_FOLDS;

    if (in->case_count < NNUNET_FOLDS)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s' but there %s %d case%s, expected at least %d for "
                         "the folds of nnU-Net", in->rule, in->case_count == 1 ? "is" : "are",
                         in->case_count, text_plural(in->case_count), NNUNET_FOLDS);
    int *order = malloc((size_t)in->case_count * sizeof *order);
    if (order == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (shares) { /* the first folds have the rest of the division */
        first = fold * size + (fold < rest ? fold : rest);
        end = first + size + (fold < rest);
    }
    numpy_shuffle((uint32_t)(shares ? NNUNET_SEED : NNUNET_SEED + fold), in->case_count, order);
    for (int64_t i = first; i < end; i++)
        part[order[i]] = SPLIT_VALIDATION;
    free(order);
    return PONS_OK;
}

static const struct split_kind {
    const char *word;
    bool has_folds;            /* [data] fold chooses one of several splits                       */
    pons_status (*mark)(const split_input *in, split_part *part, pons_error *err);
} kinds[] = {
    { "random:", false, split_random },
    { "last:", false, split_last },
    { "fold:", false, split_fold },
    { "names:", false, split_names },
    { "file:", true, split_file },
};

/* The kind of a rule; *text: the part behind the colon. NULL: the rule is unknown. */
static const struct split_kind *find_kind(const char *rule, const char **text)
{
    static const struct split_kind whole[] = { { "none", false, split_none },
                                               { "nnunet", true, split_nnunet } };

    *text = rule;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(rule, whole[i].word) == 0)
            return &whole[i];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t size = strlen(kinds[i].word);
        if (strncmp(rule, kinds[i].word, size) == 0) {
            *text = rule + size;
            return &kinds[i];
        }
    }
    return rule[0] >= '0' && rule[0] <= '9' ? &kinds[0] : NULL;
}

pons_status split_mark(const split_rule *rule, int case_count, const data_case *cases,
                       split_part *part, pons_error *err)
{
    split_input in = { .rule = rule->validation, .seed = rule->seed, .fold = rule->fold,
                       .case_count = case_count, .cases = cases };
    const struct split_kind *kind = find_kind(rule->validation, &in.text);

    memset(part, 0, (size_t)case_count * sizeof *part);
    if (kind == NULL)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s', expected a share, 'none', 'random:F', 'last:N', "
                         "'fold:K/N', 'nnunet', 'names:a,b', 'file:F' or 'own'", in.rule);
    if (rule->fold != NULL && !kind->has_folds)
        return pons_fail(err, PONS_CONFIG, "'fold' is %lld, but 'validation' is '%s', which has no "
                         "folds to choose from", (long long)*rule->fold, in.rule);
    return kind->mark(&in, part, err);
}
