/*
 * interpreter.h - the machine that runs map programs (interpreter.c).
 *
 * Its accumulator is eight vector registers, which hold the 'unit' lanes of one value. An
 * instruction changes the accumulator, or moves it from or to memory, and then calls the next
 * instruction with the registers as arguments. The compiler turns these calls into jumps, so values
 * stay in registers between instructions.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_H
#define PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_H

#include <pons/device.h>

#define MAP_LINE 64            /* bytes of a cache line                                           */

/*
 * Prefetch distances in bytes: into L1, which holds a few times this distance, and into L2, which
 * has more outstanding cache lines.
 */
#define MAP_AHEAD 4096
#define MAP_FAR_AHEAD 16384

/* Addressing mode: how an operand moves from unit to unit. */
typedef enum map_addressing {
    MAP_STAY = 0,        /* the same lanes for every unit                                         */
    MAP_PERIOD,          /* floats of a periodic value, by the unit's first lane in the cycle     */
    MAP_LANES,           /* floats                                                                */
    MAP_WORDS,           /* 2 bytes a lane                                                        */
    MAP_BYTES,           /* 1 byte a lane                                                         */
    /* moments by period or by lane; lanes of a remainder have accumulators of their own */
    MAP_MOMENTS_PERIOD,
    MAP_MOMENTS_LANES,
    MAP_ADDRESSINGS
} map_addressing;

/*
 * An address: the sum of a base of the unit, 'place', and the unit's offset for the addressing
 * mode.
 */
typedef struct map_address {
    int64_t place;
    int32_t base;
    map_addressing addressing;
} map_address;

