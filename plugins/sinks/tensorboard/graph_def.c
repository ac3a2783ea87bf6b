/*
 * graph_def.c - encode the nodes of a network.
 */
#include "sinks/tensorboard/graph_def.h"

enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1, PRODUCER = 22 };
enum { NODE_NAME = 1, NODE_OPERATION = 2, NODE_INPUT = 3, NODE_ATTRIBUTE = 5 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, ATTRIBUTE_LIST = 1, LIST_SHAPE = 7 };
enum { SHAPE_DIMENSION = 2, DIMENSION_SIZE = 1 };

/* An entry of map<string, AttrValue>: a list of one TensorShapeProto. */
static void put_shape(message *node, const pons_shape *s)
{
    message shape = { 0 }, list = { 0 }, value = { 0 }, entry = { 0 };

    for (int i = 0; i < s->rank; i++) {
        message dimension = { 0 };

        message_put_integer(&dimension, DIMENSION_SIZE, (uint64_t)s->extent[i]);
        message_put(&shape, SHAPE_DIMENSION, &dimension);
        message_free(&dimension);
    }
    message_put(&list, LIST_SHAPE, &shape);
    message_put(&value, ATTRIBUTE_LIST, &list);
    message_put_text(&entry, ENTRY_KEY, "_output_shapes");
    message_put(&entry, ENTRY_VALUE, &value);
    message_put(node, NODE_ATTRIBUTE, &entry);
    message_free(&shape);
    message_free(&list);
    message_free(&value);
    message_free(&entry);
}

static void put_node(message *graph, const pons_network *network, const pons_network_node *n)
{
    message node = { 0 };

    message_put_text(&node, NODE_NAME, n->name);
    message_put_text(&node, NODE_OPERATION, n->operation);
    for (int i = 0; i < n->input_count; i++)
        message_put_text(&node, NODE_INPUT, network->node[n->input[i]].name);
    put_shape(&node, &n->shape);
    message_put(graph, GRAPH_NODE, &node);
    message_free(&node);
}

void graph_def_put(message *graph, const pons_network *network)
{
    message versions = { 0 };

    for (int i = 0; i < network->count; i++)
        put_node(graph, network, &network->node[i]);
    message_put_integer(&versions, VERSIONS_PRODUCER, PRODUCER);
    message_put(graph, GRAPH_VERSIONS, &versions);
    message_free(&versions);
}
