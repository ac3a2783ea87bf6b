/*
 * map.h - a pons_map made ready: tiles, steps and buffers, and the lanes that carry them out.
 *
 * The index space is cut into tiles of at most 1024 lanes. A tile is a box: all of the innermost
 * axes and a piece of the axis before them ('cut'), so that where an operand lies relative to the
 * tile's first element is the same for every tile, whatever its strides. Its points are numbered
 * row-major. In the linear form a tile has one row; in the channel form it has a row for each
 * channel, [C][points]. Rows begin at multiples of 16 lanes.
 *
 * A pass runs all tiles through a list of steps. One pass does everything, except where reductions
 * keep different axes: those get a pass each. Tiles are grouped by what the reductions keep; the
 * tiles of a group are cut into blocks, each with partial results of its own, which a second phase
 * joins in a tree (map_reduce.c). Blocks are handed to threads in any order: bits do not depend on it.
 */
#ifndef CPU_MAP_H
#define CPU_MAP_H

#include <pons/device.h>

#define MAP_TILE_LANES 1024
#define MAP_ROW 16             /* lanes of the padding, and of a uniform value                    */
#define MAP_BLOCK_TILES 64     /* per partial result of a reduction                               */
#define MAP_CHUNK_TILES 16     /* per unit of work without reductions                             */

/* ---- lanes: one table for each kind of processor (map_lanes.c) ------------------------------- */

#define MAP_TYPES 6            /* pons_type; F64 is never stored on this device                   */

/* r may be one of the arguments; n is a multiple of 16. */
typedef void (*map_function)(float *r, const float *a, const float *b, const float *c, int n);

typedef struct map_lanes {
    const char *name;
    /* [operation][set of arguments that are uniform]; NULL: no such form. */
    map_function operation[PONS_MAP_OPERATION_COUNT][8];
    void (*load[MAP_TYPES])(float *to, const void *from, int64_t first, int n);
    void (*store[MAP_TYPES])(void *to, int64_t first, const float *from, int n);
    void (*gather[MAP_TYPES])(float *to, const void *from, int64_t first, const int32_t *at, int n);
    void (*scatter[MAP_TYPES])(void *to, int64_t first, const int32_t *at, const float *from, int n);
    /* 'points' numbers of 'rows' channels, interleaved in memory, from and to rows. */
    void (*load_rows[MAP_TYPES])(float *to, int stride, const void *from, int64_t first, int rows,
                                 int points);
    void (*store_rows[MAP_TYPES])(void *to, int64_t first, const float *from, int stride, int rows,
                                  int points);
    void (*fill)(float *to, float value, int n);
    void (*join[3])(float *accumulator, const float *x, int n); /* sum, max, min                  */
    void (*moments)(float *mean, float *square, const float *x, float reciprocal, int n);
    void (*arg_max)(float *index, float *best, const float *x, float candidate, int n);
    /* Elements first .. first + n - 1 of a stream (R5). */
    void (*random[2])(float *to, int64_t first, int n, uint64_t stream, const pons_moment *moment);
} map_lanes;

/* The rows of the table, best last; those that this processor can run. */
int map_lanes_count(void);
const map_lanes *map_lanes_row(int row);
/* Has this processor products of bf16? */
bool map_has_bf16(void);

/* ---- the plan -------------------------------------------------------------------------------- */

typedef enum map_width { MAP_UNIFORM = 0, MAP_NARROW, MAP_WIDE, MAP_WIDTHS } map_width;

typedef enum map_pattern { MAP_ONE = 1, MAP_DENSE, MAP_INTERLEAVED, MAP_TABLE } map_pattern;

/* An operand relative to tiles. */
typedef struct map_access {
    int tensor;
    pons_type type;
    pons_along along;
    map_pattern pattern;
    map_width width;
    int64_t offset;
    int64_t stride[PONS_MAP_AXES]; /* of the collapsed axes of points                             */
    int64_t channel;               /* stride between channels                                     */
    int64_t outer[PONS_MAP_AXES];  /* elements per tile, along each outer axis                    */
    int32_t *table;                /* [rows][row] from the tile's first element                   */
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
    map_width width;
    map_access to[2];
    int64_t dense_outer[PONS_MAP_AXES];
    int64_t dense_count;
    int64_t dense_stride[PONS_MAP_AXES], dense_channel;
    map_fold fold[2];
    bool cut_kept;
    size_t accumulator;            /* floats from the worker's accumulators                       */
    size_t partial;                /* floats from the block's partial results                     */
    size_t dense_at;               /* floats in the scratch memory, 'groups' only                 */
} map_reduce;

