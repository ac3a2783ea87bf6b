/*
 * codegen_map.c - the kernels of a map: its steps, its passes, and the passes without reductions.
 */
#include "cuda/codegen/codegen_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

/* A thread has 128 registers. Arrays may take these; addresses and counters need the others. */
enum { ARRAY_REGISTERS = 112 };

/* ---- steps ----------------------------------------------------------------------------------- */

static int operand_count(const pons_map *m) { return m->load_count + m->store_count; }

static const pons_operand *operand_at(const pons_map *m, int i)
{
    return i < m->load_count ? &m->load[i] : &m->store[i - m->load_count].to;
}

/*
 * True if every operand that varies along the last axis can be accessed in whole pieces of 'width'.
 */
static bool width_fits(const pons_map *m, int width)
{
    int last = m->axis_count - 1;

    if (m->extent[last] % width != 0)
        return false;
    for (int i = 0; i < operand_count(m); i++) {
        const pons_operand *o = operand_at(m, i);
        if (o->stride[last] != 1)
            continue;
        if (o->offset % width != 0)
            return false;
        for (int a = 0; a < last; a++)
            if (m->extent[a] > 1 && o->stride[a] % width != 0)
                return false;
    }
    return true;
}

/*
 * Whether a thread has registers for arrays of 'width': the loads along the last axis, two sums of
 * each reduction that keeps it, and the stores along it. Two 16-bit elements share a register.
 */
static bool registers_fit(const pons_map *m, int width)
{
    int last = m->axis_count - 1, arrays = 0, stored = 0;

    for (int i = 0; i < m->load_count; i++)
        arrays += m->load[i].stride[last] == 1;
    for (int i = 0; i < m->reduction_count; i++)
        arrays += m->reduction[i].to[0].stride[last] != 0 ? 2 : 0;
    for (int i = 0; i < m->store_count; i++)
        stored += m->store[i].to.stride[last] == 1;
    return arrays * width + stored * width / 2 <= ARRAY_REGISTERS;
}

static int choose_width(const pons_map *m)
{
    bool halves = false;

    if (m->segment_count > 0)
        return 1;
    if (m->channels > 0)
        return m->channels;
    for (int i = 0; i < operand_count(m); i++) {
        pons_type type = operand_at(m, i)->type;
        halves = halves || type == PONS_BF16 || type == PONS_F16;
    }
    if (halves && width_fits(m, 8) && registers_fit(m, 8))
        return 8;
    return width_fits(m, 4) ? 4 : 1;
}

/* The largest index that an operand reaches. */
static int64_t largest_index(const pons_map *m, const pons_operand *o)
{
    int64_t most = o->offset;

    for (int a = 0; a < m->axis_count; a++)
        most += (m->extent[a] - 1) * llabs(o->stride[a]);
    return most;
}

static void measure_plan(codegen_map_plan *p)
{
    const pons_map *m = p->map;
    int64_t points = 1;

    p->axes = m->channels > 0 ? m->axis_count - 1 : m->axis_count;
    p->steps = 1;
    for (int a = 0; a < p->axes; a++) {
        p->extent[a] = m->extent[a];
        if (a == m->axis_count - 1)
            p->extent[a] /= p->width;
        p->steps *= p->extent[a];
    }
    for (int a = 0; a < m->axis_count; a++)
        points *= m->extent[a];
    p->most = points;
    for (int i = 0; i < operand_count(m); i++)
        if (largest_index(m, operand_at(m, i)) > p->most)
            p->most = largest_index(m, operand_at(m, i));
    for (int i = 0; i < m->reduction_count; i++)
        if (largest_index(m, &m->reduction[i].to[0]) > p->most)
            p->most = largest_index(m, &m->reduction[i].to[0]);
}

static bool is_random(const pons_map *m)
{
    for (int i = 0; i < m->value_count; i++)
        if (m->value[i].operation == PONS_VALUE_UNIFORM
            || m->value[i].operation == PONS_VALUE_NORMAL)
            return true;
    return false;
}

/* ---- ragged ---------------------------------------------------------------------------------- */

/*
 * Tables of pieces of at most RAGGED_PIECE elements, each of one segment, and of the ends of
 * segments.
 */
static bool ragged_tables(codegen_map_plan *p)
{
    const pons_map *m = p->map;
    int *segment, *first, *count, *end, *piece;
    int64_t n = 0;

    for (int64_t s = 0; s < m->segment_count; s++) {
        if (m->segment_start[s] + m->segment_length[s] > INT32_MAX / 2)
            return false;
        p->piece_count += ceil_div_i64(m->segment_length[s], RAGGED_PIECE);
    }
    segment = codegen_table(p->s, "int", p->piece_count, &p->table_segment);
    first = codegen_table(p->s, "int", p->piece_count, &p->table_first);
    count = codegen_table(p->s, "int", p->piece_count, &p->table_count);
    end = codegen_table(p->s, "int", m->segment_count, &p->table_end);
    piece = codegen_table(p->s, "int", m->segment_count + 1, &p->table_piece);
    if (segment == NULL || first == NULL || count == NULL || end == NULL || piece == NULL)
        return false;
    for (int64_t s = 0; s < m->segment_count; s++) {
        int64_t length = m->segment_length[s];
        end[s] = length > 0 ? (int)(m->segment_start[s] + length - 1) : -1;
        piece[s] = (int)n;
        for (int64_t e = 0; e < length; e += RAGGED_PIECE, n++) {
            segment[n] = (int)s;
            first[n] = (int)(m->segment_start[s] + e);
            count[n] = (int)min_i64(length - e, RAGGED_PIECE);
        }
    }
    piece[m->segment_count] = (int)n;
    return true;
}

