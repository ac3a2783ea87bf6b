/*
 * case_list.c - write the list of cases of a run, and find the first difference of two lists.
 *
 * Folders may change between two starts of a run (R31), so cases are known by their ids and by what
 * their files hold. Ids are compared as soon as the folders have been looked at, contents when the
 * cases have been read. No id holds a '/'. A content begins with the name of its hash; one that
 * does not, as in runs of 0.1, is of another hash and counts as not known.
 */
#include "experiment/case_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/text_stream.h"

#define HASH_NAME "xxh3-128:"

const char *const case_role_names[CASE_ROLE_COUNT] = { "training cases", "validation cases" };

/* ---- the list -------------------------------------------------------------------------------- */

static void put_content(FILE *to, const cache *cases, int rank)
{
    static const hash128 unknown;
    hash128 hash = cases != NULL ? cache_case_hash(cases, rank) : unknown;

    if (memcmp(&hash, &unknown, sizeof hash) != 0)
        fprintf(to, HASH_NAME "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

static const char *print_cases(arena *memory, const dataset *d, const cache *cases, int count,
                               const int *rank)
{
    text_stream s;

    if (!text_stream_open(&s))
        return NULL;
    for (int i = 0; i < count; i++) {
        fprintf(s.to, "%s/", d->cases[rank[i]].id);
        put_content(s.to, cases, rank[i]);
        fputc('/', s.to);
    }
    if (!text_stream_close(&s))
        return NULL;
    const char *kept = arena_string(memory, s.text);
    free(s.text);
    return kept;
}

pons_status case_list_make(arena *memory, const dataset *d, const cache *cases, case_list *out,
                           pons_error *err)
{
    case_list r = { { print_cases(memory, d, cases, d->training_count, d->training),
                      print_cases(memory, d, cases, d->validation_count, d->validation) } };

    if (r.text[0] == NULL || r.text[1] == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a list of %d cases", d->case_count);
    *out = r;
    return PONS_OK;
}

/* ---- compare --------------------------------------------------------------------------------- */

/* A case of a list; behind the end the id is empty. */
typedef struct listed_case {
    const char *id, *content, *next;
    int length, content_length;
} listed_case;

static listed_case case_at(const char *list)
{
    listed_case c = { .id = list, .length = (int)strcspn(list, "/") };

    if (c.length == 0 || list[c.length] == '\0')
        return (listed_case){ .id = "", .content = "", .next = "" };
    c.content = list + c.length + 1;
    c.content_length = (int)strcspn(c.content, "/");
    c.next = c.content[c.content_length] == '/' ? c.content + c.content_length + 1 : "";
    return c;
}

/* Compare ids as bytes, the order of the lists; the end of a list comes last. */
static int compare_ids(const listed_case *a, const listed_case *b)
{
    int least = min_int(a->length, b->length);
    int order = memcmp(a->id, b->id, (size_t)least);

    if (least == 0)
        return b->length - a->length;
    return order != 0 ? order : a->length - b->length;
}

/* The first case of 'list' that 'other' lacks; length 0: none. */
static listed_case first_missing(const char *list, const char *other)
{
    listed_case c = case_at(list), there = case_at(other);

    while (c.length > 0) {
        int order = compare_ids(&c, &there);
        if (order < 0)
            break;
        if (order == 0)
            c = case_at(c.next);
        there = case_at(there.next);
    }
    return c;
}

static bool is_listed(const char *list, const listed_case *wanted)
{
    listed_case c = case_at(list);

    while (c.length > 0 && compare_ids(&c, wanted) != 0)
        c = case_at(c.next);
    return c.length > 0;
}

static int count_cases(const char *list)
{
    int count = 0;

    for (listed_case c = case_at(list); c.length > 0; c = case_at(c.next))
        count++;
    return count;
}

static pons_status refuse_case(const case_list *before, const case_list *now, const listed_case *c,
                               const char *what, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "case '%.*s' %s; found %d cases to train on and %d to "
                     "validate, expected %d and %d", c->length, c->id, what,
                     count_cases(now->text[0]), count_cases(now->text[1]),
                     count_cases(before->text[0]), count_cases(before->text[1]));
}

static pons_status compare_roles(const case_list *before, const case_list *now,
                                 pons_error *err)
{
    static const struct { const char *moved, *added, *missing; } said[CASE_ROLE_COUNT] = {
        { "is trained on, but the run to be continued validates it",
          "is trained on, but the run to be continued does not know it",
          "is not there, but the run to be continued trains on it" },
        { "is validated, but the run to be continued trains on it",
          "is validated, but the run to be continued does not know it",
          "is not there, but the run to be continued validates it" }
    };

    for (int role = 0; role < CASE_ROLE_COUNT; role++) {
        listed_case c = first_missing(now->text[role], before->text[role]);
        if (c.length > 0)
            return refuse_case(before, now, &c, is_listed(before->text[1 - role], &c)
                               ? said[role].moved : said[role].added, err);
    }
    for (int role = 0; role < CASE_ROLE_COUNT; role++) {
        listed_case c = first_missing(before->text[role], now->text[role]);
        if (c.length > 0) /* no case has changed its role, so it is missing */
            return refuse_case(before, now, &c, said[role].missing, err);
    }
    return PONS_OK;
}

static bool is_known(const listed_case *c)
{
    return strncmp(c->content, HASH_NAME, sizeof HASH_NAME - 1) == 0;
}

static bool contents_differ(const listed_case *a, const listed_case *b)
{
    return is_known(a) && is_known(b)
           && (a->content_length != b->content_length
               || memcmp(a->content, b->content, (size_t)a->content_length) != 0);
}

static void warn_role(const char *before, const char *now, logger *l)
{
    listed_case b = case_at(before), n = case_at(now);

    while (b.length > 0 && !contents_differ(&b, &n)) {
        b = case_at(b.next);
        n = case_at(n.next);
    }
    if (b.length > 0)
        log_warning(l, "case '%.*s' has changed: its files do not hold what they held when the run "
                    "to be continued was saved; results may differ", n.length, n.id);
}

static bool has_lists(const case_list *before)
{
    return before->text[0] != NULL && before->text[1] != NULL;
}

pons_status case_list_compare(const case_list *before, const case_list *now,
                              pons_error *err)
{
    return has_lists(before) ? compare_roles(before, now, err) : PONS_OK;
}

void case_list_warn(const case_list *before, const case_list *now, logger *l)
{
    for (int role = 0; role < CASE_ROLE_COUNT && has_lists(before); role++)
        warn_role(before->text[role], now->text[role], l);
}
