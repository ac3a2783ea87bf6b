/*
 * map_internal.h - a prepared pons_map: tiles, nodes and bytecode, and the lanes that run them.
 *
 * Tiles. The index space is cut into boxes of about 4096 points: all of the innermost axes and a
 * range of the axis before them ('cut'). The offset of an operand from the tile's first element is
 * therefore the same in every tile, for any strides. The points of a tile are numbered row-major
 * and are the lanes of the machine (interpreter.h), which processes one 'unit' of lanes at a time.
 * In the channel form each channel of a per-channel value is a node of its own, so the machine has
 * no notion of channels.
 *
 * Invariant values. Values that repeat along the lanes of a tile and are equal in all tiles
 * (per-channel values) are computed by separate programs, once for as long as they are valid.
 * Uniform values have one unit of lanes. Periodic values have one period: the number of lanes, a
 * multiple of MAP_STRIP, after which every offset that does not depend on the cut axis repeats. A
 * period of 70 channels would be 4480 lanes, more than L1 holds of values and sums. A long period
 * is replaced by a 'cycle', a multiple of MAP_ROW lanes. A strip may begin anywhere in the cycle
 * and may extend past its end, where the first lanes are repeated.
 *
 * If the processor and the system allow it, the bytecode of a pass is compiled to machine code for
 * whole units (jit.h), with the same bits.
 *
 * Passes. A pass runs all tiles through its bytecode. One pass is enough unless reductions keep
 * different axes; each set of kept axes has a pass of its own. Tiles are grouped by the elements
 * that the reductions keep. The tiles of a group are cut into blocks, each with its own partial
 * results, which a second phase reduces in a tree (map_reduce.c). Threads take blocks in any order:
 * bits do not depend on it.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_MAP_INTERNAL_H
#define PLUGINS_DEVICES_CPU_MAP_MAP_INTERNAL_H

#include "cpu/map/interpreter/interpreter.h"

#include <pons/device.h>

#define MAP_TILE_LANES 4096
#define MAP_STRIP 128          /* lanes; a multiple of every machine's unit                       */
#define MAP_ROW 16             /* lanes that the functions below process at a time                */
#define MAP_CYCLE 1024         /* longest period that is a cycle by itself                        */
#define MAP_BLOCK_TILES 16     /* tiles of a partial result of a reduction                        */
#define MAP_CHUNK_TILES 4      /* tiles of a task without reductions                              */

/* ---- lanes: one table for each instruction set (map_lanes.c) --------------------------------- */

#define MAP_TYPES 6            /* size of tables by pons_type; F64 is never stored */

/* A map_function may have r equal to an argument; n is a multiple of 16. */
typedef struct map_lanes {
    const char *name;
    const map_machine *machine;
    /* Operations without a machine instruction, and a reference for those with one. */
    map_function operation[PONS_MAP_OPERATION_COUNT][1];
    void (*load[MAP_TYPES])(float *to, const void *from, int64_t first, int n);
    void (*store[MAP_TYPES])(void *to, int64_t first, const float *from, int n);
    void (*gather[MAP_TYPES])(float *to, const void *from, int64_t first, const int32_t *at, int n);
    void (*scatter[MAP_TYPES])(void *to, int64_t first, const int32_t *at, const float *from,
                               int n);
    /* Groups of sixteen adjacent elements at at[0], at[16], ... */
    void (*load_groups[MAP_TYPES])(float *to, const void *from, const int32_t *at, int n);
    void (*store_groups[MAP_TYPES])(void *to, const int32_t *at, const float *from, int n);
    /*
     * Conversion between 'rows' channels interleaved in memory and one row of 'points' lanes for
     * each channel.
     */
    void (*load_rows[MAP_TYPES])(float *to, int stride, const void *from, int64_t first, int rows,
                                 int points);
    void (*store_rows[MAP_TYPES])(void *to, int64_t first, const float *from, int stride, int rows,
                                  int points);
    void (*fill)(float *to, float value, int n);
    /* Elements first .. first + n - 1 of a random stream (R5). */
    void (*random[2])(float *to, int64_t first, int n, uint64_t stream,
                      const pons_step_key *step_key);
} map_lanes;

/* ---- the plan -------------------------------------------------------------------------------- */

typedef enum map_pattern {
    MAP_ONE = 1,          /* one element for the whole tile                                       */
    MAP_DENSE,
    MAP_INTERLEAVED,      /* all channels of a point are adjacent                                 */
    MAP_GROUPS,           /* groups of sixteen adjacent lanes                                     */
    MAP_REPEAT,           /* dense, each element 'repeat' times                                   */
    MAP_TABLE
} map_pattern;

/* An operand relative to tiles. */
typedef struct map_access {
    int tensor;
    pons_type type;
    pons_index_space index;
    map_pattern pattern;
    int rows;                      /* channels at distinct addresses, or 1                        */
    int repeat;
    bool periodic;                 /* the table repeats after plan->cycle lanes                   */
    bool stream;                   /* store: non-temporal, as larger than the caches              */
    int64_t offset;
    int64_t stride[PONS_MAP_AXES]; /* strides of the collapsed axes of points                     */
    int64_t channel;               /* stride between channels                                     */
    int64_t outer[PONS_MAP_AXES];  /* elements per tile, along each outer axis                    */
    int32_t *table;                /* [row] offsets from the tile's first element                 */
} map_access;

