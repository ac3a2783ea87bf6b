/*
 * map_space.c - the tiles of a map's index space, and operands relative to tiles.
 */
#include "cpu/map/map_internal.h"

#include <stdlib.h>

#include "base/integer.h"

static int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }

/* Number of operands, for decisions that must hold for all of them. */
static int operand_count(const pons_map *m)
{
    return m->load_count + m->store_count + 2 * m->reduction_count;
}

static const pons_operand *operand_at(const pons_map *m, int i)
{
    if (i < m->load_count)
        return &m->load[i];
    i -= m->load_count;
    if (i < m->store_count)
        return &m->store[i].to;
    i -= m->store_count;
    return &m->reduction[i / 2].to[i % 2];
}

/* True unless the operand is to[1] of a reduction other than moments. */
static bool operand_used(const pons_map *m, int i)
{
    i -= m->load_count + m->store_count;
    return i < 0 || i % 2 == 0 || m->reduction[i / 2].kind == PONS_REDUCE_MOMENTS;
}

/* The last kept axis of grouped reductions, which may not be merged with others. */
static unsigned fixed_axes(const pons_map *m, int axes)
{
    unsigned fixed = 0;

    for (int i = 0; i < m->reduction_count; i++) {
        const pons_reduction *r = &m->reduction[i];
        int last = m->axis_count - 1;
        while (last > 0 && r->to[0].stride[last] == 0)
            last--;
        if (r->groups > 0 && last < axes)
            fixed |= 1u << last;
    }
    return fixed;
}

static bool axes_merge(const pons_map *m, int outer, int inner)
{
    for (int i = 0; i < operand_count(m); i++) {
        const int64_t *s = operand_at(m, i)->stride;
        if (operand_used(m, i) && s[outer] != s[inner] * m->extent[inner])
            return false;
    }
    return true;
}

/* Set plan->extent. place[axis] is the collapsed axis of each original axis of points, or -1. */
static void collapse_axes(map_plan *plan, int *place, int axes)
{
    const pons_map *m = plan->map;
    unsigned fixed = fixed_axes(m, axes);
    int last = -1;

    plan->axes = 0;
    for (int a = 0; a < axes; a++) {
        place[a] = -1;
        if (m->extent[a] == 1 && !(fixed >> a & 1))
            continue;
        if (last >= 0 && !(fixed >> a & 1) && !(fixed >> last & 1) && axes_merge(m, last, a)) {
            plan->extent[plan->axes - 1] *= m->extent[a];
            place[last] = -1;
        } else {
            plan->extent[plan->axes++] = m->extent[a];
        }
        place[a] = plan->axes - 1;
        last = a;
    }
    if (plan->axes == 0)
        plan->extent[plan->axes++] = 1;
}

/* True if every offset within 'count' steps along an axis fits a table entry. */
static bool distance_fits(const map_plan *plan, const int *place, int axes, int axis, int64_t count)
{
    const pons_map *m = plan->map;

    for (int i = 0; i < operand_count(m); i++)
        for (int a = 0; a < axes; a++)
            if (place[a] == axis && count > 1 && llabs(operand_at(m, i)->stride[a]) >
                    INT32_MAX / 8 / (count - 1))
                return false;
    return true;
}

/*
 * The size of equal pieces, each a multiple of 'unit' elements of the cut axis; 0 if there is none.
 */
static int64_t even_pieces(int64_t extent, int64_t box, int unit)
{
    int64_t pieces = ceil_div_i64(extent, box);
    int64_t even = round_up_i64(ceil_div_i64(extent, pieces), unit);

    return even <= box ? even : box >= unit ? box / unit * unit : 0;
}

/* Least common multiple of 'lanes' and the points inside the cut axis. */
static int64_t common_multiple(const map_plan *plan, int lanes)
{
    return (int64_t)plan->inner / gcd(plan->inner, lanes) * lanes;
}

static void find_cycle(map_plan *plan)
{
    int64_t cycle = common_multiple(plan, MAP_STRIP);

    if (cycle > MAP_CYCLE)
        cycle = common_multiple(plan, MAP_ROW);
    if (cycle > MAP_CYCLE && cycle > plan->row)
        return;
    plan->cycle = plan->cycle_lanes = (int)cycle;
    if (cycle % MAP_STRIP != 0)
        plan->cycle_lanes = ((int)cycle + 2 * MAP_STRIP - MAP_ROW - 1) & -MAP_STRIP;
}

static int period_of(const map_plan *plan)
{
    int64_t period = common_multiple(plan, MAP_STRIP);

    if (period > 2 * MAP_TILE_LANES
        || (plan->points % period != 0 && plan->end_points != plan->points))
        return 0;
    return (int)period;
}

