/*
 * tensor_names.c - conversion of names and axes to PyTorch's, and back.
 */
#include "checkpoint/tensor_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/text.h"
#include "base/whole.h"
#include "graph/ir/shape.h"

#define TRACKED ".num_batches_tracked"
#define VARIANCE ".running_var"

/* A convolution's weight: its axes are in another order in a file. */
static bool is_kernel(const storage_tensor *t)
{
    return t->shape.rank == 5 && (t->role == PONS_ROLE_WEIGHT || t->role == 0);
}

/* Shape and type of a tensor in a file. */
static safetensor file_shape(const storage_tensor *t, const tensor_format *format)
{
    const int64_t *e = t->shape.extent;
    safetensor out = { .name = t->name, .type = SAFETENSORS_F32, .rank = t->shape.rank };

    if (!is_kernel(t)) {
        memcpy(out.extent, e, sizeof e[0] * (size_t)t->shape.rank);
    } else if (format->flat && e[1] == 1) {
        out.rank = 4;
        memcpy(out.extent, (int64_t[]){ e[0], e[4], e[2], e[3] }, 4 * sizeof e[0]);
    } else {
        memcpy(out.extent, (int64_t[]){ e[0], e[4], e[1], e[2], e[3] }, 5 * sizeof e[0]);
    }
    out.count = shape_count(t->shape);
    return out;
}

/* Element numbers: of the file's order for each of the memory's, one kernel [O, S, I] at a time. */
static int64_t index_in_file(const storage_tensor *t, int64_t i)
{
    const int64_t *e = t->shape.extent;
    int64_t inner = e[4], space = e[1] * e[2] * e[3];

    if (!is_kernel(t))
        return i;
    int64_t o = i / (space * inner), s = i / inner % space, c = i % inner;
    return (o * inner + c) * space + s;
}

/* ---- read ------------------------------------------------------------------------------------ */

static const safetensor *find_item(const safetensors *file, const tensor_format *format,
                                   const char *name)
{
    char full[512];

    if (format->prefix == NULL)
        return safetensors_find(file, name);
    if (snprintf(full, sizeof full, "%s%s", format->prefix, name) >= (int)sizeof full)
        return NULL;
    return safetensors_find(file, full);
}

