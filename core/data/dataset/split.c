/*
 * split.c - the rules of data.validation, one function each.
 *
 * 'random' and 'fold' walk one permutation of the sorted cases that is keyed by the seed, so the
 * folds of one seed are disjoint and cover every case.
 */
#include "data/dataset/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/text/text.h"

typedef struct split_input {
    const char *rule;  /* the whole value                                                         */
    const char *text;  /* behind the colon                                                        */
    uint64_t seed;
    int case_count;
    const data_case *cases;
} split_input;

/* order[i]: the rank at place i of the permutation; the caller frees it. */
static int *order_of_cases(const split_input *in, pons_error *err)
{
    uint64_t stream = stream_hash("data.validation");
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

static pons_status split_none(const split_input *in, bool *held, pons_error *err)
{
    return PONS_OK;
}

static pons_status split_random(const split_input *in, bool *held, pons_error *err)
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
    order = order_of_cases(in, err);
    if (order == NULL)
        return err->status;
    for (int i = 0; i < count; i++)
        held[order[i]] = true;
    free(order);
    return PONS_OK;
}

/* A whole number from 0 to 'limit', up to 'stop'; -1: none. */
static long number_read(const char *text, char stop, const char **next, long limit)
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

static pons_status split_last(const split_input *in, bool *held, pons_error *err)
{
    const char *next;
    long count = number_read(in->text, '\0', &next, INT32_MAX);

    if (count < 0)
        return pons_fail(err, PONS_CONFIG, "'validation' is '%s', expected last:COUNT", in->rule);
    if (count >= in->case_count)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s' but there %s %d case%s, expected fewer held out "
                         "than there are%s", in->rule, in->case_count == 1 ? "is" : "are",
                         in->case_count, in->case_count == 1 ? "" : "s",
                         in->case_count == 1 ? "\nhint: --set data.validation=none" : "");
    for (int i = in->case_count - (int)count; i < in->case_count; i++)
        held[i] = true;
    return PONS_OK;
}

static pons_status split_fold(const split_input *in, bool *held, pons_error *err)
{
    const char *next = "";
    long fold = number_read(in->text, '/', &next, INT32_MAX);
    long folds = fold < 0 ? -1 : number_read(next, '\0', &next, INT32_MAX);
    int *order;

    if (folds < 2 || fold >= folds)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s', expected fold:K/N with N at least 2 and K from 0 "
                         "to N - 1", in->rule);
    if (folds > in->case_count)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' is '%s' but there %s %d case%s, expected at most as many "
                         "folds as cases", in->rule, in->case_count == 1 ? "is" : "are",
                         in->case_count, in->case_count == 1 ? "" : "s");
    order = order_of_cases(in, err);
    if (order == NULL)
        return err->status;
    for (int i = (int)fold; i < in->case_count; i += (int)folds)
        held[order[i]] = true;
    free(order);
    return PONS_OK;
}

static pons_status split_names(const split_input *in, bool *held, pons_error *err)
{
    const char *at = in->text;
    int count = 0;

    do {
        size_t size = strcspn(at, ",");
        int found = -1;
        for (int i = 0; i < in->case_count; i++) {
            if (strlen(in->cases[i].id) == size && memcmp(in->cases[i].id, at, size) == 0)
                found = i;
        }
        if (found < 0)
            return pons_fail(err, PONS_CONFIG, "'validation' names '%.*s', which is no case",
                             (int)size, at);
        if (held[found])
            return pons_fail(err, PONS_CONFIG, "'validation' names '%.*s' twice", (int)size, at);
        count++;
        held[found] = true;
        at += size;
    } while (*at++ == ',');
    if (count == in->case_count)
        return pons_fail(err, PONS_CONFIG,
                         "'validation' names all %d cases, expected fewer held out than there are",
                         count);
    return PONS_OK;
}

static pons_status split_file(const split_input *in, bool *held, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "'validation' is '%s', but 'file' is not in this build",
                     in->rule);
}

static const struct split_kind {
    const char *word;
    pons_status (*mark)(const split_input *in, bool *held, pons_error *err);
} kinds[] = {
    { "random:", split_random },
    { "last:", split_last },
    { "fold:", split_fold },
    { "names:", split_names },
    { "file:", split_file },
};

pons_status split_mark(const char *rule, uint64_t seed, int case_count, const data_case *cases,
                       bool *held, pons_error *err)
{
    split_input in = { rule, rule, seed, case_count, cases };

    memset(held, 0, (size_t)case_count * sizeof *held);
    if (strcmp(rule, "none") == 0)
        return split_none(&in, held, err);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t size = strlen(kinds[i].word);
        if (strncmp(rule, kinds[i].word, size) == 0) {
            in.text = rule + size;
            return kinds[i].mark(&in, held, err);
        }
    }
    if (rule[0] >= '0' && rule[0] <= '9')
        return split_random(&in, held, err);
    return pons_fail(err, PONS_CONFIG,
                     "'validation' is '%s', expected a share, 'none', 'random:F', 'last:N', "
                     "'fold:K/N', 'names:a,b' or 'file:F'", rule);
}