/* Choose the axes that a tile contains whole, and the range of the axis before them. */
static void cut_tiles(map_plan *plan, const int *place, int axes)
{
    int room = MAP_TILE_LANES, whole = 1;
    int64_t box, extent, even;

    plan->cut = plan->axes - 1;
    while (plan->cut > 0 && whole * plan->extent[plan->cut] <= room
           && distance_fits(plan, place, axes, plan->cut, plan->extent[plan->cut]))
        whole *= (int)plan->extent[plan->cut--];
    extent = plan->extent[plan->cut];
    box = min_i64(room / whole, extent);
    while (box > 1 && !distance_fits(plan, place, axes, plan->cut, box))
        box /= 2;
    if (box < extent) {
        int strips = MAP_STRIP / gcd(whole, MAP_STRIP);

        even = even_pieces(extent, box, strips);
        if (even == 0 && strips * whole <= 2 * room && strips <= extent)
            even = strips; /* a larger tile is cheaper than a tile that ends within a unit       */
        even = even > 0 ? even : even_pieces(extent, box, MAP_ROW / gcd(whole, MAP_ROW));
        box = even > 0 ? even : box;
    }
    plan->box = box;
    plan->inner = whole;
    plan->points = (int)box * whole;
    plan->end_points = extent % box == 0 ? plan->points : (int)(extent % box) * whole;
    plan->row = (plan->points + MAP_STRIP - 1) & -MAP_STRIP;
    plan->period = period_of(plan);
    find_cycle(plan);
}

