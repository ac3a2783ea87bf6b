/*
 * case_geometry.c - collect geometries, write them as JSON and compare an image with a training's.
 *
 * Callers print the warnings.
 */
#include "data/packed/case_geometry.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/text_stream.h"
#include "base/thread/parallel.h"

static const double SPACING_FACTOR = 1.25, FIELD_FACTOR = 2, SPAN_FACTOR = 10;

/* ---- ranges ---------------------------------------------------------------------------------- */

static void range_init(geometry_range *r, int count)
{
    for (int n = 0; n < count; n++)
        r[n] = (geometry_range){ INFINITY, -INFINITY };
}

static void range_extend(geometry_range *r, double low, double high)
{
    r->low = low < r->low ? low : r->low;
    r->high = high > r->high ? high : r->high;
}

static void ranges_join(geometry_range *to, const geometry_range *from, int count)
{
    for (int n = 0; n < count; n++)
        range_extend(&to[n], from[n].low, from[n].high);
}

void case_geometry_init(case_geometry *g)
{
    memset(g, 0, sizeof *g);
    range_init(g->spacing, 3);
    range_init(g->extent, 3);
    range_init(g->field, 3);
    range_init(g->value, GEOMETRY_CHANNELS_MAX);
    range_init(g->span, GEOMETRY_CHANNELS_MAX);
}

void case_geometry_join(case_geometry *g, const case_geometry *other)
{
    g->orientations |= other->orientations;
    g->channels = max_int(other->channels, g->channels);
    for (int a = 0; a < 3; a++)
        g->largest[a] = max_i64(other->largest[a], g->largest[a]);
    ranges_join(g->spacing, other->spacing, 3);
    ranges_join(g->extent, other->extent, 3);
    ranges_join(g->field, other->field, 3);
    ranges_join(g->value, other->value, GEOMETRY_CHANNELS_MAX);
    ranges_join(g->span, other->span, GEOMETRY_CHANNELS_MAX);
}

/* ---- orientations ---------------------------------------------------------------------------- */

enum { ORIENTATION_COUNT = 48 }; /* 6 orders of the axes times 8 signs                            */

static int orientation_number(const int world[3], const bool negative[3])
{
    int order = 2 * world[0] + (world[1] > world[2]);

    return 8 * order + 4 * negative[0] + 2 * negative[1] + negative[2];
}

static void orientation_codes(int number, char codes[4])
{
    static const char letters[3][2] = { { 'R', 'L' }, { 'A', 'P' }, { 'S', 'I' } };
    int first = number / 16, low = first == 0 ? 1 : 0, high = 3 - first - low;
    bool swapped = number / 8 % 2;
    const int world[3] = { first, swapped ? high : low, swapped ? low : high };

    for (int a = 0; a < 3; a++)
        codes[a] = letters[world[a]][number >> (2 - a) & 1];
    codes[3] = '\0';
}

/* The number of the orientation with these codes, -1 for unknown codes. */
static int orientation_of_codes(const char *text)
{
    char codes[4];

    for (int n = 0; n < ORIENTATION_COUNT; n++) {
        orientation_codes(n, codes);
        if (strcmp(codes, text) == 0)
            return n;
    }
    return -1;
}

int case_geometry_orientation_count(const case_geometry *g)
{
    return __builtin_popcountll(g->orientations);
}

const char *case_geometry_orientations(arena *memory, const case_geometry *g)
{
    const char *text = "";
    char codes[4];

    for (int n = 0; n < ORIENTATION_COUNT; n++) {
        if ((g->orientations >> n & 1) == 0)
            continue;
        orientation_codes(n, codes);
        text = arena_format(memory, "%s%s%s", text, *text != '\0' ? ", " : "", codes);
    }
    return text;
}

/* ---- geometry of an image -------------------------------------------------------------------- */

void case_geometry_of_position(const volume *v, case_geometry *out)
{
    double spacing[3];
    bool negative[3];
    int world[3];

    case_geometry_init(out);
    pons_volume_orientation(v, world, negative);
    pons_volume_spacing(v, spacing);
    out->orientations = UINT64_C(1) << orientation_number(world, negative);
    for (int a = 0; a < 3; a++) {
        double extent = (double)v->extent[a], field = extent * spacing[a];

        out->largest[a] = v->extent[a];
        range_extend(&out->spacing[world[a]], spacing[a], spacing[a]);
        range_extend(&out->extent[world[a]], extent, extent);
        range_extend(&out->field[world[a]], field, field);
    }
}

