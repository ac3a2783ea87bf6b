/*
 * config_option.c - parse one value by one row of an option table, check its range, and describe
 * both in messages.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/text.h"
#include "config/config_internal.h"
#include "config/list.h"

/* A value that is being parsed. */
typedef struct parsing {
    config *config;
    const pons_option *option;
    const char *value, *where;
    void *to; /* the struct member                                                                */
    pons_error *err;
} parsing;

/* ---- messages -------------------------------------------------------------------------------- */

static bool has_range(const pons_option *o)
{
    return o->minimum < o->maximum;
}

/* The shortest decimal of at least 10 digits: 16 and not 16.000000, 1000000000 and not 1e+09. */
static const char *number_text(double x, char text[32])
{
    for (int digits = 10; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    return text;
}

static void range_text(const pons_option *o, bool whole, char *text, size_t size)
{
    const double huge = whole ? 2147483647 : FLT_MAX; /* range of a stored value */
    char low[32], high[32];

    number_text(o->minimum, low);
    number_text(o->maximum, high);
    if (!has_range(o) || (o->minimum <= -huge && o->maximum >= huge))
        *text = '\0';
    else if (o->minimum > 0 && o->minimum < 1e-300 && o->maximum >= huge)
        snprintf(text, size, " above 0");
    else if (o->minimum > 0 && o->minimum < 1e-300)
        snprintf(text, size, " above 0, at most %s", high);
    else if (o->maximum >= huge)
        snprintf(text, size, ", at least %s", low);
    else if (o->minimum <= -huge)
        snprintf(text, size, ", at most %s", high);
    else
        snprintf(text, size, " from %s to %s", low, high);
}

static const struct { const char *name; bool whole, ranged; } type_facts[] = {
    [PONS_OPTION_REAL] = { "a number", false, true },
    [PONS_OPTION_INTEGER] = { "an integer", true, true },
    [PONS_OPTION_FLAG] = { "yes or no", false, false },
    [PONS_OPTION_CHOICE] = { "one of", false, false },
    [PONS_OPTION_TEXT] = { "text", false, false },
    [PONS_OPTION_SIZE] = { "a size such as 4096 or 4MiB", true, false },
    [PONS_OPTION_REALS] = { "numbers", false, true },
    [PONS_OPTION_INTEGERS] = { "integers", true, true },
    [PONS_OPTION_TEXTS] = { "words (one with blanks wholly in \"double quotes\")", false, false },
    [PONS_OPTION_AXES] = { "one or three integers", true, true },
    [PONS_OPTION_REAL_AXES] = { "one or three numbers", false, true },
    [PONS_OPTION_TRIPLES] = { "items such as 2 or 2,2,1 of integers", true, true },
    [PONS_OPTION_PATH] = { "a path", false, false },
    [PONS_OPTION_PATHS] = { "paths (one with blanks wholly in \"double quotes\")", false, false },
};
enum { TYPE_COUNT = sizeof type_facts / sizeof *type_facts };

static bool has_counts(const pons_option *o)
{
    return o->count_min > 0 || o->count_max > 0;
}

/* "2 ", "1 or 2 ", "3 to 16 ", "at least 2 ", before what the entries are. */
static void count_text(const pons_option *o, char *text, size_t size)
{
    if (!has_counts(o))
        *text = '\0';
    else if (o->count_max == 0)
        snprintf(text, size, "at least %d ", o->count_min);
    else if (o->count_min == o->count_max)
        snprintf(text, size, "%d ", o->count_min);
    else if (o->count_min == 0)
        snprintf(text, size, "at most %d ", o->count_max);
    else
        snprintf(text, size, "%d %s %d ", o->count_min,
                 o->count_min + 1 == o->count_max ? "or" : "to", o->count_max);
}

/* Whether an option has one value only, as a size of a network that others have too. */
static bool has_one_choice(const pons_option *o)
{
    return o->type == PONS_OPTION_CHOICE && o->choices[0] != NULL && o->choices[1] == NULL;
}

const char *option_expected(const pons_option *option, char *text, size_t size)
{
    char range[96] = "", counts[48];
    const char *name = type_facts[option->type].name;
    bool single = option->count_max == 1 && name[strlen(name) - 1] == 's';
    size_t used;

    if (has_one_choice(option)) {
        snprintf(text, size, "%s", option->choices[0]);
        return text;
    }
    if (type_facts[option->type].ranged)
        range_text(option, type_facts[option->type].whole, range, sizeof range);
    count_text(option, counts, sizeof counts);
    used = (size_t)snprintf(text, size, "%s%.*s%s", counts, (int)strlen(name) - single, name,
                            range);
    for (const char *const *word = option->choices; word != NULL && *word != NULL; word++)
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     option->type == PONS_OPTION_CHOICE && word == option->choices ?
                                     " " : option->type == PONS_OPTION_CHOICE ? ", " : " or ",
                                     *word);
    return text;
}