typedef enum map_code {
    MAP_CODE_END = 0,      /* return to the caller                                                */
    MAP_CODE_LOAD_F32,     /* [0]                                                                 */
    MAP_CODE_LOAD_BF16,
    MAP_CODE_LOAD_EVEN,    /* [0] is even: the same in every vector                               */
    MAP_CODE_LOAD_U8,
    MAP_CODE_PAIR_FIRST_F32, /* one of two interleaved channels at [0]                            */
    MAP_CODE_PAIR_SECOND_F32, MAP_CODE_PAIR_FIRST_BF16, MAP_CODE_PAIR_SECOND_BF16,
    MAP_CODE_KEEP,         /* store floats to a strip at [0]                                      */
    MAP_CODE_STORE_F32,
    MAP_CODE_STORE_BF16,
    MAP_CODE_STREAM_F32,   /* non-temporal stores                                                 */
    MAP_CODE_STREAM_BF16,
    MAP_CODE_FETCH_32,     /* prefetch [0] at MAP_AHEAD and MAP_FAR_AHEAD; 32 bits a lane */
    MAP_CODE_FETCH_16,
    MAP_CODE_FETCH_8,
    MAP_CODE_FETCH_GROUPS, /* prefetch by the table of 'what'; of interleaved channels            */
    MAP_CODE_FETCH_INTERLEAVED,
    MAP_CODE_GROUPS_F32,   /* groups of sixteen lanes at [0], by the table of 'what'              */
    MAP_CODE_GROUPS_BF16,
    MAP_CODE_STORE_GROUPS_F32,
    MAP_CODE_STORE_GROUPS_BF16,
    MAP_CODE_NEG, MAP_CODE_ABS, MAP_CODE_SQRT, MAP_CODE_NOT,
    /* accumulator operation [0]; _R: [0] operation accumulator                                   */
    MAP_CODE_ADD, MAP_CODE_MUL, MAP_CODE_SUB, MAP_CODE_SUB_R, MAP_CODE_DIV, MAP_CODE_DIV_R,
    MAP_CODE_MIN, MAP_CODE_MIN_R, MAP_CODE_MAX, MAP_CODE_MAX_R,
    MAP_CODE_MAX_NAN, MAP_CODE_MAX_NAN_R, MAP_CODE_MIN_NAN, MAP_CODE_MIN_NAN_R,
    MAP_CODE_EQUAL, MAP_CODE_NOT_EQUAL, MAP_CODE_GREATER, MAP_CODE_GREATER_EQUAL,
    MAP_CODE_LESS, MAP_CODE_LESS_EQUAL,
    /* variants of the most common ones with [0] even, or in bf16                                 */
    MAP_CODE_ADD_EVEN, MAP_CODE_MUL_EVEN, MAP_CODE_SUB_EVEN, MAP_CODE_SUB_R_EVEN,
    MAP_CODE_DIV_EVEN, MAP_CODE_DIV_R_EVEN,
    MAP_CODE_ADD_BF16, MAP_CODE_MUL_BF16, MAP_CODE_SUB_BF16, MAP_CODE_SUB_R_BF16,
    /* [0] compared with [1] ? [2] : accumulator; _R: ? accumulator : [2]                         */
    MAP_CODE_SELECT_EQUAL, MAP_CODE_SELECT_EQUAL_R, MAP_CODE_SELECT_NOT_EQUAL,
    MAP_CODE_SELECT_NOT_EQUAL_R, MAP_CODE_SELECT_GREATER, MAP_CODE_SELECT_GREATER_R,
    MAP_CODE_SELECT_GREATER_EQUAL, MAP_CODE_SELECT_GREATER_EQUAL_R,
    /* [0] and [1] uniform: one comparison selects all lanes                                      */
    MAP_CODE_SELECT_ALL_EQUAL, MAP_CODE_SELECT_ALL_EQUAL_R, MAP_CODE_SELECT_ALL_NOT_EQUAL,
    MAP_CODE_SELECT_ALL_NOT_EQUAL_R, MAP_CODE_SELECT_ALL_GREATER, MAP_CODE_SELECT_ALL_GREATER_R,
    MAP_CODE_SELECT_ALL_GREATER_EQUAL, MAP_CODE_SELECT_ALL_GREATER_EQUAL_R,
    /* select by greater with [1] even; with [1] and [2] even                                     */
    MAP_CODE_SELECT_GT, MAP_CODE_SELECT_GT_R, MAP_CODE_SELECT_GT_ONE, MAP_CODE_SELECT_GT_ONE_R,
    MAP_CODE_LEAKY_RELU,   /* leaky ReLU: accumulator > [0] ? accumulator : accumulator [1]       */
    MAP_CODE_LEAKY_RELU_BY,      /* [2] > [0] ? accumulator : accumulator [1]; [0] and [1] even   */
    /* x = [0], q = [1], m = [2], g = accumulator (MAP_NODE_LEAKY_RELU_GRADIENT) */
    MAP_CODE_LEAKY_RELU_GRADIENT,
    MAP_CODE_LEAKY_RELU_GRADIENT_EVEN, /* [1] and [2] even                                        */
    MAP_CODE_SUM,          /* add the existing lanes to the accumulators at [0]                   */
    MAP_CODE_MAXIMUM, MAP_CODE_MINIMUM,
    MAP_CODE_MOMENTS,      /* means at [0], squares at [1]                                        */
    /*
     * moments of dense [2], plus [3] in _PLUS. 'rows' 0: by period, all whole periods at once.
     * 'rows' 1 and 2: by cycle, a whole tile at once; 2: the pass has nothing else.
     */
    MAP_CODE_MOMENTS_F32, MAP_CODE_MOMENTS_F32_PLUS, MAP_CODE_MOMENTS_F32_PLUS_EVEN,
    MAP_CODE_MOMENTS_BF16, MAP_CODE_MOMENTS_BF16_PLUS, MAP_CODE_MOMENTS_BF16_PLUS_EVEN,
    MAP_CODE_CALL,         /* [0] = call.function([1], [2], [3]), then loaded                     */
    /*
     * call.visit(unit, instruction), which writes up to 'rows' strips at [0] and [1]; the
     * accumulator is lost
     */
    MAP_CODE_VISIT,
    MAP_CODE_COMPILED,     /* a run of instructions, compiled (jit.h)                     */
    MAP_CODE_COUNT
} map_code;

typedef struct map_instruction map_instruction;