static bool cut_segments(map_plan *plan)
{
    const pons_map *m = plan->map;
    int64_t t = 0;

    plan->rows = 1;
    plan->axes = 1;
    plan->inner = 1;
    plan->box = plan->points = plan->end_points = plan->row = MAP_TILE_LANES;
    plan->period = plan->cycle = plan->cycle_lanes = MAP_STRIP;
    for (int64_t s = 0; s < m->segment_count; s++)
        plan->tile_count += ceil_div_i64(m->segment_length[s], MAP_TILE_LANES);
    plan->tile_segment = map_allocate(plan, (size_t)plan->tile_count + 1, sizeof(int64_t));
    plan->tile_first = map_allocate(plan, (size_t)plan->tile_count + 1, sizeof(int64_t));
    plan->tile_points = map_allocate(plan, (size_t)plan->tile_count + 1, sizeof(int32_t));
    if (plan->tile_segment == NULL || plan->tile_first == NULL || plan->tile_points == NULL)
        return false;
    for (int64_t s = 0; s < m->segment_count; s++)
        for (int64_t e = 0; e < m->segment_length[s]; e += MAP_TILE_LANES, t++) {
            int64_t left = m->segment_length[s] - e;
            plan->tile_segment[t] = s;
            plan->tile_first[t] = m->segment_start[s] + e;
            plan->tile_points[t] = (int32_t)min_i64(left, MAP_TILE_LANES);
        }
    return true;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Offset of each lane of one channel from the tile's first element. */
static bool table_make(map_plan *plan, map_access *to)
{
    to->table = map_allocate(plan, (size_t)plan->row, sizeof *to->table);
    if (to->table == NULL)
        return false;
    for (int p = 0; p < plan->points; p++) {
        int64_t at = 0, rest = p;
        for (int a = plan->axes - 1; a > plan->cut; a--) {
            at += rest % plan->extent[a] * to->stride[a];
            rest /= plan->extent[a];
        }
        to->table[p] = (int32_t)(at + rest * to->stride[plan->cut]);
    }
    return true;
}

/* Count of consecutive lanes with the same element, if tiles hold whole repetitions; else 1. */
static int repeat_of(const map_plan *plan, const int32_t *t)
{
    int n = 1;

    while (n < plan->points && t[n] == 0)
        n++;
    if (n == 1 || plan->points % n != 0 || plan->end_points % n != 0)
        return 1;
    for (int p = 0; p < plan->points; p++)
        if (t[p] != p / n)
            return 1;
    return n;
}

static void find_pattern(const map_plan *plan, map_access *to)
{
    const int32_t *t = to->table;
    bool one = true, dense = true, interleaved = to->rows > 1 && to->channel == 1, groups = true;

    to->periodic = plan->cycle > 0;
    for (int p = 0; p < plan->points; p++) {
        one = one && t[p] == 0;
        dense = dense && t[p] == p;
        interleaved = interleaved && t[p] == p * to->rows;
        groups = groups && t[p] == t[p & -MAP_ROW] + p % MAP_ROW;
        to->periodic = to->periodic && t[p] == t[p % plan->cycle];
    }
    to->repeat = repeat_of(plan, t);
    to->pattern = one ? MAP_ONE : dense ? MAP_DENSE : interleaved ? MAP_INTERLEAVED
                : groups ? MAP_GROUPS : to->repeat > 1 ? MAP_REPEAT : MAP_TABLE;
}

bool map_access_make(map_plan *plan, const pons_operand *from, bool per_channel, map_access *to)
{
    const pons_map *m = plan->map;
    int axes = m->channels > 0 ? m->axis_count - 1 : m->axis_count, place[PONS_MAP_AXES];

    *to = (map_access){ .tensor = from->tensor, .type = from->type, .index = from->index,
                        .offset = from->offset, .rows = 1 };
    if (m->segment_count > 0) {
        to->pattern = from->index == PONS_INDEX_ELEMENT ? MAP_DENSE : MAP_ONE;
        return true;
    }
    collapse_axes(plan, place, axes);
    for (int a = 0; a < axes; a++)
        if (place[a] >= 0 && from->index == PONS_INDEX_SPACE)
            to->stride[place[a]] = from->stride[a];
    if (m->channels > 0 && per_channel && from->index == PONS_INDEX_SPACE)
        to->channel = from->stride[axes];
    to->rows = to->channel != 0 ? plan->rows : 1;
    for (int a = 0; a <= plan->cut; a++)
        to->outer[a] = to->stride[a] * (a == plan->cut ? plan->box : 1);
    if (!table_make(plan, to))
        return false;
    find_pattern(plan, to);
    return true;
}

bool map_space_make(map_plan *plan)
{
    const pons_map *m = plan->map;
    int axes = m->channels > 0 ? m->axis_count - 1 : m->axis_count, place[PONS_MAP_AXES];
    int64_t points;

    if (m->segment_count > 0)
        return cut_segments(plan);
    plan->rows = m->channels > 0 ? m->channels : 1;
    plan->fixed = fixed_axes(m, axes);
    collapse_axes(plan, place, axes);
    cut_tiles(plan, place, axes);
    points = plan->inner;
    for (int a = plan->cut; a >= 0; a--) {
        plan->outer_points[a] = a == plan->cut ? points * plan->box : points;
        points *= plan->extent[a];
        plan->outer_extent[a] = a == plan->cut ? ceil_div_i64(plan->extent[a], plan->box)
                                               : plan->extent[a];
    }
    return true;
}

int64_t map_access_first(const map_access *access, const map_tile *tile)
{
    int64_t first = access->offset;

    if (access->index == PONS_INDEX_ELEMENT)
        return first + tile->first;
    if (access->index == PONS_INDEX_SEGMENT)
        return first + tile->segment;
    for (int a = 0; a < PONS_MAP_AXES && access->index == PONS_INDEX_SPACE; a++)
        first += tile->at[a] * access->outer[a];
    return first;
}

/* First point and extent of a tile, from its position on the outer axes. */
static void tile_measure(const map_plan *plan, map_tile *tile)
{
    tile->first = 0;
    for (int a = 0; a <= plan->cut; a++)
        tile->first += tile->at[a] * plan->outer_points[a];
    tile->end = plan->end_points < plan->points
             && tile->at[plan->cut] == plan->outer_extent[plan->cut] - 1;
    tile->points = tile->end ? plan->end_points : plan->points;
}

void map_tile_find(const map_plan *plan, const map_pass *pass, int64_t group, int64_t member,
                   map_tile *tile)
{
    *tile = (map_tile){ .points = plan->points };
    if (plan->map->segment_count > 0 && pass->storing && pass->stores != PONS_INDEX_ELEMENT) {
        /* One element for each segment, or one for all: the tile is the last element. */
        const pons_map *m = plan->map;
        tile->segment = pass->stores == PONS_INDEX_SEGMENT ? member : m->segment_count - 1;
        tile->first = m->segment_start[tile->segment] + m->segment_length[tile->segment] - 1;
        tile->points = 1;
        return;
    }
    if (plan->map->segment_count > 0) {
        tile->segment = plan->tile_segment[member];
        tile->first = plan->tile_first[member];
        tile->points = plan->tile_points[member];
        return;
    }
    for (int i = pass->kept_axes - 1; i >= 0; i--) {
        int a = pass->kept_axis[i];
        tile->at[a] = group % plan->outer_extent[a];
        group /= plan->outer_extent[a];
    }
    for (int i = pass->reduced_axes - 1; i >= 0; i--) {
        int a = pass->reduced_axis[i];
        tile->at[a] = member % plan->outer_extent[a];
        member /= plan->outer_extent[a];
    }
    tile_measure(plan, tile);
}

void map_tile_next(const map_plan *plan, const map_pass *pass, int64_t member, map_tile *tile)
{
    if (plan->map->segment_count > 0) {
        map_tile_find(plan, pass, 0, member, tile);
        return;
    }
    for (int i = pass->reduced_axes - 1; i >= 0; i--) {
        int a = pass->reduced_axis[i];
        if (++tile->at[a] < plan->outer_extent[a])
            break;
        tile->at[a] = 0;
    }
    tile_measure(plan, tile);
}