/* 'found' is the invalid part of the value; NULL: all of it. */
static pons_status refuse_value(const parsing *p, const char *found)
{
    char expected[512];
    text_guess guess = text_guess_for(p->value);

    option_expected(p->option, expected, sizeof expected);
    for (const char *const *word = p->option->choices; word != NULL && *word != NULL; word++)
        text_guess_try(&guess, *word);
    if (p->option->type == PONS_OPTION_CHOICE && !has_one_choice(p->option) && guess.best != NULL)
        return pons_fail(p->err, PONS_CONFIG, "%s = '%s': expected %s; did you mean '%s'?",
                         p->where, p->value, expected, guess.best);
    if (found != NULL && strcmp(found, p->value) != 0)
        return pons_fail(p->err, PONS_CONFIG, "%s = '%s': found '%s', expected %s", p->where,
                         p->value, found, expected);
    return pons_fail(p->err, PONS_CONFIG, "%s = '%s': expected %s", p->where, p->value, expected);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool in_range(const pons_option *o, double x)
{
    return !has_range(o) || (x >= o->minimum && x <= o->maximum);
}

static pons_status read_real(const parsing *p, const char *text, double *x)
{
    return text_real(text, x) && in_range(p->option, *x) ? PONS_OK : refuse_value(p, text);
}

static pons_status read_integer(const parsing *p, const char *text, int64_t *x)
{
    return text_integer(text, x) && in_range(p->option, (double)*x) ? PONS_OK : refuse_value(p,
                                                                                             text);
}

/* The index of the value among the words that stand for numbers, or -1. */
static int word_index(const parsing *p)
{
    for (int i = 0; p->option->choices != NULL && p->option->choices[i] != NULL; i++)
        if (strcmp(p->option->choices[i], p->value) == 0)
            return i;
    return -1;
}

static pons_status parse_real(const parsing *p)
{
    double x = 0;

    if (*p->value != '\0' && read_real(p, p->value, &x) != PONS_OK)
        return PONS_CONFIG;
    *(double *)p->to = x;
    return PONS_OK;
}

static pons_status parse_integer(const parsing *p)
{
    int word = word_index(p);
    int64_t x = -1 - word;

    if (word < 0 && *p->value == '\0')
        x = 0;
    else if (word < 0 && read_integer(p, p->value, &x) != PONS_OK)
        return PONS_CONFIG;
    *(int64_t *)p->to = x;
    return PONS_OK;
}

static pons_status parse_size(const parsing *p)
{
    int word = word_index(p);
    int64_t x = -1 - word;

    if (word < 0 && *p->value == '\0')
        x = 0;
    else if (word < 0 && (!text_size(p->value, &x) || x < 0 || !in_range(p->option, (double)x)))
        return refuse_value(p, NULL);
    *(int64_t *)p->to = x;
    return PONS_OK;
}

static pons_status parse_flag(const parsing *p)
{
    bool yes = strcmp(p->value, "yes") == 0;

    if (!yes && *p->value != '\0' && strcmp(p->value, "no") != 0)
        return refuse_value(p, NULL);
    *(bool *)p->to = yes;
    return PONS_OK;
}

static pons_status parse_choice(const parsing *p)
{
    int word = word_index(p);

    if (word < 0)
        return refuse_value(p, NULL);
    *(int *)p->to = word;
    return PONS_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static pons_status parse_text(const parsing *p)
{
    *(const char **)p->to = *p->value != '\0' ? arena_string(p->config->arena, p->value) : NULL;
    return PONS_OK;
}

/* Split a list of numbers at any of 'separators'. */
static char **split_at(const parsing *p, const char *separators, int *count)
{
    char *copy = arena_string(p->config->arena, p->value), *rest = NULL;
    char **item = arena_alloc(p->config->arena, (strlen(copy) / 2 + 2) * sizeof *item);

    *count = 0;
    for (char *t = strtok_r(copy, separators, &rest); t != NULL;
         t = strtok_r(NULL, separators, &rest))
        item[(*count)++] = t;
    return item;
}

static char **split_numbers(const parsing *p, int *count)
{
    return split_at(p, " \t", count);
}

static pons_status parse_texts(const parsing *p)
{
    int count;
    char **item = list_split(p->config->arena, p->value, &count);

    if (item == NULL)
        return refuse_value(p, NULL);
    *(pons_texts *)p->to = (pons_texts){ count, (const char *const *)item };
    return PONS_OK;
}

static pons_status parse_reals(const parsing *p)
{
    int count;
    char **item = split_numbers(p, &count);
    double *x = arena_alloc(p->config->arena, (size_t)count * sizeof *x + 1);

    for (int i = 0; i < count; i++)
        if (read_real(p, item[i], &x[i]) != PONS_OK)
            return PONS_CONFIG;
    *(pons_reals *)p->to = (pons_reals){ count, x };
    return PONS_OK;
}

static pons_status parse_integers(const parsing *p)
{
    int count;
    char **item = split_at(p, " \t,", &count);
    int64_t *x = arena_alloc(p->config->arena, (size_t)count * sizeof *x + 1);

    for (int i = 0; i < count; i++)
        if (read_integer(p, item[i], &x[i]) != PONS_OK)
            return PONS_CONFIG;
    *(pons_integers *)p->to = (pons_integers){ count, x };
    return PONS_OK;
}

/* ---- axes ------------------------------------------------------------------------------------ */

static pons_status read_int(const parsing *p, const char *text, int *x)
{
    int64_t wide;

    if (read_integer(p, text, &wide) != PONS_OK)
        return PONS_CONFIG;
    if (wide < INT32_MIN || wide > INT32_MAX)
        return refuse_value(p, text);
    *x = (int)wide;
    return PONS_OK;
}

static pons_status parse_axes(const parsing *p)
{
    int count, x[3] = { 0, 0, 0 };
    char **item = split_numbers(p, &count);

    if (count != 0 && count != 1 && count != 3)
        return refuse_value(p, NULL);
    for (int i = 0; count > 0 && i < 3; i++)
        if (read_int(p, item[count == 1 ? 0 : i], &x[i]) != PONS_OK)
            return PONS_CONFIG;
    memcpy(p->to, x, sizeof x);
    return PONS_OK;
}

static pons_status parse_real_axes(const parsing *p)
{
    int count;
    double x[3] = { 0, 0, 0 };
    char **item = split_numbers(p, &count);

    if (count != 0 && count != 1 && count != 3)
        return refuse_value(p, NULL);
    for (int i = 0; count > 0 && i < 3; i++)
        if (read_real(p, item[count == 1 ? 0 : i], &x[i]) != PONS_OK)
            return PONS_CONFIG;
    memcpy(p->to, x, sizeof x);
    return PONS_OK;
}

static pons_status read_triple(const parsing *p, const char *text, int x[3])
{
    char *copy = arena_string(p->config->arena, text), *part[3];
    int count = 0;

    for (char *at = copy; at != NULL; count++) {
        char *comma = strchr(at, ',');
        if (count == 3)
            return refuse_value(p, text);
        if (comma != NULL)
            *comma++ = '\0';
        part[count] = at;
        at = comma;
    }
    if (count == 2)
        return refuse_value(p, text);
    for (int i = 0; i < 3; i++)
        if (read_int(p, part[count == 1 ? 0 : i], &x[i]) != PONS_OK)
            return PONS_CONFIG;
    return PONS_OK;
}

static pons_status parse_triples(const parsing *p)
{
    int count;
    char **item = split_numbers(p, &count);
    int (*x)[3] = arena_alloc(p->config->arena, (size_t)count * sizeof *x + 1);

    for (int i = 0; i < count; i++)
        if (read_triple(p, item[i], x[i]) != PONS_OK)
            return PONS_CONFIG;
    *(pons_triples *)p->to = (pons_triples){ count, (const int (*)[3])x };
    return PONS_OK;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* An empty list is not given, whatever its counts. */
static pons_status check_count(const parsing *p, int count)
{
    const pons_option *o = p->option;
    char expected[512];

    if (count == 0 || !has_counts(o)
        || (count >= o->count_min && (o->count_max == 0 || count <= o->count_max)))
        return PONS_OK;
    return pons_fail(p->err, PONS_CONFIG, "%s = '%s': found %d, expected %s", p->where, p->value,
                     count, option_expected(o, expected, sizeof expected));
}

/* ---- table ----------------------------------------------------------------------------------- */

/* Storage for one value of any type. */
typedef union option_value {
    const char *text;
    pons_texts texts;
    double reals[3];
} option_value;

/* item_size: size of a list's item, else 0. */
static const struct {
    pons_status (*parse)(const parsing *p);
    size_t size, item_size;
} types[TYPE_COUNT] = {
    [PONS_OPTION_REAL] = { parse_real, sizeof(double), 0 },
    [PONS_OPTION_INTEGER] = { parse_integer, sizeof(int64_t), 0 },
    [PONS_OPTION_FLAG] = { parse_flag, sizeof(bool), 0 },
    [PONS_OPTION_CHOICE] = { parse_choice, sizeof(int), 0 },
    [PONS_OPTION_TEXT] = { parse_text, sizeof(const char *), 0 },
    [PONS_OPTION_SIZE] = { parse_size, sizeof(int64_t), 0 },
    [PONS_OPTION_REALS] = { parse_reals, sizeof(pons_reals), sizeof(double) },
    [PONS_OPTION_INTEGERS] = { parse_integers, sizeof(pons_integers), sizeof(int64_t) },
    [PONS_OPTION_TEXTS] = { parse_texts, sizeof(pons_texts), sizeof(const char *) },
    [PONS_OPTION_AXES] = { parse_axes, sizeof(int[3]), 0 },
    [PONS_OPTION_REAL_AXES] = { parse_real_axes, sizeof(double[3]), 0 },
    [PONS_OPTION_TRIPLES] = { parse_triples, sizeof(pons_triples), sizeof(int[3]) },
    [PONS_OPTION_PATH] = { parse_text, sizeof(const char *), 0 },
    [PONS_OPTION_PATHS] = { parse_texts, sizeof(pons_texts), sizeof(const char *) },
};

pons_status option_parse(config *c, const pons_option *option, const char *value, const char *where,
                         void *target, pons_error *err)
{
    parsing p = { c, option, value, where, (char *)target + option->offset, err };

    /*
     * An empty value means 'not given', which is an error for an option with a default. A list of
     * words with a default may be empty, as in 'sinks ='.
     */
    if (*value == '\0' && (option->fallback == NULL || (*option->fallback != '\0'
                                                        && option->type != PONS_OPTION_TEXTS)))
        return refuse_value(&p, NULL);
    pons_status status = types[option->type].parse(&p);
    if (status != PONS_OK || types[option->type].item_size == 0)
        return status;
    return check_count(&p, *(const int *)p.to); /* every list begins with its count               */
}

static bool same_parsed(const pons_option *o, const option_value *a, const option_value *b)
{
    const pons_texts *s = &a->texts, *t = &b->texts;

    if (o->type == PONS_OPTION_TEXT || o->type == PONS_OPTION_PATH)
        return strcmp(a->text != NULL ? a->text : "", b->text != NULL ? b->text : "") == 0;
    if (types[o->type].item_size == 0)
        return memcmp(a, b, types[o->type].size) == 0;
    if (s->count != t->count) /* every list type begins with its count */
        return false;
    if (o->type != PONS_OPTION_TEXTS && o->type != PONS_OPTION_PATHS)
        return s->count == 0
               || memcmp(s->item, t->item, (size_t)s->count * types[o->type].item_size) == 0;
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->item[i], t->item[i]) != 0)
            return false;
    return true;
}

const pons_option *option_find(const pons_option *options, const char *name)
{
    for (; options != NULL && options->name != NULL; options++)
        if (strcmp(options->name, name) == 0)
            return options;
    return NULL;
}

const pons_option *config_known_option(const config *c, const char *section, const char *key)
{
    const pons_option *found = NULL;

    for (const known_section *k = c->known; k != NULL && found == NULL; k = k->next)
        if (strcmp(k->name, section) == 0)
            found = option_find(k->options, key);
    return found;
}

bool config_same(config *c, const char *section, const char *key, const char *a, const char *b)
{
    pons_error problem = PONS_ERROR_INIT;
    const pons_option *o;
    pons_option row;
    option_value x, y;

    if (strcmp(a, b) == 0)
        return true;
    o = config_known_option(c, section, key);
    if (o == NULL)
        return false;
    row = *o;
    row.offset = 0;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    return option_parse(c, &row, a, key, &x, &problem) == PONS_OK
           && option_parse(c, &row, b, key, &y, &problem) == PONS_OK && same_parsed(o, &x, &y);
}

const char *config_default(const config *c, const char *section, const char *key)
{
    const pons_option *o = config_known_option(c, section, key);

    return o != NULL && o->fallback != NULL ? o->fallback : "";
}

enum { HELP_MIN = 8 };

static pons_status check_row(const pons_option *o, size_t config_size, const char *name, config *c,
                             void *target, pons_error *err)
{
    char expected[512];

    if ((int)o->type < 1 || (int)o->type >= TYPE_COUNT)
        return pons_fail(err, PONS_PLUGIN, "%s: option '%s' has unknown type %d", name, o->name,
                         (int)o->type);
    for (const char *p = o->name; *p != '\0'; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_')
            return pons_fail(err, PONS_PLUGIN, "%s: option '%s' has the character '%c', expected "
                             "small letters, digits and '_'", name, o->name, *p);
    if (o->offset > config_size || config_size - o->offset < types[o->type].size)
        return pons_fail(err, PONS_PLUGIN, "%s: option '%s' lies at %zu with %zu bytes, outside of "
                         "the configuration of %zu", name, o->name, o->offset,
                         types[o->type].size, config_size);
    if (o->type == PONS_OPTION_CHOICE && (o->choices == NULL || o->choices[0] == NULL))
        return pons_fail(err, PONS_PLUGIN, "%s: option '%s' has no choices", name, o->name);
    if (has_counts(o) && types[o->type].item_size == 0)
        return pons_fail(err, PONS_PLUGIN, "%s: option '%s' has a number of entries and is no list",
                         name, o->name);
    if (o->count_min < 0 || (o->count_max != 0 && o->count_max < o->count_min))
        return pons_fail(err, PONS_PLUGIN, "%s: option '%s' has the empty range %d to %d of "
                         "entries", name, o->name, o->count_min, o->count_max);
    if (o->minimum > o->maximum)
        return pons_fail(err, PONS_PLUGIN, "%s: option '%s' has the empty range %g to %g", name,
                         o->name, o->minimum, o->maximum);
    if (o->help == NULL || strlen(o->help) < HELP_MIN || o->help[strlen(o->help) - 1] != '.')
        return pons_fail(err, PONS_PLUGIN, "%s: option '%s' has no sentence of help: found '%s', "
                         "expected at least %d characters that end with a full stop", name,
                         o->name, o->help != NULL ? o->help : "", HELP_MIN);
    option_expected(o, expected, sizeof expected); /* reads every member that help and errors use */
    if (o->fallback != NULL && (*o->fallback != '\0' || o->type == PONS_OPTION_CHOICE)) {
        pons_error problem = PONS_ERROR_INIT;
        if (option_parse(c, o, o->fallback, o->name, target, &problem) != PONS_OK)
            return pons_fail(err, PONS_PLUGIN, "%s: default of option %s", name, problem.text);
    }
    return PONS_OK;
}

pons_status option_table_check(const pons_option *options, size_t config_size, const char *name,
                               pons_error *err)
{
    void *target = calloc(1, config_size + 1);
    config *c = NULL;
    pons_status status = target == NULL ? pons_fail(err, PONS_DEVICE, "out of memory") :
                         config_open(NULL, 0, NULL, &c, err);

    for (const pons_option *o = options; status == PONS_OK && o != NULL && o->name != NULL; o++) {
        status = check_row(o, config_size, name, c, target, err);
        for (const pons_option *other = options; status == PONS_OK && other < o; other++)
            if (strcmp(other->name, o->name) == 0)
                status = pons_fail(err, PONS_PLUGIN, "%s: option '%s' occurs twice", name, o->name);
    }
    config_close(c);
    free(target);
    return status;
}