/*
 * Lanes of a reduced value as a small dense array; [0] is for whole tiles, [1] for those at the end
 * of the cut axis.
 */
typedef struct map_fold {
    int dimensions, lanes, kept_count;
    int extent[PONS_MAP_AXES + 1];
    bool kept[PONS_MAP_AXES + 1];
    int16_t *key;                  /* [lanes] index of the kept element                           */
    int64_t *to[2];                /* [kept_count] offsets from the group's first output element */
    int64_t *dense;                /* [kept_count] offsets in a dense array of all kept elements  */
} map_fold;

typedef struct map_reduce {
    pons_reduction_kind kind;
    int groups;
    int64_t group_extent;          /* extent of the last kept axis                                */
    int value;
    int rows;                      /* channels or 1                                               */
    map_access to[2];
    int64_t dense_outer[PONS_MAP_AXES];
    int64_t dense_count;
    int64_t dense_stride[PONS_MAP_AXES], dense_channel;
    map_fold fold[2];
    bool cut_kept;
    bool by_period;          /* one accumulator for each lane of a period or cycle, not of a tile */
    bool whole;                  /* moments of a load, by cycle: one instruction for a whole tile */
    int lanes, pitch;              /* accumulators of a channel; floats between channels          */
    size_t accumulator;            /* offset in the worker's buffers, in floats                   */
    size_t partial;                /* offset in a block's partial results, in floats              */
    size_t dense_at;               /* offset in the scratch memory; 'groups' only                 */
} map_reduce;

/* ---- nodes and code -------------------------------------------------------------------------- */

enum {
    MAP_NODE_MAX_NAN = PONS_VALUE_COUNT, MAP_NODE_MIN_NAN, MAP_NODE_SELECT,
    MAP_NODE_LEAKY_RELU_GRADIENT   /* arguments x, q, g, m: (x > q ? g : q) + (x > q ? q : g) m   */
};

/* One value, or one channel of a value. */
typedef struct map_node {
    uint16_t operation;   /* pons_map_operation, PONS_VALUE_* or MAP_NODE_*                       */
    uint16_t comparison;  /* PICK                                                                 */
    int argument_count;
    int argument[4];      /* PICK: both compared values, then, else                               */
    int value, channel;
    float number;         /* CONSTANT                                                             */
} map_node;

/* The lifetime of the lanes of a node. */
typedef enum map_span { MAP_UNIFORM = 0, MAP_PERIODIC, MAP_TILED, MAP_SPANS } map_span;

/* An operand's address in memory, found for each tile. Its base is machine base 1 + index. */
typedef struct map_slot {
    const map_access *access;
    int channel;
    bool output;
    size_t stage;         /* DENSE: offset in the worker's buffers of a copy of a tile's end    */
    size_t non_temporal;  /* non-temporal outputs: offset of a copy of a whole tile */
} map_slot;

/* An invariant load: it is read again only if its address has changed. */
typedef struct map_steady {
    const map_access *access;
    int channel;
    map_span span;
    size_t home;          /* offset in the worker's buffers, in floats                            */
} map_steady;

typedef struct map_constant {
    size_t home;
    float number;
} map_constant;

typedef struct map_pass {
    int reduce_count, code_count, slot_count, steady_count, constant_count;
    map_instruction *code;
    int program[MAP_SPANS];        /* first instruction of each span's program; -1: none          */
    int main;
    const map_instruction *quick;  /* compiled main program, for whole units; or NULL             */
    void *compiled;                /* machine code of 'quick'                                     */
    size_t compiled_size;
    map_slot *slot;
    map_steady *steady;
    map_constant *constant;
    map_reduce **reduce;
    size_t buffer_floats, spare_floats, partial_floats;
    /*
     * Tiles are numbered [group][member]. In the ragged form each segment is a group, or all tiles
     * are one.
     */
    int kept_axes, reduced_axes;
    int kept_axis[PONS_MAP_AXES], reduced_axis[PONS_MAP_AXES];
    int64_t group_count, member_count, block_tiles, blocks_per_group, block_count;
    bool by_segment;
    bool storing;
    bool non_temporal;    /* a store is non-temporal                                              */
    pons_index_space stores;    /* ragged: index space of the stores that it makes                */
    size_t partial_at;    /* offset in the scratch memory; unused with one partial result a group */
    size_t count_at;      /* offset of doubles: element count of each partial result              */
    /* ragged: group, first tile and tiles of each block */
    int64_t *block_group, *block_first, *block_size;
    int64_t *group_block; /* ragged: [group_count + 1]                                            */
} map_pass;

