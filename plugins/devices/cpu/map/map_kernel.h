/*
 * map_kernel.h - a pons_map made ready: tiles, nodes and code, and the lanes that carry it out.
 *
 * The index space is cut into tiles of about 4096 points. A tile is a box: all of the innermost
 * axes and a piece of the axis before them ('cut'), so that where an operand lies relative to the
 * tile's first element is the same for every tile, whatever its strides. Its points are numbered
 * row-major and are the lanes of the machine (interpreter.h), which takes a 'unit' of them at a
 * time. In the channel form each channel of a wide value is a node by itself, so that the machine
 * knows nothing of channels.
 *
 * Values that repeat along the lanes of a tile and stay from tile to tile (per-channel numbers) are
 * computed apart, once for as long as they stay: uniform ones for a unit, periodic ones for a
 * period, which is the number of lanes after which every place that does not move with the cut axis
 * comes again, at a multiple of MAP_STRIP. A period of 70 channels would be 4480 lanes, more than
 * the first cache keeps of numbers and sums. Where it is long there is a 'cycle' in its place,
 * which ends at a multiple of MAP_ROW; every strip of lanes begins somewhere in it and may end
 * behind it, where the first lanes come once more.
 *
 * Where the processor and the system let it, a pass's code becomes machine code for whole units
 * (jit.h), which leaves the same bits.
 *
 * A pass runs all tiles through its code. One pass does everything, except where reductions keep
 * different axes: those get a pass each. Tiles are grouped by what the reductions keep; the tiles
 * of a group are cut into blocks, each with partial results of its own, which a second phase joins
 * in a tree (map_reduce.c). Blocks are handed to threads in any order: bits do not depend on it.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_MAP_KERNEL_H
#define PLUGINS_DEVICES_CPU_MAP_MAP_KERNEL_H

#include "cpu/map/interpreter/interpreter.h"

#include <pons/device.h>

#define MAP_TILE_LANES 4096
#define MAP_STRIP 128          /* a multiple of every machine's unit                              */
#define MAP_ROW 16             /* lanes that the functions below take at a time                   */
#define MAP_CYCLE 1024         /* lanes of a period that is not long                              */
#define MAP_BLOCK_TILES 16     /* per partial result of a reduction                               */
#define MAP_CHUNK_TILES 4      /* per unit of work without reductions                             */

/* ---- lanes: one table for each kind of processor (map_lanes.c) ------------------------------- */

#define MAP_TYPES 6            /* pons_type; F64 is never stored on this device                   */

/* map_function: r may be one of the arguments; n is a multiple of 16. */
typedef struct map_lanes {
    const char *name;
    const map_machine *machine;
    /* What the machine has no instruction for, and a reference for what it has. */
    map_function operation[PONS_MAP_OPERATION_COUNT][1];
    void (*load[MAP_TYPES])(float *to, const void *from, int64_t first, int n);
    void (*store[MAP_TYPES])(void *to, int64_t first, const float *from, int n);
    void (*gather[MAP_TYPES])(float *to, const void *from, int64_t first, const int32_t *at, int n);
    void (*scatter[MAP_TYPES])(void *to, int64_t first, const int32_t *at, const float *from,
                               int n);
    /* Sixteen numbers that follow each other at at[0], at[16], ... */
    void (*load_groups[MAP_TYPES])(float *to, const void *from, const int32_t *at, int n);
    void (*store_groups[MAP_TYPES])(void *to, const int32_t *at, const float *from, int n);
    /* 'points' numbers of 'rows' channels, interleaved in memory, from and to rows. */
    void (*load_rows[MAP_TYPES])(float *to, int stride, const void *from, int64_t first, int rows,
                                 int points);
    void (*store_rows[MAP_TYPES])(void *to, int64_t first, const float *from, int stride, int rows,
                                  int points);
    void (*fill)(float *to, float value, int n);
    /* Elements first .. first + n - 1 of a stream (R5). */
    void (*random[2])(float *to, int64_t first, int n, uint64_t stream, const pons_step_key *step_key);
} map_lanes;

/* Rows of the table, best last: that are built; the first of them, that this processor can run. */
int map_lanes_built(void);
int map_lanes_count(void);
const map_lanes *map_lanes_row(int row);
/* Has this processor products of bf16? */
bool map_has_bf16(void);

/* ---- the plan -------------------------------------------------------------------------------- */

typedef enum map_pattern {
    MAP_ONE = 1,          /* one number for the whole tile                                        */
    MAP_DENSE,
    MAP_INTERLEAVED,      /* all channels of a point beside each other                            */
    MAP_GROUPS,           /* sixteen lanes beside each other, again and again                     */
    MAP_REPEAT,           /* dense, each number 'repeat' times                                    */
    MAP_TABLE
} map_pattern;

