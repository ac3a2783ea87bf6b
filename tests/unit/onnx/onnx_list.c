/*
 * onnx_list - print an ONNX model as lines, after a check that it is one: every value is made
 * once and before it is read, and constants have the bytes of their shapes.
 *
 *   opset 17
 *   input image 1 [N,1,D,H,W]           (1: float)
 *   output logits 1 [N,2,D,H,W]
 *   node Conv 9                          (how many)
 *   weights 12345                        (elements of float constants with more than one)
 *   metadata window.extent 32 32 32
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < g->n_output; i++)
        if (!is_named(g->output[i]->name))
            fail("output that no node makes", g->output[i]->name);
    for (size_t i = 0; i < m->n_metadata_props; i++)
        printf("metadata %s %s\n", m->metadata_props[i]->key, m->metadata_props[i]->value);
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    Onnx__ModelProto *m;
    uint8_t *data;
    long size;

    if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 1) {
        fprintf(stderr, "usage: onnx_list MODEL.onnx\n");
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
    onnx__model_proto__free_unpacked(m, NULL);
    free(data);
    fclose(f);
    return 0;
}