/* The unit of lanes that is processed, and its position in the tile. */
typedef struct map_unit {
    _Alignas(64) char *const *base; /* one cache line together with the offsets                   */
    int64_t offset_of_addressing[MAP_ADDRESSINGS];   /* byte offset of each addressing mode       */
    int lane, lanes;             /* first lane of the unit in the tile; lanes of it that exist    */
    int last;                    /* end of the loop over units                                    */
    int points;                  /* points of the tile                                            */
    int cycle, cycle_lane;       /* cycle of the plan; lane in it where the unit begins           */
    int period, period_lane;     /* period of the plan; lane in it where the unit begins          */
    int periods;                 /* whole periods of the tile before the unit                     */
    /* elements in the accumulators of a period, and of a remainder, when the tile began */
    int earlier[2];
    const int *cycles;           /* elements in the accumulators of a cycle, and of a remainder   */
    int64_t moments[2];          /* byte offset of the accumulators of a period, of a tile        */
    int numbers[2];            /* elements in each accumulator, with this one: by period, by tile */
    int64_t first;               /* index of the tile's first point                               */
    const pons_step_key *step_key;
    const struct map_plan *plan;
} map_unit;

typedef void (*map_function)(float *r, const float *a, const float *b, const float *c, int n);
typedef void (*map_visit)(const map_unit *unit, const map_instruction *i);

struct map_instruction {
    void (*run)(void);           /* cast to the machine's own function type                       */
    map_address at[4];
    union { map_function function; map_visit visit; } call;
    const void *what;            /* GROUPS, FETCH: map_access; VISIT: map_access or pons_value    */
    int rows;                   /* VISIT: channels; FETCH: bytes of a point; MOMENTS_*: see above */
    map_code code;
};

/* Support for compilation to machine code (jit.c). */
typedef enum map_compiles { MAP_COMPILES_NOT = 0, MAP_COMPILES, MAP_COMPILES_BF16 } map_compiles;

typedef struct map_machine {
    int unit, vector;            /* lanes of a unit; of one register                              */
    map_compiles compiles;
    void (*code[MAP_CODE_COUNT])(void);
    /* Run the code for each unit until unit->last. */
    void (*begin)(const map_instruction *first, map_unit *unit);
    void (*finish)(void);        /* make stores visible before other threads read them            */
    /* Copy cache lines with non-temporal stores; NULL if the machine has none.                   */
    void (*non_temporal)(void *to, const void *from, size_t lines);
} map_machine;

static inline void map_unit_begin_period(map_unit *u)
{
    bool rest = u->points - u->periods * u->period < u->period;

    u->period_lane = 0;
    u->moments[0] = rest ? 8 * (int64_t)u->period : 0;
    u->numbers[0] = u->earlier[rest] + (rest ? 0 : u->periods) + 1;
}

/*
 * Keep the value in a scalar register: the compiler would collect the values in a vector, which is
 * slower.
 */
#define MAP_BY_ITSELF(x) __asm__("" : "+r"(x))

/* All offsets of addressing modes follow from the lane. */
static inline void map_unit_offsets(map_unit *u)
{
    int64_t lane = u->lane, in_cycle = u->cycle_lane, in_period = u->period_lane;
    int64_t halves = 2 * lane, floats = 4 * lane;

    in_cycle *= 4;
    in_period *= 4;
    MAP_BY_ITSELF(in_cycle);
    MAP_BY_ITSELF(in_period);
    MAP_BY_ITSELF(lane);
    MAP_BY_ITSELF(halves);
    MAP_BY_ITSELF(floats);
    u->offset_of_addressing[MAP_PERIOD] = in_cycle;
    u->offset_of_addressing[MAP_LANES] = floats;
    u->offset_of_addressing[MAP_WORDS] = halves;
    u->offset_of_addressing[MAP_BYTES] = lane;
    u->offset_of_addressing[MAP_MOMENTS_PERIOD] = u->moments[0] + in_period;
    u->offset_of_addressing[MAP_MOMENTS_LANES] = u->moments[1] + floats;
}

static inline void *map_at(const map_unit *unit, const map_address *a)
{
    return unit->base[a->base] + a->place + unit->offset_of_addressing[a->addressing];
}

#endif
