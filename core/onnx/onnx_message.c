/*
 * onnx_message.c - build the messages of a model, and write them.
 */
#include "onnx/onnx_message.h"

#include <limits.h>
#include <string.h>

#include "base/file/file.h"

/* A message of this type, initialised, in the arena. */
#define NEW(m, TYPE, type) type##_in(arena_alloc((m)->memory, sizeof(TYPE)))
#define DEFINE_INIT(TYPE, type)                                                                   \
    static TYPE *type##_in(TYPE *t)                                                               \
    {                                                                                             \
        type##__init(t);                                                                          \
        return t;                                                                                 \
    }

DEFINE_INIT(Onnx__NodeProto, onnx__node_proto)
DEFINE_INIT(Onnx__AttributeProto, onnx__attribute_proto)
DEFINE_INIT(Onnx__TensorProto, onnx__tensor_proto)
DEFINE_INIT(Onnx__ValueInfoProto, onnx__value_info_proto)
DEFINE_INIT(Onnx__TypeProto, onnx__type_proto)
DEFINE_INIT(Onnx__TypeProto__Tensor, onnx__type_proto__tensor)
DEFINE_INIT(Onnx__TensorShapeProto, onnx__tensor_shape_proto)
DEFINE_INIT(Onnx__TensorShapeProto__Dimension, onnx__tensor_shape_proto__dimension)
DEFINE_INIT(Onnx__OperatorSetIdProto, onnx__operator_set_id_proto)
DEFINE_INIT(Onnx__StringStringEntryProto, onnx__string_string_entry_proto)

/* Append a pointer to a list that grows by doubling. */
static void *append(onnx_model *m, void *list, size_t *count, void *item)
{
    void **all = list;

    if ((*count & (*count - 1)) == 0)
        all = arena_grow(m->memory, list, *count * sizeof *all,
                         (*count == 0 ? 1 : 2 * *count) * sizeof *all);
    all[(*count)++] = item;
    return all;
}