typedef struct value_search {
    const packed_case *p;
    case_geometry *out;
    pthread_mutex_t lock;
} value_search;

/* Add the smallest and largest value of each channel over voxels first .. end - 1. */
static void search_voxels(void *context, int64_t first, int64_t end)
{
    value_search *s = context;
    int all = s->p->image.channels, channels = s->out->channels;
    float low[GEOMETRY_CHANNELS_MAX], high[GEOMETRY_CHANNELS_MAX];

    for (int c = 0; c < channels; c++)
        low[c] = high[c] = packed_case_value(s->p, first * all + c);
    for (int64_t i = first + 1; i < end; i++) {
        for (int c = 0; c < channels; c++) {
            float x = packed_case_value(s->p, i * all + c);

            low[c] = x < low[c] ? x : low[c];
            high[c] = x > high[c] ? x : high[c];
        }
    }
    pthread_mutex_lock(&s->lock);
    for (int c = 0; c < channels; c++)
        range_extend(&s->out->value[c], (double)low[c], (double)high[c]);
    pthread_mutex_unlock(&s->lock);
}

/* A value table holds exactly the values that occur. */
static void search_table(const packed_case *p, geometry_range *out)
{
    for (int n = 0; n < p->table_count; n++)
        range_extend(out, (double)p->table[n], (double)p->table[n]);
}

void case_geometry_of_packed(const packed_case *p, case_geometry *out)
{
    value_search s = { .p = p, .out = out, .lock = PTHREAD_MUTEX_INITIALIZER };

    case_geometry_of_position(&p->image, out);
    out->channels = min_int(p->image.channels, GEOMETRY_CHANNELS_MAX);
    if (p->table_count > 0 && p->image.channels == 1)
        search_table(p, &out->value[0]);
    else
        parallel_run(pons_volume_count(&p->image), parallel_piece(1), search_voxels, &s);
    for (int c = 0; c < out->channels; c++) {
        double span = out->value[c].high - out->value[c].low;
        range_extend(&out->span[c], span, span);
    }
}

void case_geometry_of(const volume *image, case_geometry *out)
{
    const packed_case whole = { .image = *image, .code_size = 4, .codes = image->voxels };

    case_geometry_of_packed(&whole, out);
}

/* ---- spacing and field of view --------------------------------------------------------------- */

bool case_geometry_spacing_varies(const case_geometry *g)
{
    for (int a = 0; a < 3; a++)
        if (g->spacing[a].high > SPACING_FACTOR * g->spacing[a].low)
            return true;
    return false;
}

static const char *ranges_text(arena *memory, const geometry_range r[3])
{
    const char *low = arena_format(memory, "%.4g x %.4g x %.4g", r[0].low, r[1].low, r[2].low);
    const char *high = arena_format(memory, "%.4g x %.4g x %.4g", r[0].high, r[1].high, r[2].high);

    return strcmp(low, high) == 0 ? low : arena_format(memory, "%s to %s", low, high);
}

const char *case_geometry_spacings(arena *memory, const case_geometry *g)
{
    return ranges_text(memory, g->spacing);
}

const char *case_geometry_fields(arena *memory, const case_geometry *g)
{
    return ranges_text(memory, g->field);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t offset;
    bool of_channels, optional; /* optional: may be absent in a checkpoint                        */
} ranges[] = {
    { "spacing", offsetof(case_geometry, spacing), false, false },
    { "extent", offsetof(case_geometry, extent), false, false },
    { "field_of_view", offsetof(case_geometry, field), false, true },
    { "intensity", offsetof(case_geometry, value), true, false },
    { "intensity_span", offsetof(case_geometry, span), true, false },
};
enum { RANGE_COUNT = sizeof ranges / sizeof ranges[0] };

static const geometry_range *range_at(const case_geometry *g, int number)
{
    return (const void *)((const char *)g + ranges[number].offset);
}

static void put_ends(FILE *to, const char *name, const double *end, int count)
{
    fprintf(to, "\"%s\":[", name);
    for (int n = 0; n < count; n++) {
        fputs(n > 0 ? "," : "", to);
        json_put_number(to, end[2 * n]);
    }
    fputc(']', to);
}

static void put_orientations(FILE *to, uint64_t orientations)
{
    const char *before = "";
    char codes[4];

    for (int n = 0; n < ORIENTATION_COUNT; n++) {
        if ((orientations >> n & 1) == 0)
            continue;
        orientation_codes(n, codes);
        fprintf(to, "%s\"%s\"", before, codes);
        before = ",";
    }
}

