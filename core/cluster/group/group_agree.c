/*
 * group_agree.c - compare facts and lists of hashes among all processes. One hash of everything is
 * compared. Only if it differs, everything is exchanged in order to name the difference.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash/hash128.h"
#include "base/integer.h"
#include "cluster/group/group_internal.h"

typedef struct digest {
    hash128 hash;
    uint64_t count, size;     /* facts; bytes of their strings                                    */
} digest;

/* All names and values with their zeros, one after the other. */
static char *flatten(int count, const group_fact *fact, uint64_t *size)
{
    size_t room = 0;
    char *all, *at;

    for (int i = 0; i < count; i++)
        room += strlen(fact[i].name) + strlen(fact[i].value) + 2;
    all = at = malloc(room + 1);
    if (all == NULL)
        return NULL;
    for (int i = 0; i < count; i++) {
        at = stpcpy(at, fact[i].name) + 1;
        at = stpcpy(at, fact[i].value) + 1;
    }
    *size = room;
    return all;
}

/* Position in one process's facts. */
typedef struct reader {
    const char *at;
    uint64_t left;
    const char *name, *value;
} reader;

static void read_fact(reader *r)
{
    r->name = r->value = NULL;
    if (r->left == 0)
        return;
    r->left--;
    r->name = r->at;
    r->value = r->name + strlen(r->name) + 1;
    r->at = r->value + strlen(r->value) + 1;
}

static pons_status report_missing(const reader *first, const reader *other, int rank,
                                  pons_error *err)
{
    const reader *has = other->name == NULL ? first : other;

    return pons_fail(err, PONS_CONFIG, "the processes differ: rank %d has %s = '%.255s', rank %d "
                     "does not", has == first ? 0 : rank, has->name, has->value,
                     has == first ? rank : 0);
}

static pons_status compare_facts(reader first, reader other, int rank, pons_error *err)
{
    while (first.left > 0 || other.left > 0) {
        read_fact(&first);
        read_fact(&other);
        if (first.name == NULL || other.name == NULL)
            return report_missing(&first, &other, rank, err);
        if (strcmp(first.name, other.name) != 0)
            return pons_fail(err, PONS_CONFIG, "the processes differ: rank 0 has %s = '%.255s' "
                             "where rank %d has %s = '%.255s'", first.name, first.value, rank,
                             other.name, other.value);
        if (strcmp(first.value, other.value) != 0)
            return pons_fail(err, PONS_CONFIG, "the processes differ in %s: rank 0 has '%.255s', "
                             "rank %d has '%.255s'", first.name, first.value, rank, other.value);
    }
    return PONS_OK;
}

/* Exchange the facts of rank 0 and of the first rank that differs, which is the same for all. */
static pons_status find_difference(group *g, const digest *all, int rank, const char *mine,
                                   pons_error *err)
{
    uint64_t size = max_u64(all[0].size, all[rank].size);
    char *sent = calloc(1, size + 1), *texts = malloc((size + 1) * (size_t)group_size(g));

    if (sent == NULL || texts == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the facts of %d processes", group_size(g));
    } else {
        if (group_rank(g) == 0 || group_rank(g) == rank)
            memcpy(sent, mine, all[group_rank(g)].size);
        if (group_all_gather(g, sent, size + 1, texts, err) == PONS_OK)
            compare_facts((reader){ .at = texts, .left = all[0].count },
                          (reader){ .at = texts + (size_t)rank * (size + 1), .left
                              = all[rank].count },
                          rank, err);
        if (err->status == PONS_CONFIG)
            group_fail_shared(g, err);
    }
    free(sent);
    free(texts);
    return err->status;
}

static pons_status compare_digests(group *g, const digest *all, const char *mine, pons_error *err)
{
    for (int rank = 1; rank < group_size(g); rank++)
        if (memcmp(&all[rank], &all[0], sizeof *all) != 0)
            return find_difference(g, all, rank, mine, err);
    return PONS_OK;
}

pons_status group_agree(group *g, int count, const group_fact *fact, pons_error *err)
{
    digest mine = { .count = (uint64_t)count }, *all = malloc((size_t)group_size(g) * sizeof *all);
    char *text = flatten(count, fact, &mine.size);

    if (text == NULL || all == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the facts of %d processes", group_size(g));
    } else {
        mine.hash = hash128_of(text, mine.size);
        if (group_all_gather(g, &mine, sizeof mine, all, err) == PONS_OK)
            compare_digests(g, all, text, err);
    }
    free(text);
    free(all);
    return err->status;
}

/* ---- lists of hashes ------------------------------------------------------------------------- */

/* The first item that is known here and on rank 0 and differs; 'count': none. */
static int first_difference(int count, const hash128 *mine, const hash128 *first)
{
    static const hash128 unknown;

    for (int i = 0; i < count; i++)
        if (memcmp(&mine[i], &first[i], sizeof *mine) != 0
            && memcmp(&mine[i], &unknown, sizeof unknown) != 0
            && memcmp(&first[i], &unknown, sizeof unknown) != 0)
            return i;
    return count;
}

/* Compare each process's list with rank 0's. 'all' gets the first difference of each process. */
static pons_status compare_lists(group *g, int count, const hash128 *mine, int *all,
                                 pons_error *err)
{
    hash128 *first = malloc((size_t)count * sizeof *first + 1);
    int here;

    if (first == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a list of %d", count);
    memcpy(first, mine, (size_t)count * sizeof *first);
    if (group_broadcast(g, first, (size_t)count * sizeof *first, 0, err) == PONS_OK) {
        here = first_difference(count, mine, first);
        group_all_gather(g, &here, sizeof here, all, err);
    }
    free(first);
    return err->status;
}

static bool all_equal(int size, const hash128 *all)
{
    for (int r = 1; r < size; r++)
        if (memcmp(&all[r], &all[0], sizeof *all) != 0)
            return false;
    return true;
}

pons_status group_compare_hashes(group *g, int count, const hash128 *mine, int *item, int *rank,
                                 pons_error *err)
{
    const int size = group_size(g);
    const hash128 total = hash128_of(mine, (size_t)count * sizeof *mine);
    hash128 *totals = malloc((size_t)size * sizeof *totals);
    int *place = malloc((size_t)size * sizeof *place);

    *item = *rank = -1;
    if (totals == NULL || place == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for %d processes", size);
    else if (group_all_gather(g, &total, sizeof total, totals, err) == PONS_OK
             && !all_equal(size, totals)
             && compare_lists(g, count, mine, place, err) == PONS_OK)
        for (int r = 1; r < size; r++)
            if (place[r] < count && (*item < 0 || place[r] < *item)) {
                *item = place[r];
                *rank = r;
            }
    free(totals);
    free(place);
    return err->status;
}