/* An operand relative to tiles. */
typedef struct map_access {
    int tensor;
    pons_type type;
    pons_index_space index;
    map_pattern pattern;
    int rows;                      /* channels that lie apart, or 1                               */
    int repeat;
    bool periodic;                 /* the table comes again after plan->cycle lanes               */
    bool stream;                   /* STORE: larger than any cache                                */
    int64_t offset;
    int64_t stride[PONS_MAP_AXES]; /* of the collapsed axes of points                             */
    int64_t channel;               /* stride between channels                                     */
    int64_t outer[PONS_MAP_AXES];  /* elements per tile, along each outer axis                    */
    int32_t *table;                /* [row] from the tile's first element                         */
} map_access;

/* Lanes of a reduced value as a small dense array; [0] whole tiles, [1] tiles at the end. */
typedef struct map_fold {
    int dimensions, lanes, kept_count;
    int extent[PONS_MAP_AXES + 1];
    bool kept[PONS_MAP_AXES + 1];
    int16_t *key;                  /* [lanes], which kept element                                 */
    int64_t *to[2];                /* [kept_count], elements from the group's first in the output */
    int64_t *dense;                /* the same in a dense array of all kept elements              */
} map_fold;

typedef struct map_reduce {
    pons_reduction_kind kind;
    int groups;
    int64_t group_extent;          /* of the last kept axis                                       */
    int value;
    int rows;                      /* channels or 1                                               */
    map_access to[2];
    int64_t dense_outer[PONS_MAP_AXES];
    int64_t dense_count;
    int64_t dense_stride[PONS_MAP_AXES], dense_channel;
    map_fold fold[2];
    bool cut_kept;
    bool by_period;                /* an accumulator for each lane of a period or cycle, not tile */
    bool whole;                    /* moments of what is loaded, by cycle: a tile at a time       */
    int lanes, pitch;              /* accumulators of a channel; floats from channel to channel   */
    size_t accumulator;            /* floats from the worker's buffers                            */
    size_t partial;                /* floats from the block's partial results                     */
    size_t dense_at;               /* floats in the scratch memory, 'groups' only                 */
} map_reduce;

/* ---- nodes and code -------------------------------------------------------------------------- */

enum {
    MAP_NODE_JOIN_MAX = PONS_VALUE_COUNT, MAP_NODE_JOIN_MIN, MAP_NODE_PICK,
    MAP_NODE_BEND_GRADIENT   /* x, q, g, m: (x > q ? g : q) + (x > q ? q : g) m                   */
};

/* One value, or one channel of it. */
typedef struct map_node {
    uint16_t operation;   /* pons_map_operation, PONS_VALUE_* or MAP_NODE_*                       */
    uint16_t comparison;  /* PICK                                                                 */
    int argument_count;
    int argument[4];      /* PICK: the two compared, then, else                                   */
    int value, channel;
    float number;         /* CONSTANT                                                             */
} map_node;

/* For how long a node's numbers stay. */
typedef enum map_span { MAP_UNIFORM = 0, MAP_PERIODIC, MAP_TILED, MAP_SPANS } map_span;

/* An operand's place in memory, found for each tile: machine base 1 + index. */
typedef struct map_slot {
    const map_access *access;
    int channel;
    bool output;
    size_t stage;         /* DENSE: floats from the worker's buffers, for a tile's end          */
    size_t past;          /* of an output that goes past the caches: the same, for a whole tile */
} map_slot;

/* A load that stays: read when its place has changed. */
typedef struct map_steady {
    const map_access *access;
    int channel;
    map_span span;
    size_t home;          /* floats from the worker's buffers                                     */
} map_steady;

typedef struct map_constant {
    size_t home;
    float number;
} map_constant;

typedef struct map_pass {
    int reduce_count, code_count, slot_count, steady_count, constant_count;
    map_instruction *code;
    int program[MAP_SPANS];        /* first instruction; -1: nothing to do                        */
    int main;
    const map_instruction *quick;  /* the main program compiled, for whole units; or NULL         */
    void *compiled;                /* its code                                                    */
    size_t compiled_size;
    map_slot *slot;
    map_steady *steady;
    map_constant *constant;
    map_reduce **reduce;
    size_t buffer_floats, spare_floats, partial_floats;
    /* Tiles: [group][member]. Ragged: groups are segments, or there is one. */
    int kept_axes, reduced_axes;
    int kept_axis[PONS_MAP_AXES], reduced_axis[PONS_MAP_AXES];
    int64_t group_count, member_count, block_tiles, blocks_per_group, block_count;
    bool by_segment;
    bool storing;
    bool past;            /* a store goes past the caches                                         */
    pons_index_space stores;    /* ragged: which of the stores                                    */
    size_t partial_at;    /* bytes in the scratch memory; one partial result a group needs none   */
    size_t count_at;      /* doubles: elements in each partial result                             */
    int64_t *block_group, *block_first, *block_size; /* ragged: of each block                     */
    int64_t *group_block; /* ragged: [group_count + 1]                                            */
} map_pass;