static void put_geometry(FILE *to, const case_geometry *g)
{
    fputs("{\"orientations\":[", to);
    put_orientations(to, g->orientations);
    fputc(']', to);
    for (int n = 0; n < RANGE_COUNT; n++) {
        const geometry_range *r = range_at(g, n);
        int count = ranges[n].of_channels ? g->channels : 3;

        fprintf(to, ",\n\"%s\":{", ranges[n].name);
        put_ends(to, "min", &r->low, count);
        fputc(',', to);
        put_ends(to, "max", &r->high, count);
        fputc('}', to);
    }
    fputc('}', to);
}

const char *case_geometry_text(arena *memory, const case_geometry *g)
{
    const char *kept;
    text_stream s;

    if (text_stream_open(&s))
        put_geometry(s.to, g);
    if (!text_stream_close(&s))
        return NULL;
    kept = arena_string(memory, s.text);
    free(s.text);
    return kept;
}

static bool read_orientations(const json_t *list, uint64_t *out)
{
    const json_t *v;
    size_t i;

    *out = 0;
    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, v) {
        int number = json_is_string(v) ? orientation_of_codes(json_string_value(v)) : -1;
        if (number < 0)
            return false;
        *out |= UINT64_C(1) << number;
    }
    return true;
}

static bool read_ends(const json_t *list, double *end, int count)
{
    const json_t *v;
    size_t n;

    if (count == 0 || json_array_size(list) != (size_t)count)
        return false;
    json_array_foreach(list, n, v) {
        if (!json_is_number(v))
            return false;
        end[2 * n] = json_number_value(v);
    }
    return true;
}

/* The widest field of view that extents and spacings allow. */
static void bound_fields(case_geometry *g)
{
    for (int a = 0; a < 3; a++)
        range_extend(&g->field[a], g->extent[a].low * g->spacing[a].low,
                     g->extent[a].high * g->spacing[a].high);
}

bool case_geometry_read(const json_t *object, case_geometry *out)
{
    const json_t *least = json_object_get(json_object_get(object, "intensity"), "min");

    case_geometry_init(out);
    if (!read_orientations(json_object_get(object, "orientations"), &out->orientations)
        || json_array_size(least) > GEOMETRY_CHANNELS_MAX)
        return false;
    out->channels = (int)json_array_size(least);
    for (int n = 0; n < RANGE_COUNT; n++) {
        const json_t *r = json_object_get(object, ranges[n].name);
        geometry_range *to = (geometry_range *)range_at(out, n);
        int count = ranges[n].of_channels ? out->channels : 3;

        if (r == NULL && ranges[n].optional)
            continue;
        if (!read_ends(json_object_get(r, "min"), &to->low, count)
            || !read_ends(json_object_get(r, "max"), &to->high, count))
            return false;
    }
    if (json_object_get(object, "field_of_view") == NULL)
        bound_fields(out);
    return true;
}

/* ---- compare --------------------------------------------------------------------------------- */

bool case_geometry_is_turned(const case_geometry *seen, const case_geometry *image)
{
    return (image->orientations & ~seen->orientations) != 0;
}

bool case_geometry_is_scaled(const case_geometry *seen, const case_geometry *image)
{
    for (int a = 0; a < 3; a++)
        if (image->spacing[a].low * SPACING_FACTOR < seen->spacing[a].low
            || image->spacing[a].high > seen->spacing[a].high * SPACING_FACTOR)
            return true;
    return false;
}

int case_geometry_foreign_field(const case_geometry *seen, const case_geometry *image,
                                int across)
{
    for (int a = 0; a < 3; a++) {
        if (a == across)
            continue;
        if (image->field[a].high > seen->field[a].high * FIELD_FACTOR)
            return 1;
        if (image->field[a].low * FIELD_FACTOR < seen->field[a].low)
            return -1;
    }
    return 0;
}

int case_geometry_foreign_channel(const case_geometry *seen, const case_geometry *image)
{
    for (int c = 0; c < seen->channels && c < image->channels; c++) {
        const geometry_range *v = &image->value[c], *w = &seen->value[c];

        if (v->high < w->low || v->low > w->high
            || image->span[c].low * SPAN_FACTOR < seen->span[c].low
            || image->span[c].high > seen->span[c].high * SPAN_FACTOR)
            return c;
    }
    return -1;
}
