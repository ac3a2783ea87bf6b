/*
 * interpreter.h - the machine that map programs run on (interpreter.c).
 *
 * Eight vector registers, the accumulator, hold the 'unit' lanes of one value. An instruction
 * changes them, or brings them to or from memory, and calls the next one, with the registers as
 * arguments: the compiler turns these calls into jumps, and values stay in registers from one
 * instruction to the next.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_H
#define PLUGINS_DEVICES_CPU_MAP_INTERPRETER_INTERPRETER_H

#include <pons/device.h>

#define MAP_LINE 64            /* bytes of memory that come and go together                       */

/*
 * Bytes that inputs are asked for before they are read: to come into the first cache, which keeps a
 * few times this, and into the second, which waits for more lines of memory at a time.
 */
#define MAP_AHEAD 4096
#define MAP_FAR_AHEAD 16384

/* Where an operand goes on from unit to unit. */
typedef enum map_walk {
    MAP_STAY = 0,        /* the same lanes for every unit                                         */
    MAP_PERIOD,          /* floats, strip after strip where it begins in plan->cycle lanes        */
    MAP_LANES,           /* floats                                                                */
    MAP_HALVES,          /* 2 bytes a lane                                                        */
    MAP_BYTES,           /* 1 byte a lane                                                         */
    MAP_MOMENTS_PERIOD,  /* like these, but the lanes of a remainder go to accumulators apart     */
    MAP_MOMENTS_LANES,
    MAP_WALKS
} map_walk;

/* At map_unit.base[base] + place + map_unit.walked[walk]. */
typedef struct map_address {
    int64_t place;
    int32_t base;
    map_walk walk;
} map_address;

typedef enum map_code {
    MAP_CODE_END = 0,      /* back to the caller                                                  */
    MAP_CODE_LOAD_F32,     /* [0]                                                                 */
    MAP_CODE_LOAD_BF16,
    MAP_CODE_LOAD_EVEN,    /* [0] even: the lanes of a vector come again in all vectors           */
    MAP_CODE_LOAD_U8,
    MAP_CODE_PAIR_FIRST_F32, /* one of two channels that lie beside each other at [0]             */
    MAP_CODE_PAIR_SECOND_F32, MAP_CODE_PAIR_FIRST_BF16, MAP_CODE_PAIR_SECOND_BF16,
    MAP_CODE_KEEP,         /* to [0], floats                                                      */
    MAP_CODE_STORE_F32,
    MAP_CODE_STORE_BF16,
    MAP_CODE_STREAM_F32,   /* the same, past the cache                                            */
    MAP_CODE_STREAM_BF16,
    MAP_CODE_FETCH_32,     /* what lies MAP_AHEAD and more behind the unit at [0], 32 bits a lane */
    MAP_CODE_FETCH_16,
    MAP_CODE_FETCH_8,
    MAP_CODE_FETCH_GROUPS, /* the same where the table of 'what' tells; all channels of a point   */
    MAP_CODE_FETCH_INTERLEAVED,
    MAP_CODE_GROUPS_F32,   /* sixteen lanes beside each other at [0], where the table of 'what'   */
    MAP_CODE_GROUPS_BF16,  /* tells for each                                                      */
    MAP_CODE_STORE_GROUPS_F32,
    MAP_CODE_STORE_GROUPS_BF16,
    MAP_CODE_NEG, MAP_CODE_ABS, MAP_CODE_SQRT, MAP_CODE_NOT,
    /* accumulator and [0]; _R: [0] and accumulator                                               */
    MAP_CODE_ADD, MAP_CODE_MUL, MAP_CODE_SUB, MAP_CODE_SUB_R, MAP_CODE_DIV, MAP_CODE_DIV_R,
    MAP_CODE_MIN, MAP_CODE_MIN_R, MAP_CODE_MAX, MAP_CODE_MAX_R,
    MAP_CODE_JOIN_MAX, MAP_CODE_JOIN_MAX_R, MAP_CODE_JOIN_MIN, MAP_CODE_JOIN_MIN_R,
    MAP_CODE_EQUAL, MAP_CODE_NOT_EQUAL, MAP_CODE_GREATER, MAP_CODE_GREATER_EQUAL,
    MAP_CODE_LESS, MAP_CODE_LESS_EQUAL,
    /* the same with [0] even, and in bf16, for the commonest                                     */
    MAP_CODE_ADD_EVEN, MAP_CODE_MUL_EVEN, MAP_CODE_SUB_EVEN, MAP_CODE_SUB_R_EVEN,
    MAP_CODE_DIV_EVEN, MAP_CODE_DIV_R_EVEN,
    MAP_CODE_ADD_BF16, MAP_CODE_MUL_BF16, MAP_CODE_SUB_BF16, MAP_CODE_SUB_R_BF16,
    /* [0] compared with [1] ? [2] : accumulator; _R: ? accumulator : [2]                         */
    MAP_CODE_PICK_EQUAL, MAP_CODE_PICK_EQUAL_R, MAP_CODE_PICK_NOT_EQUAL,
    MAP_CODE_PICK_NOT_EQUAL_R, MAP_CODE_PICK_GREATER, MAP_CODE_PICK_GREATER_R,
    MAP_CODE_PICK_GREATER_EQUAL, MAP_CODE_PICK_GREATER_EQUAL_R,
    /* [0] and [1] uniform: all lanes or none                                                     */
    MAP_CODE_PICK_ALL_EQUAL, MAP_CODE_PICK_ALL_EQUAL_R, MAP_CODE_PICK_ALL_NOT_EQUAL,
    MAP_CODE_PICK_ALL_NOT_EQUAL_R, MAP_CODE_PICK_ALL_GREATER, MAP_CODE_PICK_ALL_GREATER_R,
    MAP_CODE_PICK_ALL_GREATER_EQUAL, MAP_CODE_PICK_ALL_GREATER_EQUAL_R,
    /* greater, [1] even; [1] and [2] even                                                        */
    MAP_CODE_ABOVE, MAP_CODE_ABOVE_R, MAP_CODE_ABOVE_ONE, MAP_CODE_ABOVE_ONE_R,
    MAP_CODE_BEND,         /* accumulator, times [1] unless it is greater than [0]; both even     */
    MAP_CODE_BEND_BY,      /* accumulator, times [1] unless [2] is greater than [0]; those even   */
    MAP_CODE_BEND_GRADIENT, /* x [0], q [1], m [2], g the accumulator (MAP_NODE_BEND_GRADIENT)    */
    MAP_CODE_BEND_GRADIENT_EVEN, /* [1] and [2] even                                              */
    MAP_CODE_SUM,          /* accumulators at [0] joined by the lanes that exist                  */
    MAP_CODE_MAXIMUM, MAP_CODE_MINIMUM,
    MAP_CODE_MOMENTS,      /* means at [0], squares at [1]                                        */
    /*
     * the same of dense [2], to which [3] is added (_PLUS), by period: of all whole ones at once;
     */
    /* 'rows' not 0: by cycle, of a tile at once; 2: there is nothing else to do                  */
    MAP_CODE_MOMENTS_F32, MAP_CODE_MOMENTS_F32_PLUS, MAP_CODE_MOMENTS_F32_PLUS_EVEN,
    MAP_CODE_MOMENTS_BF16, MAP_CODE_MOMENTS_BF16_PLUS, MAP_CODE_MOMENTS_BF16_PLUS_EVEN,
    MAP_CODE_CALL,         /* [0] = call.function([1], [2], [3]), then loaded                     */
    MAP_CODE_VISIT,        /* call.visit(unit, instruction); the accumulator is lost; it writes   */
                           /* at most 'rows' strips at [0] and at [1]                             */
    MAP_CODE_COMPILED,     /* some of them, see jit.h                                     */
    MAP_CODE_COUNT
} map_code;

