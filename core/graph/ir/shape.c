/*
 * shape.c - count, compare, broadcast and print shapes; sizes of types.
 */
#include "graph/ir/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "graph/ir/ir_internal.h"

#define ELEMENT_LIMIT ((int64_t)1 << 40)

pons_shape pons_shape_make(int rank, const int64_t *extent)
{
    pons_shape s = { .rank = rank };

    for (int i = 0; i < rank && i < PONS_RANK_MAX; i++)
        s.extent[i] = extent[i];
    return s;
}

int64_t shape_count(pons_shape s)
{
    int64_t count = 1;

    for (int i = 0; i < s.rank; i++)
        count *= s.extent[i];
    return count;
}

bool shape_equal(pons_shape a, pons_shape b)
{
    return a.rank == b.rank && memcmp(a.extent, b.extent, sizeof(int64_t) * (size_t)a.rank) == 0;
}

bool shape_broadcast(pons_shape a, pons_shape b, pons_shape *both)
{
    pons_shape s = { .rank = max_int(a.rank, b.rank) };

    for (int i = 1; i <= s.rank; i++) {
        int64_t m = i <= a.rank ? a.extent[a.rank - i] : 1;
        int64_t n = i <= b.rank ? b.extent[b.rank - i] : 1;

        if (m != n && m != 1 && n != 1)
            return false;
        s.extent[s.rank - i] = m == 1 ? n : m;
    }
    *both = s;
    return true;
}

size_t type_size(pons_type type)
{
    static const size_t size[] = { [PONS_F32] = 4, [PONS_BF16] = 2, [PONS_F16] = 2,
                                   [PONS_U8] = 1,  [PONS_I32] = 4,  [PONS_F64] = 8 };

    return size[type];
}

const char *shape_text(pons_shape s, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");

    for (int i = 0; i < s.rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)s.extent[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

bool shape_valid(pons_graph *g, int kind, pons_shape s)
{
    int64_t count = 1;

    if (s.rank < 0 || s.rank > PONS_RANK_MAX) {
        node_refuse(g, kind, "a tensor has at most %d axes, found %d", PONS_RANK_MAX, s.rank);
        return false;
    }
    for (int i = 0; i < s.rank; i++) {
        char text[160];

        if (s.extent[i] < 1) {
            node_refuse(g, kind, "impossible shape %s", shape_text(s, text, sizeof text));
            return false;
        }
        if (s.extent[i] > ELEMENT_LIMIT / count) {
            pons_graph_fail(g, PONS_DEVICE, "out of memory for '%s': a tensor of %s has more than "
                            "2^40 elements", node_kinds[kind].name,
                            shape_text(s, text, sizeof text));
            return false;
        }
        count *= s.extent[i];
    }
    return true;
}

unsigned axes_all(int rank)
{
    return (1u << rank) - 1;
}

bool axes_valid(pons_graph *g, int kind, const pons_node *x, unsigned axes)
{
    char text[160];

    if ((axes & ~axes_all(x->shape.rank)) == 0)
        return true;
    node_refuse(g, kind, "axes 0x%x of a tensor %s", axes, shape_text(x->shape, text, sizeof text));
    return false;
}