typedef enum map_step_kind {
    MAP_STEP_OPERATION = 1,
    MAP_STEP_LOAD,
    MAP_STEP_EXPAND,      /* uniform -> narrow or wide, narrow -> wide                            */
    MAP_STEP_CHANNEL,
    MAP_STEP_IOTA,
    MAP_STEP_RANDOM,
    MAP_STEP_REDUCE,
    MAP_STEP_STORE,
    MAP_STEP_KINDS
} map_step_kind;

typedef struct map_step {
    map_step_kind kind;
    map_width width;      /* of the result; of the argument where there is none                   */
    map_width from;       /* EXPAND                                                               */
    int to, argument[3];  /* registers                                                            */
    map_function function;
    const pons_value *value;
    map_access *access;
    map_reduce *reduce;
    bool lasting;         /* LOAD: kept from tile to tile while its place stays                   */
} map_step;

typedef struct map_register {
    map_width width;
    size_t home;          /* floats from the worker's buffers                                     */
    float constant;
    bool is_constant, lasting;
    int first, last;      /* steps that write and read it                                         */
} map_register;

typedef struct map_pass {
    int step_count, register_count, reduce_count;
    int direct;           /* the STORE whose value may be computed in the output itself, or -1     */
    map_step *step;
    map_register *reg;
    map_reduce **reduce;
    size_t buffer_floats, accumulator_floats, partial_floats;
    /* Tiles: [group][member]. Ragged: groups are segments, or there is one. */
    int kept_axes, reduced_axes;
    int kept_axis[PONS_MAP_AXES], reduced_axis[PONS_MAP_AXES];
    int64_t group_count, member_count, block_tiles, blocks_per_group, block_count;
    bool by_segment;
    bool storing;
    pons_along stores;    /* ragged: which of the stores                                          */
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
    int rows, row;        /* channels or 1; lanes from row to row                                 */
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
    int pass_count;
    map_pass *pass;
    int64_t tile_count;   /* ragged: all tiles in order                                           */
    int64_t *tile_segment, *tile_first;
    int32_t *tile_points;
    size_t worker_size, worker_at, scratch_size;
} map_plan;

void *map_allocate(map_plan *plan, size_t count, size_t size); /* zeroed; NULL: out of memory      */

static inline size_t map_round_up(size_t x) { return (x + 63) & ~(size_t)63; }

/* map_space.c: axes, tiles, operands */
bool map_space_make(map_plan *plan);
bool map_access_make(map_plan *plan, const pons_operand *from, map_width width, map_access *to);
/* map_steps.c: the list of steps of a pass, its registers and their places */
bool map_steps_make(map_plan *plan, map_pass *pass);
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
    bool ready;
    float **pointer;      /* [register]                                                           */
    int64_t *lasting_first; /* [register]                                                         */
    int *lasting_points;
    float *buffers, *accumulators;
    float *spare;         /* four times the lanes of a tile                                       */
    float *partial;
    double *count;
    int tiles[2];         /* in the accumulators; [1] those at the end of the cut axis            */
} map_worker;

typedef struct map_run {
    const map_plan *plan;
    const map_pass *pass;
    const pons_call *call;
    map_worker *worker;
} map_run;

/* map_run.c: bytes of scratch memory that each thread needs; the kernel's run */
size_t map_worker_size(const map_plan *plan, const map_pass *pass);
pons_status map_run_all(const pons_kernel *kernel, const pons_call *call, pons_error *err);
/* map_tile.c: run the steps of the pass; 'next' is the tile that follows, or NULL */
void map_tile_run(const map_run *run, map_worker *worker, const map_tile *tile,
                  const map_tile *next);

int64_t map_access_first(const map_access *access, const map_tile *tile);
void map_tile_find(const map_plan *plan, const map_pass *pass, int64_t group, int64_t member,
                   map_tile *tile);
/* From member - 1 to member of the same group, which is cheaper. */
void map_tile_next(const map_plan *plan, const map_pass *pass, int64_t member, map_tile *tile);
void map_reduce_begin(const map_run *run, map_worker *worker);
void map_reduce_tile(const map_run *run, map_worker *worker, const map_reduce *reduce,
                     const map_tile *tile, const float *x);
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