#define APPEND(m, message, FIELD, item)                                                           \
    ((message)->FIELD = append(m, (message)->FIELD, &(message)->n_##FIELD, item))

void onnx_model_init(onnx_model *m, arena *memory)
{
    Onnx__OperatorSetIdProto *set;

    *m = (onnx_model){ .memory = memory };
    onnx__model_proto__init(&m->message);
    onnx__graph_proto__init(&m->graph);
    set = NEW(m, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto);
    set->domain = "";
    set->has_version = 1;
    set->version = ONNX_OPSET;
    APPEND(m, &m->message, opset_import, set);
    m->message.has_ir_version = 1;
    m->message.ir_version = ONNX_IR;
    m->message.graph = &m->graph;
    m->graph.name = "network";
}

/* ---- nodes ----------------------------------------------------------------------------------- */

onnx_node *onnx_add(onnx_model *m, const char *type, int count, const char *const *input)
{
    onnx_node *n = NEW(m, Onnx__NodeProto, onnx__node_proto);

    n->op_type = (char *)type;
    n->n_input = (size_t)count;
    n->input = arena_alloc(m->memory, (size_t)count * sizeof *n->input + 1);
    for (int i = 0; i < count; i++)
        n->input[i] = (char *)input[i];
    n->name = arena_format(m->memory, "%s_%d", type, m->made++);
    n->n_output = 1;
    n->output = arena_alloc(m->memory, sizeof *n->output);
    n->output[0] = n->name;
    APPEND(m, &m->graph, node, n);
    return n;
}

const char *onnx_apply1(onnx_model *m, const char *type, const char *a)
{
    return onnx_add(m, type, 1, &a)->output[0];
}

const char *onnx_apply2(onnx_model *m, const char *type, const char *a, const char *b)
{
    return onnx_add(m, type, 2, (const char *[]){ a, b })->output[0];
}

static Onnx__AttributeProto *attribute(onnx_model *m, onnx_node *n, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = NEW(m, Onnx__AttributeProto, onnx__attribute_proto);

    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    APPEND(m, n, attribute, a);
    return a;
}

void onnx_set_int(onnx_model *m, onnx_node *n, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = attribute(m, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    a->has_i = 1;
    a->i = value;
}

void onnx_set_ints(onnx_model *m, onnx_node *n, const char *name, int count, const int64_t *value)
{
    Onnx__AttributeProto *a = attribute(m, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    size_t size = (size_t)count * sizeof *value;

    a->n_ints = (size_t)count;
    a->ints = arena_grow(m->memory, value, size, size);
}

void onnx_set_float(onnx_model *m, onnx_node *n, const char *name, double value)
{
    Onnx__AttributeProto *a = attribute(m, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    a->has_f = 1;
    a->f = (float)value;
}

void onnx_set_text(onnx_model *m, onnx_node *n, const char *name, const char *value)
{
    Onnx__AttributeProto *a = attribute(m, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);

    a->has_s = 1;
    a->s = (ProtobufCBinaryData){ strlen(value), (uint8_t *)value };
}

/* ---- constants ------------------------------------------------------------------------------- */

static void constant(onnx_model *m, const char *name, int type, int rank, const int64_t *extent,
                     size_t size, const void *data)
{
    Onnx__TensorProto *t = NEW(m, Onnx__TensorProto, onnx__tensor_proto);
    size_t dims = (size_t)rank * sizeof *extent;

    t->name = (char *)name;
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = (size_t)rank;
    t->dims = arena_grow(m->memory, extent, dims, dims + 1);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){ size, (uint8_t *)data };
    APPEND(m, &m->graph, initializer, t);
}

void onnx_floats(onnx_model *m, const char *name, int rank, const int64_t *extent,
                 const float *floats)
{
    size_t count = 1;

    for (int i = 0; i < rank; i++)
        count *= (size_t)extent[i];
    constant(m, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, rank, extent, count * sizeof *floats,
             floats);
}

const char *onnx_int64s(onnx_model *m, int count, const int64_t *value)
{
    const char *name = arena_format(m->memory, "constant_%d", m->made++);
    size_t size = (size_t)count * sizeof *value;

    constant(m, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, (int64_t[]){ count }, size,
             arena_grow(m->memory, value, size, size));
    return name;
}

const char *onnx_float(onnx_model *m, double value)
{
    const char *name = arena_format(m->memory, "constant_%d", m->made++);
    float *data = arena_alloc(m->memory, sizeof *data);

    *data = (float)value;
    onnx_floats(m, name, 0, NULL, data);
    return name;
}

/* ---- the model ------------------------------------------------------------------------------- */

static Onnx__ValueInfoProto *value_info(onnx_model *m, const char *name, int type, int rank,
                                        const int64_t *extent, const char *const *symbol)
{
    Onnx__ValueInfoProto *v = NEW(m, Onnx__ValueInfoProto, onnx__value_info_proto);
    Onnx__TypeProto__Tensor *tensor = NEW(m, Onnx__TypeProto__Tensor, onnx__type_proto__tensor);

    v->name = (char *)name;
    v->type = NEW(m, Onnx__TypeProto, onnx__type_proto);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = type;
    tensor->shape = NEW(m, Onnx__TensorShapeProto, onnx__tensor_shape_proto);
    for (int i = 0; i < rank; i++) {
        Onnx__TensorShapeProto__Dimension *d =
            NEW(m, Onnx__TensorShapeProto__Dimension, onnx__tensor_shape_proto__dimension);
        if (symbol[i] != NULL) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = (char *)symbol[i];
        } else {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = extent[i];
        }
        APPEND(m, tensor->shape, dim, d);
    }
    return v;
}

void onnx_input(onnx_model *m, const char *name, int type, int rank, const int64_t *extent,
                const char *const *symbol)
{
    APPEND(m, &m->graph, input, value_info(m, name, type, rank, extent, symbol));
}

void onnx_output(onnx_model *m, const char *name, int type, int rank, const int64_t *extent,
                 const char *const *symbol)
{
    APPEND(m, &m->graph, output, value_info(m, name, type, rank, extent, symbol));
}

void onnx_metadata(onnx_model *m, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e =
        NEW(m, Onnx__StringStringEntryProto, onnx__string_string_entry_proto);

    e->key = (char *)key;
    e->value = arena_string(m->memory, value);
    APPEND(m, &m->message, metadata_props, e);
}

/* A buffer of protobuf-c that writes to a file. */
typedef struct file_buffer {
    ProtobufCBuffer base;
    safe_file *file;
    byte_progress *progress;
    pons_error *err;
} file_buffer;

static void append_to_file(ProtobufCBuffer *base, size_t size, const uint8_t *data)
{
    file_buffer *b = (file_buffer *)base;

    if (b->err->status == PONS_OK)
        safe_file_write(b->file, data, size, b->err);
    byte_progress_add(b->progress, (int64_t)size);
}

pons_status onnx_write(onnx_model *m, const char *path, byte_progress *progress, pons_error *err)
{
    size_t size = onnx__model_proto__get_packed_size(&m->message);
    safe_file file;
    file_buffer buffer = { { append_to_file }, &file, progress, err };

    if (size > INT_MAX)
        return pons_fail(err, PONS_CONFIG, "the model would have %zu bytes, expected at most %d, "
                         "the bound of a protobuf message", size, INT_MAX);
    if (safe_file_open(&file, path, err) != PONS_OK)
        return err->status;
    byte_progress_begin(progress, (int64_t)size);
    onnx__model_proto__pack_to_buffer(&m->message, &buffer.base);
    byte_progress_end(progress);
    if (err->status == PONS_OK)
        return safe_file_commit(&file, err);
    safe_file_discard(&file);
    return err->status;
}