typedef struct map_plan {
    const pons_map *map;
    const map_lanes *lanes;
    int threads;
    struct map_memory *memory;
    int rows, row;        /* channels or 1; lanes of a tile, rounded up to a strip                */
    int period;           /* lanes; 0: none                                                       */
    int cycle;            /* lanes of the period, or fewer if it is long or 0; 0: none            */
    int cycle_lanes;      /* lanes of an array in which a strip may begin at any lane of a cycle  */
    int axes;             /* collapsed axes of points                                             */
    int64_t extent[PONS_MAP_AXES];
    unsigned fixed;       /* axes that may neither be merged nor dropped                          */
    int cut;
    int64_t box;          /* elements of the cut axis in a tile                                   */
    int inner;            /* points inside one element of the cut axis                            */
    int points, end_points; /* points of a whole tile, and of the last tile of the cut axis       */
    int64_t outer_extent[PONS_MAP_AXES];
    int64_t outer_points[PONS_MAP_AXES]; /* points from tile to tile along each outer axis        */
    map_access *load, *store;
    map_reduce *reduce;
    int node_count, node_room;
    map_node *node;
    int *node_of, *copies; /* [value][rows] nodes of a value; [value] their count, or 1           */
    int pass_count;
    map_pass *pass;
    /* ragged: count of all tiles; then their segments, first elements, points */
    int64_t tile_count;
    int64_t *tile_segment, *tile_first;
    int32_t *tile_points;
    size_t worker_size, worker_at, scratch_size;
} map_plan;

void *map_allocate(map_plan *plan, size_t count, size_t size); /* zeroed; NULL: out of memory     */
void map_release(map_plan *plan); /* frees all memory of map_allocate                             */

/* map_space.c: axes, tiles, operands */
bool map_space_make(map_plan *plan);
bool map_access_make(map_plan *plan, const pons_operand *from, bool per_channel, map_access *to);
/* map_nodes.c: values, channel by channel */
bool map_nodes_make(map_plan *plan);
int map_node_of(const map_plan *plan, int value, int channel);
/* bytecode.c: the programs of a pass and the addresses of its nodes */
bool bytecode_make(map_plan *plan, map_pass *pass);
/* interpreter_visit.c: the functions that VISIT calls */
map_visit map_visit_load(const map_access *access);
map_visit map_visit_store(const map_access *access);
void map_visit_iota(const map_unit *unit, const map_instruction *i);
void map_visit_random(const map_unit *unit, const map_instruction *i);
/* map_reduce.c */
bool map_reduce_make(map_plan *plan, map_reduce *reduce);

/* map_pass.c: one pass for each set of kept axes; the last one stores */
bool map_passes_make(map_plan *plan);
/* True if the pass makes this store. */
bool map_pass_stores(const map_plan *plan, const map_pass *pass, const pons_store *store);

/* The position of a tile. */
typedef struct map_tile {
    int64_t at[PONS_MAP_AXES]; /* position on the outer axes                                      */
    int64_t first;             /* index of its first point in the space (ragged: flat element)    */
    int64_t segment;
    int points;
    bool end;                  /* shorter than the others                                         */
} map_tile;

typedef struct map_worker {
    bool ready, prepared; /* prepared: the programs of invariant values have run                  */
    char **base, **end_base; /* bases of the machine; bases for the lanes at a tile's end         */
    char **non_temporal;       /* [slot] final address of a tile in a copy, or NULL */
    int64_t *steady_first;
    int *steady_points;
    float *buffers;
    float *spare;         /* work memory, four times the accumulators of a reduction              */
    float *partial;
    double *count;
    /*
     * Elements in each accumulator. By tile: [0] whole tiles, [1] tiles at the end of the cut axis.
     * By period and by cycle: [0] whole ones, [1] the remainder of a tile.
     */
    int tiles[2], periods[2], cycles[2];
} map_worker;

typedef struct map_run {
    const map_plan *plan;
    const map_pass *pass;
    const pons_call *call;
    map_worker *worker;
} map_run;

/* map_run.c: scratch bytes of a thread; the kernel's run */
size_t map_worker_size(const map_pass *pass);
pons_status map_run_all(const pons_kernel *kernel, const pons_call *call, pons_error *err);
/* map_tile.c: run the pass on a tile */
void map_tile_run(const map_run *run, map_worker *worker, const map_tile *tile);

int64_t map_access_first(const map_access *access, const map_tile *tile);
void map_tile_find(const map_plan *plan, const map_pass *pass, int64_t group, int64_t member,
                   map_tile *tile);
/* Advance a tile from member - 1 to member of the same group; cheaper than map_tile_find. */
void map_tile_next(const map_plan *plan, const map_pass *pass, int64_t member, map_tile *tile);
void map_reduce_begin(const map_run *run, map_worker *worker);
/* Reduce the accumulators to the partial results of a block whose last tile is 'tile'. */
void map_reduce_block(const map_run *run, map_worker *worker, const map_tile *tile, float *partial,
                      double *count);
/* Reduce the partial results of a group and write them. */
void map_reduce_join(const map_run *run, int64_t group, int64_t blocks, const float *partial,
                     const double *count);
/* Moments in groups of channels, from the dense array of all kept elements. */
void map_reduce_groups(const map_run *run);

/* Conversions of single elements by type. */
float map_number_load(pons_type type, const void *from, int64_t at);
void map_number_store(pons_type type, void *to, int64_t at, float value);
size_t map_type_size(pons_type type);

#endif
