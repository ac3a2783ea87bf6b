/*
 * onnx_list - print an ONNX model as lines, after a check that it is one: every value is made
 * once and before it is read, and constants have the bytes of their shapes.
 *
 *   opset 17
 *   input image 1 [N,1,D,H,W]           (1: float)
 *   output logits 1 [N,2,D,H,W]
 *   node Conv 9                          (how many)
 *   weights 12345                        (elements of float constants with more than one)
 *   attribute Conv strides 2,2,2 1       (in how many nodes)
 *   metadata window.extent 32 32 32
 *
 * The second argument, a safetensors file, is optional. Each of its tensors whose name a constant
 * has must be the constant, bit by bit.
 *
 *   equal 14                             (how many there are)
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/safetensors.h"
#include "onnx.pb-c.h"

enum { NAMES_MAX = 20000 };

static const char *names[NAMES_MAX];
static int name_count;

static void fail(const char *what, const char *name)
{
    printf("wrong: %s '%s'\n", what, name);
    exit(1);
}

static int is_named(const char *name)
{
    for (int i = 0; i < name_count; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static void add_name(const char *name)
{
    if (is_named(name))
        fail("made twice", name);
    if (name_count == NAMES_MAX)
        fail("too many names at", name);
    names[name_count++] = name;
}

static void print_values(const char *what, size_t count, Onnx__ValueInfoProto **value)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__TypeProto__Tensor *t = value[i]->type->tensor_type;
        printf("%s %s %d [", what, value[i]->name, t->elem_type);
        for (size_t a = 0; a < t->shape->n_dim; a++) {
            const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[a];
            printf("%s", a > 0 ? "," : "");
            if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
                printf("%s", d->dim_param);
            else
                printf("%lld", (long long)d->dim_value);
        }
        printf("]\n");
    }
}

static void print_weights(const Onnx__GraphProto *g)
{
    long long elements = 0;

    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        long long count = 1;
        int size = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ? 8 : 4;
        for (size_t a = 0; a < t->n_dims; a++)
            count *= t->dims[a];
        if (t->raw_data.len != (size_t)(count * size))
            fail("bytes of the constant", t->name);
        if (size == 4 && count > 1)
            elements += count;
        add_name(t->name);
    }
    printf("weights %lld\n", elements);
}

/* Count the operators after a check of each node's names. */
static void print_nodes(const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            if (g->node[i]->input[k][0] != '\0' && !is_named(g->node[i]->input[k]))
                fail("read before it is made", g->node[i]->input[k]);
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            add_name(g->node[i]->output[k]);
    }
    for (size_t i = 0; i < g->n_node; i++) {
        int first = 1, count = 0;
        for (size_t k = 0; k < g->n_node; k++) {
            int same = strcmp(g->node[i]->op_type, g->node[k]->op_type) == 0;
            first = first && !(same && k < i);
            count += same;
        }
        if (first)
            printf("node %s %d\n", g->node[i]->op_type, count);
    }
}

/* ---- attributes ------------------------------------------------------------------------------ */

enum { LINES_MAX = 4000, LINE_SIZE = 200 };

static char lines[LINES_MAX][LINE_SIZE];
static int counts[LINES_MAX], line_count;

static void count_line(const char *line)
{
    int i = 0;

    while (i < line_count && strcmp(lines[i], line) != 0)
        i++;
    if (i == LINES_MAX)
        fail("too many attributes at", line);
    if (i == line_count)
        snprintf(lines[line_count++], LINE_SIZE, "%s", line);
    counts[i]++;
}

static void add(char *line, const char *format, ...)
{
    size_t used = strlen(line);
    va_list list;

    va_start(list, format);
    vsnprintf(line + used, LINE_SIZE - used, format, list);
    va_end(list);
}

static void print_attributes(const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_attribute; k++) {
            const Onnx__AttributeProto *a = g->node[i]->attribute[k];
            char line[LINE_SIZE] = "";
            add(line, "%s %s ", g->node[i]->op_type, a->name);
            if (a->has_i)
                add(line, "%lld", (long long)a->i);
            if (a->has_f)
                add(line, "%g", (double)a->f);
            if (a->has_s)
                add(line, "%.*s", (int)a->s.len, (const char *)a->s.data);
            for (size_t n = 0; n < a->n_ints; n++)
                add(line, "%s%lld", n > 0 ? "," : "", (long long)a->ints[n]);
            count_line(line);
        }
    for (int i = 0; i < line_count; i++)
        printf("attribute %s %d\n", lines[i], counts[i]);
}

/* ---- weights --------------------------------------------------------------------------------- */

static void compare(const Onnx__GraphProto *g, const char *path)
{
    pons_error err = PONS_ERROR_INIT;
    safetensors *file;
    int equal = 0;

    if (safetensors_open(path, &file, &err) != PONS_OK)
        fail(err.text, path);
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        const safetensor *found = safetensors_find(file, t->name);
        if (found == NULL)
            continue;
        if (found->size != t->raw_data.len || memcmp(found->data, t->raw_data.data, found->size) != 0)
            fail("not the file's tensor:", t->name);
        equal++;
    }
    printf("equal %d\n", equal);
    safetensors_close(file);
}

static void print_model(const Onnx__ModelProto *m)
{
    const Onnx__GraphProto *g = m->graph;

    printf("opset %lld\n", (long long)m->opset_import[0]->version);
    print_values("input", g->n_input, g->input);
    print_values("output", g->n_output, g->output);
    print_weights(g);
    for (size_t i = 0; i < g->n_input; i++)
        add_name(g->input[i]->name);
    print_nodes(g);
    print_attributes(g);
    for (size_t i = 0; i < g->n_output; i++)
        if (!is_named(g->output[i]->name))
            fail("output that no node makes", g->output[i]->name);
    for (size_t i = 0; i < m->n_metadata_props; i++)
        printf("metadata %s %s\n", m->metadata_props[i]->key, m->metadata_props[i]->value);
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 || argc == 3 ? fopen(argv[1], "rb") : NULL;
    Onnx__ModelProto *m;
    uint8_t *data;
    long size;

    if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 1) {
        fprintf(stderr, "usage: onnx_list MODEL.onnx [WEIGHTS.safetensors]\n");
        return 2;
    }
    rewind(f);
    data = malloc((size_t)size);
    if (data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size)
        return 2;
    m = onnx__model_proto__unpack(NULL, (size_t)size, data);
    if (m == NULL)
        fail("not a model:", argv[1]);
    print_model(m);
    if (argc == 3)
        compare(m->graph, argv[2]);
    onnx__model_proto__free_unpacked(m, NULL);
    free(data);
    fclose(f);
    return 0;
}