static pons_status check_one(const storage_tensor *t, const safetensors *file, const char *where,
                             const tensor_format *format, pons_error *err)
{
    const safetensor *found = find_item(file, format, t->name);
    safetensor expected = file_shape(t, format);
    char a[160], b[160];

    if (found == NULL)
        return pons_fail(err, PONS_CONFIG, "'%s': tensor '%s' is missing, expected shape %s",
                         where, t->name, safetensor_shape(&expected, a, sizeof a));
    size_t size = sizeof found->extent[0] * (size_t)found->rank;
    if (found->rank != expected.rank || memcmp(found->extent, expected.extent, size) != 0)
        return pons_fail(err, PONS_CONFIG, "'%s': tensor '%s' has shape %s, expected %s", where,
                         t->name, safetensor_shape(found, a, sizeof a),
                         safetensor_shape(&expected, b, sizeof b));
    double *values = malloc((size_t)(found->count + 1) * sizeof *values);
    if (values == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for tensor '%s'", t->name);
    safetensor_doubles(found, values);
    int64_t i = 0;
    while (i < found->count && isfinite(values[i]))
        i++;
    if (i < found->count)
        pons_fail(err, PONS_DATA, "'%s': element %lld of tensor '%s' is %g, expected a finite "
                  "number", where, (long long)i, t->name, values[i]);
    free(values);
    return err->status;
}

static pons_status fill_one(const storage_tensor *t, const safetensors *file,
                            const tensor_format *format, pons_error *err)
{
    const safetensor *found = find_item(file, format, t->name);
    double *values = malloc((size_t)(found->count + 1) * sizeof *values);

    if (values == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for tensor '%s'", t->name);
    safetensor_doubles(found, values);
    for (int64_t i = 0; i < found->count; i++) {
        double value = values[index_in_file(t, i)];
        if (format->wide)
            ((double *)t->memory)[i] = value;
        else
            ((float *)t->memory)[i] = (float)value;
    }
    free(values);
    return PONS_OK;
}

typedef pons_status (*visitor)(const storage_tensor *t, const safetensors *file, const char *where,
                               const tensor_format *format, pons_error *err);

static pons_status fill_visit(const storage_tensor *t, const safetensors *file, const char *where,
                              const tensor_format *format, pons_error *err)
{
    (void)where;
    return fill_one(t, file, format, err);
}

static pons_status visit(const storage *s, unsigned groups, const safetensors *file,
                         const char *where, const tensor_format *format, visitor to,
                         pons_error *err)
{
    for (int group = 0; group < STORAGE_GROUP_COUNT; group++) {
        int count = (groups >> group & 1) != 0 ? storage_count(s, (storage_group)group) : 0;
        for (int i = 0; i < count; i++) {
            storage_tensor t = storage_item(s, (storage_group)group, i);
            if (to(&t, file, where, format, err) != PONS_OK)
                return err->status;
        }
    }
    return PONS_OK;
}

static bool is_known(const storage *s, unsigned groups, const char *name)
{
    for (int group = 0; group < STORAGE_GROUP_COUNT; group++) {
        int count = (groups >> group & 1) != 0 ? storage_count(s, (storage_group)group) : 0;
        for (int i = 0; i < count; i++) {
            if (strcmp(storage_item(s, (storage_group)group, i).name, name) == 0)
                return true;
        }
    }
    return false;
}

/* "conv1.weight" of "input_block.conv1.weight". */
static const char *last_two_parts(const char *name)
{
    const char *at = name + strlen(name);

    for (int dots = 0; at > name; at--)
        if (at[-1] == '.' && ++dots == 2)
            break;
    return at;
}

static bool are_equal(const safetensor *a, const safetensor *b)
{
    return a->type == b->type && a->rank == b->rank
        && memcmp(a->extent, b->extent, sizeof a->extent[0] * (size_t)a->rank) == 0
        && strcmp(last_two_parts(a->name), last_two_parts(b->name)) == 0
        && memcmp(a->data, b->data, (size_t)a->count * safetensors_type_size(a->type)) == 0;
}

/* PyTorch writes a module that a network holds twice under both names (DynUNet's skip_layers). */
static bool is_another_name(const storage *s, unsigned groups, const safetensors *file,
                            const tensor_format *format, const safetensor *extra)
{
    for (int group = 0; group < STORAGE_GROUP_COUNT; group++) {
        int count = (groups >> group & 1) != 0 ? storage_count(s, (storage_group)group) : 0;
        for (int i = 0; i < count; i++) {
            const char *name = storage_item(s, (storage_group)group, i).name;
            if (are_equal(extra, find_item(file, format, name)))
                return true;
        }
    }
    return false;
}

/*
 * A constant or counter that PyTorch keeps beside a tensor. A file may have it; a storage does not.
 * A file with an unknown tensor beside it is refused because of that tensor.
 */
typedef struct companion {
    const char *end, *beside;
    int rank;
    const char *expected;
} companion;

static const companion companions[] = {
    { TRACKED, VARIANCE, 0, "[]" },
    { ".relative_position_index", ".relative_position_bias_table", 2, "two axes" },
};

static bool is_companion(const companion *c, const safetensors *file, const safetensor *t)
{
    int stem = (int)(strlen(t->name) - strlen(c->end));
    char beside[512];

    if (!text_ends_with(t->name, c->end)
        || snprintf(beside, sizeof beside, "%.*s%s", stem, t->name, c->beside)
               >= (int)sizeof beside)
        return false;
    return safetensors_find(file, beside) != NULL;
}

static const companion *companion_of(const safetensors *file, const safetensor *t)
{
    for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++)
        if (is_companion(&companions[i], file, t))
            return &companions[i];
    return NULL;
}

static pons_status check_extra(const storage *s, unsigned groups, const safetensors *file,
                               const char *where, const tensor_format *format, pons_error *err)
{
    size_t skip = format->prefix != NULL ? strlen(format->prefix) : 0;

    for (int i = 0; i < safetensors_count(file); i++) {
        const safetensor *t = safetensors_item(file, i);
        char shape[160];
        if (skip > 0 && strncmp(t->name, format->prefix, skip) != 0)
            continue;
        const companion *known = companion_of(file, t);
        if (known != NULL && t->rank != known->rank)
            return pons_fail(err, PONS_CONFIG, "'%s': tensor '%.200s' has shape %s, expected %s",
                             where, t->name, safetensor_shape(t, shape, sizeof shape),
                             known->expected);
        if (known != NULL || is_known(s, groups, t->name + skip)
            || is_another_name(s, groups, file, format, t))
            continue;
        return pons_fail(err, PONS_CONFIG, "'%s': tensor '%.200s' %s is not part of the network",
                         where, t->name, safetensor_shape(t, shape, sizeof shape));
    }
    return PONS_OK;
}

pons_status tensor_names_read(storage *s, unsigned groups, const safetensors *file,
                              const char *where, const tensor_format *format, pons_error *err)
{
    if (visit(s, groups, file, where, format, check_one, err) != PONS_OK
        || check_extra(s, groups, file, where, format, err) != PONS_OK)
        return err->status;
    return visit(s, groups, file, where, format, fill_visit, err);
}

pons_status tensor_names_read_file(storage *s, unsigned groups, const char *path,
                                   const tensor_format *format, pons_error *err)
{
    safetensors *file = NULL;

    if (safetensors_open(path, &file, err) != PONS_OK)
        return err->status;
    tensor_names_read(s, groups, file, path, format, err);
    safetensors_close(file);
    return err->status;
}

/* ---- write ----------------------------------------------------------------------------------- */

static float number_at(const void *memory, bool wide, int64_t i)
{
    return wide ? (float)((const double *)memory)[i] : ((const float *)memory)[i];
}

/* A kernel [O, S, I] as [O, I, S]. */
static void reorder_kernel(const storage_tensor *t, bool wide, float *to)
{
    const int64_t *e = t->shape.extent;
    int64_t inner = e[4], space = e[1] * e[2] * e[3];

    for (int64_t o = 0; o < e[0]; o++)
        for (int64_t c = 0; c < inner; c++)
            for (int64_t s = 0; s < space; s++)
                *to++ = number_at(t->memory, wide, (o * space + s) * inner + c);
}

static const void *item_data(void *context, int index)
{
    const tensor_names_list *list = context;
    const storage_tensor *t = &list->from[index];
    bool wide = list->format.wide;
    int64_t count = shape_count(t->shape);

    if (t->memory == NULL)
        return &list->applied;
    if (!wide && !is_kernel(t))
        return t->memory;
    if (is_kernel(t))
        reorder_kernel(t, wide, list->buffer);
    for (int64_t i = 0; !is_kernel(t) && i < count; i++)
        list->buffer[i] = number_at(t->memory, wide, i);
    return list->buffer;
}

static bool add_item(tensor_names_list *list, const storage_tensor *t, int64_t *largest)
{
    int at = list->content.count++;

    list->from[at] = *t;
    list->item[at] = file_shape(t, &list->format);
    if (list->item[at].count > *largest)
        *largest = list->item[at].count;
    if (t->group != STORAGE_STATE || !text_ends_with(t->name, VARIANCE))
        return true;
    at = list->content.count++;
    int stem = (int)(strlen(t->name) - strlen(VARIANCE));
    list->from[at] = (storage_tensor){ .memory = NULL };
    if (asprintf(&list->made_name[at], "%.*s" TRACKED, stem, t->name) < 0)
        return false;
    list->item[at] = (safetensor){ .name = list->made_name[at], .type = SAFETENSORS_I64 };
    return true;
}

pons_status tensor_names_list_make(tensor_names_list *list, const storage *s, unsigned groups,
                                   const tensor_format *format, pons_error *err)
{
    int64_t largest = 0;
    size_t room = 1;
    bool good = true;

    *list = (tensor_names_list){ .format = *format,
                                 .applied = whole_within(storage_get(s, STORAGE_APPLIED), 0,
                                                         INT64_C(1) << 53) };
    for (int group = 0; group < STORAGE_GROUP_COUNT; group++)
        room += (groups >> group & 1) != 0 ? 2 * (size_t)storage_count(s, (storage_group)group) : 0;
    list->item = calloc(room, sizeof *list->item);
    list->from = calloc(room, sizeof *list->from);
    list->made_name = calloc(room, sizeof *list->made_name);
    good = list->item != NULL && list->from != NULL && list->made_name != NULL;
    for (int group = 0; good && group < STORAGE_GROUP_COUNT; group++) {
        int count = (groups >> group & 1) != 0 ? storage_count(s, (storage_group)group) : 0;
        for (int i = 0; good && i < count; i++) {
            storage_tensor t = storage_item(s, (storage_group)group, i);
            good = add_item(list, &t, &largest);
        }
    }
    list->buffer = malloc((size_t)(largest + 1) * sizeof *list->buffer);
    if (!good || list->buffer == NULL) {
        tensor_names_list_clear(list);
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint's tensors");
    }
    list->content.item = list->item;
    list->content.data = item_data;
    list->content.context = list;
    return PONS_OK;
}

void tensor_names_list_clear(tensor_names_list *list)
{
    for (int i = 0; list->made_name != NULL && i < list->content.count; i++)
        free(list->made_name[i]);
    free(list->made_name);
    free(list->item);
    free(list->from);
    free(list->buffer);
    *list = (tensor_names_list){ .item = NULL };
}

/* Bytes of one tensor in memory, a multiple of 8; 0 for num_batches_tracked. */
static size_t held_size(const tensor_names_list *list, int index)
{
    const storage_tensor *t = &list->from[index];
    size_t real = list->format.wide ? sizeof(double) : sizeof(float);

    return t->memory != NULL ? round_up_size((size_t)shape_count(t->shape) * real, 8) : 0;
}

size_t tensor_names_list_size(const tensor_names_list *list)
{
    size_t size = 0;

    for (int i = 0; i < list->content.count; i++)
        size += held_size(list, i);
    return size;
}

void tensor_names_list_copy(tensor_names_list *list, void *memory)
{
    size_t real = list->format.wide ? sizeof(double) : sizeof(float);
    char *to = memory;

    for (int i = 0; i < list->content.count; i++) {
        storage_tensor *t = &list->from[i];
        size_t size = held_size(list, i);
        if (size == 0)
            continue;
        memcpy(to, t->memory, (size_t)shape_count(t->shape) * real);
        t->memory = to;
        to += size;
    }
}

static bool are_finite(const storage_tensor *t, bool wide)
{
    int64_t count = t->memory != NULL ? shape_count(t->shape) : 0, i = 0;

    while (i < count && isfinite(wide ? ((const double *)t->memory)[i]
                                      : (double)((const float *)t->memory)[i]))
        i++;
    return i == count;
}

const char *tensor_names_list_nonfinite(const tensor_names_list *list)
{
    for (int i = 0; i < list->content.count; i++)
        if (!are_finite(&list->from[i], list->format.wide))
            return list->from[i].name;
    return NULL;
}
