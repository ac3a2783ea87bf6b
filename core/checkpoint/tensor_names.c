/*
 * tensor_names.c - conversion of names and axes to PyTorch's, and back.
 */
#include "checkpoint/tensor_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/finite.h"
#include "base/integer.h"
#include "base/text/text.h"
#include "base/whole.h"
#include "graph/ir/shape.h"

#define TRACKED ".num_batches_tracked"
#define VARIANCE ".running_var"

enum { TOLD_MAX = 20 }; /* differences with a line each                                           */

/* A convolution's weight: its axes are in another order in a file. */
static bool is_kernel(const storage_tensor *t)
{
    return t->shape.rank == 5 && (t->role == PONS_ROLE_WEIGHT || t->role == 0);
}

/* The axis of a kernel in a file for axis 'a' of D, H, W. */
static int axis_in_file(const tensor_format *format, int a)
{
    return format->order != NULL ? format->order[a] : a;
}

/* Shape and type of a tensor in a file. */
static safetensor file_shape(const storage_tensor *t, const tensor_format *format)
{
    const int64_t *e = t->shape.extent;
    safetensor out = { .name = t->name, .type = SAFETENSORS_F32, .rank = t->shape.rank };

    if (!is_kernel(t)) {
        memcpy(out.extent, e, sizeof e[0] * (size_t)t->shape.rank);
    } else {
        int flat = format->flat && e[1] == 1;
        out.rank = 5 - flat;
        out.extent[0] = e[0];
        out.extent[1] = e[4];
        for (int a = flat; a < 3; a++)
            out.extent[2 - flat + axis_in_file(format, a)] = e[1 + a];
    }
    out.count = shape_count(t->shape);
    return out;
}

/* Element numbers: of the file's order for each of the memory's, one kernel [O, S, I] at a time. */
static int64_t index_in_file(const storage_tensor *t, const tensor_format *format, int64_t i)
{
    const int64_t *e = t->shape.extent;
    int64_t inner = e[4], space = e[1] * e[2] * e[3], extent[3], at[3];

    if (!is_kernel(t))
        return i;
    int64_t o = i / (space * inner), s = i / inner % space, c = i % inner;
    for (int a = 2; a >= 0; s /= e[1 + a], a--) {
        extent[axis_in_file(format, a)] = e[1 + a];
        at[axis_in_file(format, a)] = s % e[1 + a];
    }
    return (o * inner + c) * space + (at[0] * extent[1] + at[1]) * extent[2] + at[2];
}

/* ---- read ------------------------------------------------------------------------------------ */

/* A file for the tensors of 'groups'. */
typedef struct origin {
    const storage *s;
    unsigned groups;
    const safetensors *file;
    const char *where;
    const tensor_format *format;
    bool found;             /* the prefix was found, so that a name without it is unknown         */
    void (*tell)(void *context, const char *line); /* NULL: the first difference ends             */
    void *context;
    int missing, unknown, misshapen;
    int64_t size;             /* bytes of the tensors to read                                     */
} origin;

const safetensor *tensor_names_find(const safetensors *file, const tensor_format *format,
                                    const char *name)
{
    char full[512];

    if (format->prefix == NULL)
        return safetensors_find(file, name);
    if (snprintf(full, sizeof full, "%s%s", format->prefix, name) >= (int)sizeof full)
        return NULL;
    return safetensors_find(file, full);
}

static bool is_skipped(const tensor_format *format, const char *name)
{
    for (int i = 0; format->skip != NULL && format->skip[i] != NULL; i++)
        if (strcmp(format->skip[i], name) == 0)
            return true;
    return false;
}

typedef bool (*visitor)(const storage_tensor *t, void *context);

/* Call 'to' for every tensor of the groups that is not skipped, while it returns true. */
static bool visit(const storage *s, unsigned groups, const tensor_format *format, visitor to,
                  void *context)
{
    for (int group = 0; group < STORAGE_GROUP_COUNT; group++) {
        int count = (groups >> group & 1) != 0 ? storage_count(s, (storage_group)group) : 0;
        for (int i = 0; i < count; i++) {
            storage_tensor t = storage_item(s, (storage_group)group, i);
            if (!is_skipped(format, t.name) && !to(&t, context))
                return false;
        }
    }
    return true;
}