typedef struct map_plan {
    const pons_map *map;
    const map_lanes *lanes;
    int threads;
    struct map_memory *memory;
    int rows, row;        /* channels or 1; lanes of a tile, rounded up                           */
    int period;           /* lanes; 0: none                                                       */
    int cycle;            /* lanes: the period, or less where this is long or none; 0: none       */
    int cycle_lanes;      /* of an array in which strips may begin at any lane of a cycle         */
    int axes;             /* of points, collapsed                                                 */
    int64_t extent[PONS_MAP_AXES];
    unsigned fixed;       /* axes that must neither merge nor vanish                              */
    int cut;
    int64_t box;          /* piece of the cut axis                                                */
    int inner;            /* points behind the cut axis                                           */
    int points, end_points; /* of a whole tile, and of the one at the end of the cut axis         */
    int64_t outer_extent[PONS_MAP_AXES];
    int64_t outer_points[PONS_MAP_AXES]; /* points per tile along each outer axis                 */
    map_access *load, *store;
    map_reduce *reduce;
    int node_count, node_room;
    map_node *node;
    int *node_of, *copies; /* [value][rows] its nodes; [value] how many, or 1                     */
    int pass_count;
    map_pass *pass;
    int64_t tile_count;   /* ragged: all tiles in order                                           */
    int64_t *tile_segment, *tile_first;
    int32_t *tile_points;
    size_t worker_size, worker_at, scratch_size;
} map_plan;

void *map_allocate(map_plan *plan, size_t count, size_t size); /* zeroed; NULL: out of memory     */
void map_release(map_plan *plan); /* all that it gave                                             */

/* map_space.c: axes, tiles, operands */
bool map_space_make(map_plan *plan);
bool map_access_make(map_plan *plan, const pons_operand *from, bool wide, map_access *to);
/* map_nodes.c: values, channel by channel */
bool map_nodes_make(map_plan *plan);
int map_node_of(const map_plan *plan, int value, int channel);
bool map_comparison(int operation);
/* bytecode.c: the programs of a pass and the places of its nodes */
bool map_code_make(map_plan *plan, map_pass *pass);
/* interpreter_visit.c: what is reached through VISIT */
map_visit map_visit_load(const map_access *access);
map_visit map_visit_store(const map_access *access);
void map_visit_iota(const map_unit *unit, const map_instruction *i);
void map_visit_random(const map_unit *unit, const map_instruction *i);
/* map_reduce.c */
bool map_reduce_make(map_plan *plan, map_reduce *reduce);

/* map_pass.c: a pass for each set of kept axes; the last one stores */
bool map_passes_make(map_plan *plan);
/* Does the pass store this? */
bool map_pass_stores(const map_plan *plan, const map_pass *pass, const pons_store *store);

/* Where a tile lies. */
typedef struct map_tile {
    int64_t at[PONS_MAP_AXES]; /* outer axes                                                      */
    int64_t first;             /* number of its first point in the space (ragged: flat element)   */
    int64_t segment;
    int points;
    bool end;                  /* shorter than the others                                         */
} map_tile;

typedef struct map_worker {
    bool ready, prepared; /* prepared: the programs of what stays have run                        */
    char **base, **end_base; /* of the machine; of the lanes at a tile's end                      */
    char **past;          /* of each slot: where a tile will lie that is written elsewhere; NULL  */
    int64_t *steady_first;
    int *steady_points;
    float *buffers;
    float *spare;         /* four times the accumulators of a reduction                           */
    float *partial;
    double *count;
    /* Numbers in each accumulator: by tile, [1] those at the end of the cut axis; by period, [1] in
     * what remains of a tile behind its last whole period; the same by cycle. */
    int tiles[2], periods[2], cycles[2];
} map_worker;

typedef struct map_run {
    const map_plan *plan;
    const map_pass *pass;
    const pons_call *call;
    map_worker *worker;
} map_run;

/* map_run.c: bytes of scratch memory that each thread needs; the kernel's run */
size_t map_worker_size(const map_pass *pass);
pons_status map_run_all(const pons_kernel *kernel, const pons_call *call, pons_error *err);
/* map_tile.c: run the pass on a tile */
void map_tile_run(const map_run *run, map_worker *worker, const map_tile *tile);

int64_t map_access_first(const map_access *access, const map_tile *tile);
void map_tile_find(const map_plan *plan, const map_pass *pass, int64_t group, int64_t member,
                   map_tile *tile);
/* From member - 1 to member of the same group, which is cheaper. */
void map_tile_next(const map_plan *plan, const map_pass *pass, int64_t member, map_tile *tile);
void map_reduce_begin(const map_run *run, map_worker *worker);
/* The accumulators as the partial results of a block whose last tile is 'tile'. */
void map_reduce_block(const map_run *run, map_worker *worker, const map_tile *tile, float *partial,
                      double *count);
/* Join the partial results of a group and write them. */
void map_reduce_join(const map_run *run, int64_t group, int64_t blocks, const float *partial,
                     const double *count);
/* Moments in groups of channels: from the dense array of all kept elements. */
void map_reduce_groups(const map_run *run);

/* The tables of conversions by type, for single numbers. */
float map_number_load(pons_type type, const void *from, int64_t at);
void map_number_store(pons_type type, void *to, int64_t at, float value);
size_t map_type_size(pons_type type);

#endif
