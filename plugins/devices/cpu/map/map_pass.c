/*
 * map_pass.c - the passes of a map: the reductions of each pass, and the blocks of its tiles.
 */
#include "cpu/map/map_internal.h"

#include "base/integer.h"

/* Bits of the outer axes that a reduction keeps; ragged: 1 for one result a segment. */
static unsigned kept_of(const map_plan *plan, const map_reduce *r)
{
    unsigned kept = 0;

    if (plan->map->segment_count > 0)
        return r->to[0].index == PONS_INDEX_SEGMENT;
    for (int a = 0; a <= plan->cut; a++)
        if (r->to[0].stride[a] != 0 && plan->outer_extent[a] > 1)
            kept |= 1u << a;
    return kept;
}

static bool segment_blocks(map_plan *plan, map_pass *p)
{
    int64_t t = 0, b = 0, room = plan->tile_count + 1;

    p->member_count = plan->tile_count;
    p->group_count = p->by_segment ? plan->map->segment_count : 1;
    p->blocks_per_group = 0;
    p->block_group = map_allocate(plan, (size_t)room, sizeof(int64_t));
    p->block_first = map_allocate(plan, (size_t)room, sizeof(int64_t));
    p->block_size = map_allocate(plan, (size_t)room, sizeof(int64_t));
    p->group_block = map_allocate(plan, (size_t)p->group_count + 1, sizeof(int64_t));
    if (p->block_group == NULL || p->block_first == NULL || p->block_size == NULL
        || p->group_block == NULL)
        return false;
    for (int64_t g = 0; g < p->group_count; g++) {
        int64_t end = t;
        p->group_block[g] = b;
        while (end < plan->tile_count && (!p->by_segment || plan->tile_segment[end] == g))
            end++;
        for (; t < end; t += p->block_size[b++]) {
            p->block_group[b] = g;
            p->block_first[b] = t;
            p->block_size[b] = min_i64(end - t, p->block_tiles);
        }
    }
    p->group_block[p->group_count] = p->block_count = b;
    return true;
}

static bool pass_blocks(map_plan *plan, map_pass *p, unsigned kept)
{
    p->block_tiles = p->reduce_count > 0 ? MAP_BLOCK_TILES : MAP_CHUNK_TILES;
    p->by_segment = kept != 0;
    if (plan->map->segment_count > 0) {
        for (int i = 0; i < p->reduce_count; i++)
            if (p->reduce[i]->kind == PONS_REDUCE_MOMENTS)
                p->block_tiles = 1; /* tiles of different lengths are merged one by one */
        return segment_blocks(plan, p);
    }
    p->group_count = p->member_count = 1;
    for (int a = 0; a <= plan->cut; a++)
        if (kept >> a & 1) {
            p->kept_axis[p->kept_axes++] = a;
            p->group_count *= plan->outer_extent[a];
        } else {
            p->reduced_axis[p->reduced_axes++] = a;
            p->member_count *= plan->outer_extent[a];
        }
    p->blocks_per_group = ceil_div_i64(p->member_count, p->block_tiles);
    p->block_count = p->group_count * p->blocks_per_group;
    return true;
}

bool map_pass_stores(const map_plan *plan, const map_pass *pass, const pons_store *store)
{
    return pass->storing && (plan->map->segment_count == 0 || store->to.index == pass->stores);
}

static bool pass_make(map_plan *plan, map_pass *p, unsigned kept)
{
    p->reduce = map_allocate(plan, (size_t)plan->map->reduction_count, sizeof *p->reduce);
    if (p->reduce == NULL)
        return false;
    for (int i = 0; i < plan->map->reduction_count; i++)
        if (kept_of(plan, &plan->reduce[i]) == kept)
            p->reduce[p->reduce_count++] = &plan->reduce[i];
    return pass_blocks(plan, p, kept) && bytecode_make(plan, p);
}

/*
 * Ragged form: a store per segment, or of a single element, may overwrite memory that other tiles
 * still read. It has a pass of its own, after them.
 */
static bool segment_stores(map_plan *plan)
{
    static const pons_index_space along[] = { PONS_INDEX_SEGMENT, PONS_INDEX_SCALAR };

    for (int k = 0; k < 2 && plan->map->segment_count > 0; k++) {
        map_pass *p = &plan->pass[plan->pass_count];
        bool any = false;
        for (int i = 0; i < plan->map->store_count; i++)
            any = any || plan->map->store[i].to.index == along[k];
        if (!any)
            continue;
        plan->pass_count++;
        p->storing = true;
        p->stores = along[k];
        p->group_count = p->blocks_per_group = p->block_count = 1;
        p->member_count = p->block_tiles = k == 0 ? plan->map->segment_count : 1;
        if (!bytecode_make(plan, p))
            return false;
    }
    return true;
}

/* One pass for each set of kept axes; the last one stores. */
bool map_passes_make(map_plan *plan)
{
    int n = plan->map->reduction_count, count = 0;
    unsigned *kept = map_allocate(plan, (size_t)n + 1, sizeof *kept);

    plan->pass = map_allocate(plan, (size_t)n + 3, sizeof *plan->pass);
    if (kept == NULL || plan->pass == NULL)
        return false;
    for (int i = 0; i < n; i++) {
        int k = 0;
        kept[count] = kept_of(plan, &plan->reduce[i]);
        while (kept[k] != kept[count])
            k++;
        count += k == count;
    }
    if (count == 0)
        kept[count++] = 0;
    plan->pass_count = count;
    for (int i = 0; i < count; i++) {
        plan->pass[i].storing = i == count - 1;
        plan->pass[i].stores = PONS_INDEX_ELEMENT;
        if (!pass_make(plan, &plan->pass[i], kept[i]))
            return false;
    }
    return segment_stores(plan);
}