static int differences(const origin *o)
{
    return o->missing + o->unknown + o->misshapen;
}

/* One difference: false where it ends the comparison. */
static bool differs(origin *o, int *count, pons_error *problem, pons_error *err)
{
    ++*count;
    if (o->tell != NULL) {
        if (differences(o) <= TOLD_MAX)
            o->tell(o->context, problem->text);
        return true;
    }
    pons_fail(err, problem->status, "%s", problem->text);
    return false;
}

typedef struct visit_state {
    origin *origin;
    pons_error *err;
    bool (*work)(const storage_tensor *t, void *context);
} visit_state;

static bool check_shape(const storage_tensor *t, void *context)
{
    const visit_state *v = context;
    origin *o = v->origin;
    const safetensor *found = tensor_names_find(o->file, o->format, t->name);
    safetensor expected = file_shape(t, o->format);
    pons_error problem = PONS_ERROR_INIT;
    char a[160], b[160];

    if (found == NULL) {
        pons_fail(&problem, PONS_CONFIG, "'%s': tensor '%s' is missing, expected shape %s",
                  o->where, t->name, safetensor_shape(&expected, a, sizeof a));
        return differs(o, &o->missing, &problem, v->err);
    }
    if (found->data == NULL && found->count > 0) {
        pons_fail(&problem, PONS_DATA, "'%s': elements of tensor '%s' overlap, as after expand(); "
                  "expected a copy of its own for each", o->where, t->name);
        return differs(o, &o->misshapen, &problem, v->err);
    }
    size_t size = sizeof found->extent[0] * (size_t)found->rank;
    if (found->rank == expected.rank && memcmp(found->extent, expected.extent, size) == 0)
        return true;
    pons_fail(&problem, PONS_CONFIG, "'%s': tensor '%s' has shape %s, expected %s", o->where,
              t->name, safetensor_shape(found, a, sizeof a),
              safetensor_shape(&expected, b, sizeof b));
    return differs(o, &o->misshapen, &problem, v->err);
}

/* All elements as double, malloc'ed. */
static double *values_of(const safetensor *found, const char *name, pons_error *err)
{
    double *values = malloc((size_t)(found->count + 1) * sizeof *values);

    if (values == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for tensor '%s'", name);
    else
        safetensor_doubles(found, values);
    return values;
}

/* Whether the elements have the storage's type, so that they need no conversion. */
static bool is_same_type(const safetensor *found, const tensor_format *format)
{
    return found->type == SAFETENSORS_F32 && !format->wide;
}

static bool check_values(const storage_tensor *t, void *context)
{
    const visit_state *v = context;
    const origin *o = v->origin;
    const safetensor *found = tensor_names_find(o->file, o->format, t->name);

    if (is_same_type(found, o->format) && floats_are_finite(found->data, found->count))
        return true;

    double *values = values_of(found, t->name, v->err);
    bool wide = o->format->wide;
    int64_t i = 0;

    while (values != NULL && i < found->count
           && isfinite(wide ? values[i] : (double)(float)values[i]))
        i++;
    if (values != NULL && i < found->count)
        pons_fail(v->err, PONS_DATA, "'%s': element %lld of tensor '%s' is %g, expected a finite "
                  "number%s", o->where, (long long)i, t->name, values[i],
                  wide ? "" : " of float32");
    free(values);
    return v->err->status == PONS_OK;
}

/* Elements of the storage's type. A file may have them at any address. */
static void copy_values(const storage_tensor *t, const tensor_format *format, const char *from)
{
    float *to = t->memory;

    for (int64_t i = 0; i < shape_count(t->shape); i++)
        memcpy(&to[i], from + index_in_file(t, format, i) * (int64_t)sizeof *to, sizeof *to);
}

static bool fill_values(const storage_tensor *t, void *context)
{
    const visit_state *v = context;
    const tensor_format *format = v->origin->format;
    const safetensor *found = tensor_names_find(v->origin->file, format, t->name);

    if (is_same_type(found, format)) {
        copy_values(t, format, found->data);
        return true;
    }

    double *values = values_of(found, t->name, v->err);
    for (int64_t i = 0; values != NULL && i < found->count; i++) {
        double value = values[index_in_file(t, format, i)];
        if (format->wide)
            ((double *)t->memory)[i] = value;
        else
            ((float *)t->memory)[i] = (float)value;
    }
    free(values);
    return v->err->status == PONS_OK;
}

static bool is_known(const origin *o, const char *name)
{
    for (int group = 0; group < STORAGE_GROUP_COUNT; group++) {
        int count = (o->groups >> group & 1) != 0 ? storage_count(o->s, (storage_group)group) : 0;
        for (int i = 0; i < count; i++) {
            if (strcmp(storage_item(o->s, (storage_group)group, i).name, name) == 0)
                return true;
        }
    }
    return false;
}

/* "weight" of "input_block.conv1.weight". */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL ? dot + 1 : name;
}