typedef struct map_instruction map_instruction;

/* The lanes that the machine works on now, of a tile, and how it goes on. */
typedef struct map_unit {
    _Alignas(64) char *const *base; /* with 'walked' a line of memory                             */
    int64_t walked[MAP_WALKS];   /* bytes                                                         */
    int lane, lanes;             /* of the tile: the unit's first; how many of the unit exist     */
    int last;                    /* units begin before this lane                                  */
    int points;                  /* of the tile                                                   */
    int cycle, cycle_lane;       /* of the plan; of MAP_PERIOD the unit's first lane              */
    int period, period_lane;     /* of the plan; the unit's first lane in its period              */
    int periods;                 /* whole ones of the tile before the unit                        */
    int earlier[2];              /* numbers in the accumulators of a period when the tile began;  */
                                 /* in those of a remainder                                       */
    const int *cycles;           /* the same of a cycle                                           */
    int64_t moments[2];          /* bytes to the accumulators of a period, of a tile              */
    int numbers[2];              /* in each accumulator, with this one: of a period, of a tile    */
    int64_t first;               /* number of the tile's first point                              */
    const pons_step_key *step_key;
    const struct map_plan *plan;
} map_unit;

typedef void (*map_function)(float *r, const float *a, const float *b, const float *c, int n);
typedef void (*map_visit)(const map_unit *unit, const map_instruction *i);

struct map_instruction {
    void (*run)(void);           /* the machine's own type                                        */
    map_address at[4];
    union { map_function function; map_visit visit; } call;
    const void *what;            /* GROUPS, FETCH: map_access; VISIT: this or map_node            */
    int rows;                    /* VISIT: channels; FETCH: bytes of a point; MOMENTS_*: above    */
    map_code code;
};

/* Can its instructions be written as code of the processor (jit.c)? */
typedef enum map_compiles { MAP_COMPILES_NOT = 0, MAP_COMPILES, MAP_COMPILES_BF16 } map_compiles;

typedef struct map_machine {
    int unit, vector;            /* lanes; of one register                                        */
    map_compiles compiles;
    void (*code[MAP_CODE_COUNT])(void);
    /* The code for each unit until unit->last. */
    void (*begin)(const map_instruction *first, map_unit *unit);
    void (*finish)(void);        /* before other threads may read what was stored                 */
    /* Lines of memory to others, past the caches; NULL where nothing goes past them.             */
    void (*past)(void *to, const void *from, size_t lines);
} map_machine;

static inline void map_unit_begin_period(map_unit *u)
{
    bool rest = u->points - u->periods * u->period < u->period;

    u->period_lane = 0;
    u->moments[0] = rest ? 8 * (int64_t)u->period : 0;
    u->numbers[0] = u->earlier[rest] + (rest ? 0 : u->periods) + 1;
}

/* The compiler would gather the numbers in a vector, which takes longer than to write each. */
#define MAP_BY_ITSELF(x) __asm__("" : "+r"(x))

/* All places follow from the lane. */
static inline void map_unit_place(map_unit *u)
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
    u->walked[MAP_PERIOD] = in_cycle;
    u->walked[MAP_LANES] = floats;
    u->walked[MAP_HALVES] = halves;
    u->walked[MAP_BYTES] = lane;
    u->walked[MAP_MOMENTS_PERIOD] = u->moments[0] + in_period;
    u->walked[MAP_MOMENTS_LANES] = u->moments[1] + floats;
}

static inline void *map_at(const map_unit *unit, const map_address *a)
{
    return unit->base[a->base] + a->place + unit->walked[a->walk];
}

#endif
