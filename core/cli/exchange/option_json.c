/*
 * option_json.c - values of each type of option as JSON.
 */
#include "cli/exchange/option_json.h"

json_t *option_json_integers(int count, const int *item)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(item[i]));
    return list;
}

static json_t *reals(int count, const double *item)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_real(item[i]));
    return list;
}

static json_t *whole_numbers(const pons_integers *numbers)
{
    json_t *list = json_array();

    for (int i = 0; i < numbers->count; i++)
        json_array_append_new(list, json_integer(numbers->item[i]));
    return list;
}

static json_t *texts(const pons_texts *words)
{
    json_t *list = json_array();

    for (int i = 0; i < words->count; i++)
        json_array_append_new(list, json_string(words->item[i]));
    return list;
}

static json_t *triples(const pons_triples *all)
{
    json_t *list = json_array();

    for (int i = 0; i < all->count; i++)
        json_array_append_new(list, option_json_integers(3, all->item[i]));
    return list;
}

/* A number, or the word that stands for it. */
static json_t *number_or_word(const pons_option *o, int64_t value)
{
    return value < 0 && o->choices != NULL ? json_string(o->choices[-1 - value])
                                           : json_integer(value);
}

json_t *option_json_value(const pons_option *o, const void *config)
{
    const void *at = (const char *)config + o->offset;

    switch (o->type) {
    case PONS_OPTION_REAL: return json_real(*(const double *)at);
    case PONS_OPTION_INTEGER: case PONS_OPTION_SIZE:
        return number_or_word(o, *(const int64_t *)at);
    case PONS_OPTION_FLAG: return json_boolean(*(const bool *)at);
    case PONS_OPTION_CHOICE: return json_string(o->choices[*(const int *)at]);
    case PONS_OPTION_TEXT: case PONS_OPTION_PATH: return json_string(*(const char *const *)at);
    case PONS_OPTION_REALS:
        return reals(((const pons_reals *)at)->count, ((const pons_reals *)at)->item);
    case PONS_OPTION_INTEGERS: return whole_numbers(at);
    case PONS_OPTION_TEXTS: case PONS_OPTION_PATHS: return texts(at);
    case PONS_OPTION_AXES: return option_json_integers(3, at);
    case PONS_OPTION_REAL_AXES: return reals(3, at);
    case PONS_OPTION_TRIPLES: return triples(at);
    }
    return json_null();
}

json_t *option_json_object(const pons_option *options, const void *config)
{
    json_t *out = json_object();

    for (const pons_option *o = options; o != NULL && o->name != NULL; o++)
        json_object_set_new(out, o->name, option_json_value(o, config));
    return out;
}
