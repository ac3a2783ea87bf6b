/*
 * golden.c - see golden.h.
 */
#include "golden.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char *path_of(const char *name, const char *end, char *path, size_t size)
{
    const char *folder = getenv("srcdir");

    snprintf(path, size, "%s/tests/golden/%s.%s", folder != NULL ? folder : ".", name, end);
    return path;
}

void golden_open(golden *g, const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    char path[1024];
    size_t size = 0;

    ck_assert_msg(file_read(path_of(name, "json", path, sizeof path), 1 << 24, &g->text, &size,
                            PONS_DATA, &err) == PONS_OK &&
                  json_parse(g->text, size, path, PONS_DATA, &g->cases, &err) == PONS_OK &&
                  safetensors_open(path_of(name, "safetensors", path, sizeof path), &g->array,
                                   &err) == PONS_OK, "%s", err.text);
}

void golden_close(golden *g)
{
    safetensors_close(g->array);
    json_free(&g->cases);
    free(g->text);
}

static pons_shape shape_of(const safetensor *t)
{
    pons_shape s = { .rank = t->rank };

    if (t->rank <= 2) {
        memcpy(s.extent, t->extent, sizeof *t->extent * (size_t)t->rank);
        return s;
    }
    s = (pons_shape){ 5, { t->extent[0], 1, 1, 1, t->extent[1] } };
    for (int i = 2; i < t->rank; i++)
        s.extent[4 - t->rank + i] = t->extent[i];
    return s;
}

double *golden_array(const golden *g, const char *of, const char *name, pons_shape *shape)
{
    char full[512];
    const safetensor *t;
    double *from, *to;
    int64_t points, channels;

    snprintf(full, sizeof full, "%s/%s", of, name);
    if ((t = safetensors_find(g->array, full)) == NULL)
        return NULL;
    *shape = shape_of(t);
    from = malloc(sizeof *from * (size_t)t->count);
    safetensor_doubles(t, from);
    if (t->rank <= 2)
        return from;
    to = malloc(sizeof *to * (size_t)t->count);
    channels = t->extent[1];
    points = t->count / (t->extent[0] * channels);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t n = i / (points * channels), c = i / points % channels, p = i % points;

        to[(n * points + p) * channels + c] = from[i];
    }
    free(from);
    return to;
}

/* ---- options --------------------------------------------------------------------------------- */

static void append(char *text, size_t size, const char *more)
{
    ck_assert_uint_lt(strlen(text) + strlen(more), size);
    strcat(text, more);
}

static void append_value(char *text, size_t size, const json_value *v, bool words)
{
    const json_value *item;

    if (v->type != JSON_LIST) {
        append(text, size, v->type == JSON_TRUE ? "yes" : v->type == JSON_FALSE ? "no" : v->text);
        return;
    }
    for (item = v->child; item != NULL; item = item->next) {
        append_value(text, size, item, item->type == JSON_LIST ? false : words);
        if (item->next != NULL)
            append(text, size, words ? " " : ",");
    }
}

/* A list of numbers where each stands for two axes: 2 2 -> 1,2,2 1,2,2. */
static void append_flat(char *text, size_t size, const json_value *list)
{
    const json_value *item;

    for (item = list->child; item != NULL; item = item->next) {
        append(text, size, "1,");
        append(text, size, item->text);
        append(text, size, ",");
        append(text, size, item->text);
        append(text, size, item->next != NULL ? " " : "");
    }
}

config *golden_config(const json_value *options, const char *section, bool flat)
{
    static const char *const elsewhere[] = { "spatial_dims", "in_channels", "out_channels" };
    char text[32][256];
    const char *set[34];
    pons_error err = PONS_ERROR_INIT;
    config *c;
    int count = 0;

    for (const json_value *v = options->child; v != NULL; v = v->next) {
        bool skip = false;

        for (int i = 0; i < 3; i++)
            skip = skip || strcmp(v->key, elsewhere[i]) == 0;
        if (skip || v->type == JSON_NULL)
            continue;
        ck_assert_int_lt(count, 32);
        snprintf(text[count], sizeof text[count], "%s.%s=", section, v->key);
        if (flat && strcmp(v->key, "strides") == 0)
            append_flat(text[count], sizeof text[count], v);
        else
            append_value(text[count], sizeof text[count], v, true);
        set[count] = text[count];
        count++;
    }
    for (int i = 0; flat && i < 2; i++)
        set[count++] = i == 0 ? "model.kernel_size=1 3 3" : "model.up_kernel_size=1 3 3";
    ck_assert_msg(config_open(NULL, count, set, &c, &err) == PONS_OK, "%s", err.text);
    return c;
}