/*
 * The stores per segment, or of a single element, computed at the last element, after all elements.
 */
static void write_segments(const codegen_map_plan *p, const map_pass *pass)
{
    bool each = pass->stores == PONS_INDEX_SEGMENT;
    int64_t count = p->map->segment_count;
    text *t = codegen_begin(p->s, each ? codegen_blocks(count) : 1);

    codegen_point(t, "number", each ? count : 1, count);
    text_add(t, "    const int segment = %s;\n", each ? "number" : "");
    if (!each) {
        t->length -= 2;
        text_add(t, "%lld;\n", (long long)count - 1);
    }
    text_add(t, "    const int element = table%d[segment];\n    if (element < 0)\n"
             "        return;\n", p->table_end);
    codegen_values(p, pass, t);
    codegen_end(p->s);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void need_value(const pons_map *m, int value, bool *needed)
{
    const pons_value *v = &m->value[value];

    if (needed[value])
        return;
    needed[value] = true;
    for (int i = 0; i < v->argument_count; i++)
        need_value(m, v->argument[i], needed);
}

static void find_needed(const codegen_map_plan *p, map_pass *pass)
{
    const pons_map *m = p->map;
    bool reducing = !pass->storing || pass->stores == PONS_INDEX_ELEMENT;

    memset(pass->needed, 0, (size_t)m->value_count * sizeof *pass->needed);
    for (int i = 0; i < m->store_count && pass->storing; i++)
        if (!p->ragged || m->store[i].to.index == pass->stores)
            need_value(m, m->store[i].value, pass->needed);
    for (int i = 0; i < m->reduction_count && reducing; i++)
        if (codegen_kept(p, &m->reduction[i]) == pass->kept)
            need_value(m, m->reduction[i].value, pass->needed);
}

static bool any_stored(const pons_map *m, pons_index_space along)
{
    for (int i = 0; i < m->store_count; i++)
        if (m->store[i].to.index == along)
            return true;
    return false;
}

static void write_points(const codegen_map_plan *p, const map_pass *pass)
{
    text *t = codegen_begin(p->s, codegen_blocks(p->steps));

    codegen_point(t, "point", p->steps, p->most);
    codegen_coordinates(t, "point", "i", p->axes, p->extent, p->most);
    codegen_values(p, pass, t);
    codegen_end(p->s);
}

static void write_elements(const codegen_map_plan *p, const map_pass *pass)
{
    text *t = codegen_begin(p->s, p->piece_count);

    text_add(t, "    const int segment = table%d[blockIdx.x], first = table%d[blockIdx.x];\n"
             "    const int count = table%d[blockIdx.x];\n"
             "    for (int e = (int)threadIdx.x; e < count; e += %d) {\n"
             "    const int element = first + e;\n", p->table_segment, p->table_first,
             p->table_count, CUDA_THREADS);
    codegen_values(p, pass, t);
    text_add(t, "    }\n");
    codegen_end(p->s);
}

/* The passes with reductions, one for each set of kept axes. The last one stores. */
static void write_passes(codegen_map_plan *p, bool *needed)
{
    const pons_map *m = p->map;
    uint64_t *kept = calloc((size_t)m->reduction_count + 1, sizeof *kept);
    int count = 0;

    if (kept == NULL) {
        p->s->failed = true;
        return;
    }
    for (int i = 0; i < m->reduction_count; i++) {
        int k = 0;
        kept[count] = codegen_kept(p, &m->reduction[i]);
        while (kept[k] != kept[count])
            k++;
        count += k == count;
    }
    for (int i = 0; i < count; i++) {
        map_pass pass = { .kept = kept[i], .storing = i == count - 1,
                          .stores = PONS_INDEX_ELEMENT, .needed = needed };
        find_needed(p, &pass);
        codegen_reduce(p, &pass);
    }
    if (count == 0 && (!p->ragged || any_stored(m, PONS_INDEX_ELEMENT))) {
        map_pass pass = { .storing = true, .stores = PONS_INDEX_ELEMENT, .needed = needed };
        find_needed(p, &pass);
        if (p->ragged)
            write_elements(p, &pass);
        else
            write_points(p, &pass);
    }
    free(kept);
}

static void write_map(codegen_map_plan *p, bool *needed)
{
    static const pons_index_space late[] = { PONS_INDEX_SEGMENT, PONS_INDEX_SCALAR };

    write_passes(p, needed);
    for (int i = 0; i < 2 && p->ragged; i++) {
        map_pass pass = { .storing = true, .stores = late[i], .needed = needed };
        if (!any_stored(p->map, late[i]))
            continue;
        find_needed(p, &pass);
        write_segments(p, &pass);
    }
}

bool codegen_map(codegen *s)
{
    pons_map map = *(const pons_map *)s->request->attributes;
    codegen_map_plan p = { .s = s, .map = &map, .ragged = map.segment_count > 0 };
    bool *needed = calloc((size_t)map.value_count + 1, sizeof *needed);

    if (map.axis_count == 0) {
        map.axis_count = 1;
        map.extent[0] = 1;
    }
    p.partial_at = calloc((size_t)map.reduction_count + 1, sizeof *p.partial_at);
    s->failed = needed == NULL || p.partial_at == NULL;
    if (!s->failed && 2 * map.reduction_count + 3 <= CUDA_LAUNCHES
        && (!p.ragged || ragged_tables(&p))) {
        s->random = is_random(&map);
        p.width = choose_width(&map);
        measure_plan(&p);
        write_map(&p, needed);
    }
    free(needed);
    free(p.partial_at);
    return s->launch_count > 0;
}
