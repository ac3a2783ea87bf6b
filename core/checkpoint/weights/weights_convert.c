/*
 * weights_convert.c - one tensor after the other from a file of weights to a safetensors file.
 */
#include "checkpoint/weights/weights_convert.h"

#include <math.h>
#include <stdlib.h>

#include "base/file/file.h"
#include "base/finite.h"
#include "base/integer.h"
#include "base/whole.h"

/* Elements that are converted at a time, and those whose pages are given back together. */
enum { PART = 4096, RELEASED = 64 * PART };

typedef struct conversion {
    const safetensors_content *content; /* the tensors to write                                   */
    const weights_file *file;
    const char *where;
    const tensor_format *format;
    const safetensor *last;             /* the tensor that was written last                       */
    float *buffer, *turned;             /* the elements of one tensor                             */
    int64_t room;
    int64_t counter;                    /* the element of an I64 tensor                           */
    pons_error *err;
} conversion;

static bool make_room(conversion *c, int64_t count)
{
    if (count < c->room)
        return true;
    free(c->buffer);
    free(c->turned);
    c->room = count + 1;
    c->buffer = malloc((size_t)c->room * sizeof *c->buffer);
    c->turned = c->file->ordered ? malloc((size_t)c->room * sizeof *c->turned) : NULL;
    if (c->buffer != NULL && (c->turned != NULL || !c->file->ordered))
        return true;
    pons_fail(c->err, PONS_DEVICE, "'%s': out of memory", c->where);
    return false;
}

static safetensor part_of(const safetensor *t, int64_t first, int64_t count)
{
    safetensor part = *t;

    part.count = count;
    part.size = (size_t)count * safetensors_type_size(t->type);
    part.data = (const char *)t->data + (size_t)first * safetensors_type_size(t->type);
    return part;
}

/* Give the pages before element 'first' back, a piece at a time. */
static void release_read(const conversion *c, const safetensor *from, int64_t first)
{
    safetensor read;

    if (first == 0 || first % RELEASED != 0)
        return;
    read = part_of(from, first - RELEASED, RELEASED);
    weights_file_release(c->file, &read);
}

/* The elements as f32. */
static const void *convert(conversion *c, const safetensor *from)
{
    double wide[PART];

    if (!make_room(c, from->count))
        return NULL;
    for (int64_t first = 0; first < from->count; first += PART) {
        safetensor part = part_of(from, first, min_i64(PART, from->count - first));
        release_read(c, from, first);
        safetensor_doubles(&part, wide);
        for (int64_t i = 0; i < part.count; i++) {
            c->buffer[first + i] = (float)wide[i];
            if (isfinite(c->buffer[first + i]))
                continue;
            pons_fail(c->err, PONS_DATA, "'%s': element %lld of tensor '%.200s' is %g, expected a "
                      "finite number of float32", c->where, (long long)(first + i), from->name,
                      wide[i]);
            return NULL;
        }
    }
    return c->buffer;
}

/* The kernels of [O, I, kernel] with the axes of 'to', which are axes 'order' of the data. */
static const void *turn_axes(const conversion *c, const safetensor *to, const float *data)
{
    const int *order = c->file->order, flat = to->rank == 4;
    int64_t extent[3] = { 1, 1, 1 }, from[3], step[3], at[3] = { 0, 0, 0 };
    int64_t count = to->count;

    for (int d = flat; d < 3; d++)
        extent[d] = to->extent[2 - flat + d];
    for (int d = 0; d < 3; d++)
        from[order[d]] = extent[d];
    for (int d = 0; d < 3; d++)
        step[d] = order[d] == 2 ? 1 : order[d] == 1 ? from[2] : from[1] * from[2];
    for (int64_t i = 0, kernel = 0; i < count; i++) {
        c->turned[i] = data[kernel + at[0] * step[0] + at[1] * step[1] + at[2] * step[2]];
        for (int d = 2; d >= 0 && ++at[d] == extent[d]; d--) {
            at[d] = 0;
            kernel += d == 0 ? extent[0] * extent[1] * extent[2] : 0;
        }
    }
    return c->turned;
}

/* The only element of a counter. */
static const void *count_of(conversion *c, const safetensor *from)
{
    double value = 0;

    if (from != NULL)
        safetensor_doubles(from, &value);
    c->counter = whole_within(value, 0, INT64_C(1) << 53);
    return &c->counter;
}

static int64_t size_of(const safetensor *t)
{
    return t->count * (int64_t)safetensors_type_size(t->type);
}

/* The data of one tensor; the pages of the tensor before it are given back. */
static const void *next_data(void *context, int index)
{
    conversion *c = context;
    const safetensor *to = &c->content->item[index];
    const safetensor *from = tensor_names_find(c->file->tensors, c->format, to->name);

    if (index > 0)
        byte_progress_add(c->format->progress, size_of(&c->content->item[index - 1]));
    if (c->last != NULL)
        weights_file_release(c->file, c->last);
    c->last = from;
    if (to->type != SAFETENSORS_F32)
        return count_of(c, from);
    bool turns = c->file->ordered && to->rank >= 4;
    if (!turns && from->type == SAFETENSORS_F32 && floats_are_finite(from->data, from->count))
        return from->data;
    const void *data = convert(c, from);
    return turns && data != NULL ? turn_axes(c, to, data) : data;
}

static pons_status write_file(conversion *c, const char *path, pons_error *err)
{
    safetensors_content content = *c->content;
    int64_t size = 0;

    for (int i = 0; i < content.count; i++)
        size += size_of(&content.item[i]);
    byte_progress_begin(c->format->progress, size);
    content.data = next_data;
    content.context = c;
    if (folder_make_for(path, err) == PONS_OK)
        safetensors_replace(path, &content, err);
    byte_progress_end(c->format->progress);
    free(c->buffer);
    free(c->turned);
    return err->status;
}

pons_status weights_convert(const storage *s, const weights_file *file, const char *where,
                            const tensor_format *format, const char *path,
                            void (*tell)(void *context, const char *line), void *context,
                            pons_error *err)
{
    tensor_format prefixed = *format, compared = *format;
    tensor_names_list list;
    conversion c = { .file = file, .where = where, .format = &prefixed, .err = err };
    char *prefix = NULL;

    compared.order = file->ordered ? file->order : NULL;
    if (tensor_names_compare(s, WEIGHTS_MODEL, file->tensors, where, &compared, tell, context,
                             err) != PONS_OK
        || tensor_names_list_make(&list, s, WEIGHTS_MODEL, format, err) != PONS_OK)
        return err->status;
    if (format->prefix == NULL)
        prefixed.prefix = prefix = tensor_names_prefix(s, WEIGHTS_MODEL, file->tensors);
    c.content = &list.content;
    write_file(&c, path, err);
    free(prefix);
    tensor_names_list_clear(&list);
    return err->status;
}