/*
 * Two names of one tensor, or a copy of it: files of safetensors, and dictionaries that were cloned
 * or converted, have each name's elements apart. A copy's name ends as the tensor's does.
 */
static bool are_equal(const safetensor *a, const safetensor *b)
{
    if (a->type != b->type || a->rank != b->rank
        || memcmp(a->extent, b->extent, sizeof a->extent[0] * (size_t)a->rank) != 0)
        return false;
    if (a->data == b->data || a->data == NULL || b->data == NULL)
        return a->data == b->data && a->data != NULL;
    return strcmp(last_part(a->name), last_part(b->name)) == 0
        && memcmp(a->data, b->data, (size_t)a->count * safetensors_type_size(a->type)) == 0;
}

typedef struct twin_search {
    const origin *origin;
    const safetensor *extra;
} twin_search;

static bool is_no_twin(const storage_tensor *t, void *context)
{
    const twin_search *s = context;
    const safetensor *found = tensor_names_find(s->origin->file, s->origin->format, t->name);

    return found == NULL || !are_equal(s->extra, found);
}

/* PyTorch writes a module that a network holds twice under both names (DynUNet's skip_layers). */
static bool is_another_name(const origin *o, const safetensor *extra)
{
    const tensor_format all = { .skip = NULL };

    return !visit(o->s, o->groups, &all, is_no_twin, &(twin_search){ o, extra });
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

/* Check one tensor of the file that may not be the network's. */
static bool check_one_extra(origin *o, const safetensor *t, pons_error *err)
{
    size_t skip = o->format->prefix != NULL ? strlen(o->format->prefix) : 0;
    bool inside = skip == 0 || strncmp(t->name, o->format->prefix, skip) == 0;
    const companion *known = companion_of(o->file, t);
    pons_error problem = PONS_ERROR_INIT;
    char shape[160];

    if (!inside && !o->found)
        return true;
    if (known != NULL && t->rank != known->rank) {
        pons_fail(&problem, PONS_CONFIG, "'%s': tensor '%.200s' has shape %s, expected %s",
                  o->where, t->name, safetensor_shape(t, shape, sizeof shape), known->expected);
        return differs(o, &o->misshapen, &problem, err);
    }
    if (known != NULL || (inside && is_known(o, t->name + skip)) || is_another_name(o, t))
        return true;
    pons_fail(&problem, PONS_CONFIG, "'%s': tensor '%.200s' %s is not part of the network",
              o->where, t->name, safetensor_shape(t, shape, sizeof shape));
    return differs(o, &o->unknown, &problem, err);
}

/* Compare all names and shapes; the first difference fails, unless there is a 'tell'. */
static pons_status compare(origin *o, pons_error *err)
{
    visit_state v = { .origin = o, .err = err };
    bool goes_on = visit(o->s, o->groups, o->format, check_shape, &v);

    for (int i = 0; goes_on && i < safetensors_count(o->file); i++)
        goes_on = check_one_extra(o, safetensors_item(o->file, i), err);
    return err->status;
}

/* ---- prefix ---------------------------------------------------------------------------------- */

typedef struct prefix_count {
    const safetensors *file;
    tensor_format format;
    const char *first;      /* the network's first name                                           */
    int found;
} prefix_count;

static bool take_first(const storage_tensor *t, void *context)
{
    ((prefix_count *)context)->first = t->name;
    return false;
}

static bool count_found(const storage_tensor *t, void *context)
{
    prefix_count *c = context;

    c->found += tensor_names_find(c->file, &c->format, t->name) != NULL;
    return true;
}

/* The number of the network's names that the file has behind this prefix. */
static int count_behind(const storage *s, unsigned groups, const safetensors *file,
                        const char *prefix)
{
    prefix_count c = { file, { .prefix = prefix }, NULL, 0 };

    visit(s, groups, &c.format, count_found, &c);
    return c.found;
}

char *tensor_names_prefix(const storage *s, unsigned groups, const safetensors *file)
{
    prefix_count c = { file, { .prefix = NULL }, NULL, 0 };
    char *best = NULL;

    visit(s, groups, &c.format, take_first, &c);
    if (c.first == NULL || safetensors_find(file, c.first) != NULL)
        return NULL;
    for (int i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_item(file, i)->name;
        size_t size = strlen(name) - min_size(strlen(c.first), strlen(name));
        if (size == 0 || name[size - 1] != '.' || strcmp(name + size, c.first) != 0)
            continue;
        char *prefix = strndup(name, size);
        int found = prefix != NULL ? count_behind(s, groups, file, prefix) : 0;
        bool better = found > c.found;
        free(better ? best : prefix);
        best = better ? prefix : best;
        c.found = better ? found : c.found;
    }
    return best;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Run 'work' with the format's prefix, or with the one that is found. */
static pons_status with_prefix(origin *o, pons_status (*work)(origin *o, pons_error *err),
                               pons_error *err)
{
    tensor_format format = *o->format;
    char *prefix = format.prefix == NULL ? tensor_names_prefix(o->s, o->groups, o->file) : NULL;

    o->found = prefix != NULL;
    if (o->found)
        format.prefix = prefix;
    o->format = &format;
    work(o, err);
    free(prefix);
    return err->status;
}

static bool add_size(const storage_tensor *t, void *context)
{
    const visit_state *v = context;
    const safetensor *found = tensor_names_find(v->origin->file, v->origin->format, t->name);

    v->origin->size += (int64_t)found->size;
    return true;
}

/* Checking a tensor and copying it count as half of its bytes each. */
static bool work_and_tell(const storage_tensor *t, void *context)
{
    const visit_state *v = context;
    const origin *o = v->origin;
    const safetensor *found = tensor_names_find(o->file, o->format, t->name);
    bool good = v->work(t, context);

    byte_progress_add(o->format->progress, (int64_t)found->size / 2);
    return good;
}

static pons_status read_tensors(origin *o, pons_error *err)
{
    visit_state check = { o, err, check_values }, fill = { o, err, fill_values };

    if (compare(o, err) != PONS_OK)
        return err->status;
    visit(o->s, o->groups, o->format, add_size, &check);
    byte_progress_begin(o->format->progress, o->size);
    if (visit(o->s, o->groups, o->format, work_and_tell, &check))
        visit(o->s, o->groups, o->format, work_and_tell, &fill);
    byte_progress_end(o->format->progress);
    return err->status;
}

pons_status tensor_names_read(storage *s, unsigned groups, const safetensors *file,
                              const char *where, const tensor_format *format, pons_error *err)
{
    origin o = { .s = s, .groups = groups, .file = file, .where = where, .format = format };

    return with_prefix(&o, read_tensors, err);
}

static void tell_more(const origin *o)
{
    char line[512];

    snprintf(line, sizeof line, "'%.400s': and %d more", o->where, differences(o) - TOLD_MAX);
    o->tell(o->context, line);
}

pons_status tensor_names_compare(const storage *s, unsigned groups, const safetensors *file,
                                 const char *where, const tensor_format *format,
                                 void (*tell)(void *context, const char *line), void *context,
                                 pons_error *err)
{
    origin o = { .s = s, .groups = groups, .file = file, .where = where, .format = format,
                 .tell = tell, .context = context };

    if (with_prefix(&o, compare, err) == PONS_OK && differences(&o) > TOLD_MAX)
        tell_more(&o);
    if (err->status == PONS_OK && differences(&o) > 0)
        pons_fail(err, PONS_CONFIG, "'%s' is not of this network: %d tensors are missing, %d are "
                  "not part of it, %d have another shape", where, o.missing, o.unknown,
                  o.misshapen);
    return err->status;
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
