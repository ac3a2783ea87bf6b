/*
 * jit_internal.h - what the files that compile map programs share (jit*.c).
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_JIT_JIT_INTERNAL_H
#define PLUGINS_DEVICES_CPU_MAP_JIT_JIT_INTERNAL_H

#include "cpu/map/jit/jit.h"
#include "cpu/map/jit/x86_assembler.h"

#define VECTORS 8              /* of a unit                                                       */
#define LANES 16               /* of a vector                                                     */
#define POOL 28                /* registers for values; those behind are for what a step needs    */
#define KEEPS 64               /* strips that a run may keep                                      */
#define POINTERS 11
#define FREE_POINTERS 6        /* the others belong to the caller                                 */
#define COUNTER X86_R15        /* of turns                                                        */

/* What the accumulator and memory are to an instruction. */
typedef enum compile_role {
    ROLE_ALONE = 0,            /* it is part of no run                                            */
    ROLE_LOAD,                 /* the accumulator becomes [0]                                     */
    ROLE_MAKE,                 /* or a value of another kind of memory                            */
    ROLE_CHANGE,               /* it is read and changed, with [0] to [count - 1]                 */
    ROLE_KEEP,
    ROLE_USE,                  /* it is read                                                      */
    ROLE_FETCH
} compile_role;

typedef struct compile_trait {
    uint8_t role;
    uint8_t count;             /* floats that are read in memory: [0] to [count - 1]              */
    uint8_t even;              /* a bit for each of them of which every vector is the same        */
} compile_trait;

extern const compile_trait compile_traits[MAP_CODE_COUNT];

enum { NOWHERE = -1, IN_MEMORY = -2 };
enum { TEMPORARY = POOL };     /* and three behind it                                             */

typedef struct value {
    int last;                  /* step that reads it last, or -1                                  */
    int reads;
    bool steady;               /* the same in every vector: read once for a unit                  */
    bool reciprocal;           /* steady, 1 / map_unit.numbers[at.place]                          */
    map_address at;            /* steady                                                          */
    int reg[2];                /* of both vectors that are together                               */
} value;

/* An instruction, with the values that its accumulator and its operands are. */
typedef struct step {
    const map_instruction *i;
    int in, to;                /* values or NOWHERE                                               */
    int from[4];               /* values, or IN_MEMORY at i->at                                   */
} step;

typedef enum pointer_kind { POINTER_OPERAND, POINTER_PAIR_32, POINTER_PAIR_16, POINTER_TABLE }
    pointer_kind;

/* A general register and what it points to while a unit is worked on. */
typedef struct pointer {
    pointer_kind kind;
    int32_t base;
    map_walk walk;
    const void *table;
    x86_register in;
    size_t constant;           /* TABLE: its address in the code                                  */
} pointer;

typedef struct late {          /* code behind the run for what is seldom                          */
    size_t jump, back;
    int reg[2], count;
    x86_operand to;
} late;

/* Numbers that lie beside the code. */
enum { CONSTANT_ONE, CONSTANT_SIGN, CONSTANT_SIZE, CONSTANT_UPPER, CONSTANT_HALF, CONSTANT_ODD,
       CONSTANT_BIT, CONSTANT_QUIET, CONSTANTS };

typedef struct compiler {
    const map_machine *machine;
    const map_plan *plan;
    x86_code *code;
    const map_instruction *program; /* all instructions of the main program                       */
    int program_count;
    int first, end;            /* of the run                                                      */
    step *step;
    int step_count;
    value *value;
    int value_count;
    struct { map_address at; int value; } kept[KEEPS];
    int kept_count;
    int together;              /* vectors at a time                                               */
    bool streams;              /* past the caches, as the instructions ask for                    */
    pointer pointer[POINTERS];
    int pointer_count;
    bool pointers_loaded;      /* from here on there are no others                                */
    late *late;
    int late_count;
    size_t constant[CONSTANTS], pair_places;
    bool failed;               /* the run is too much, for registers or otherwise                 */
} compiler;

/* jit_steps.c: the run as steps, with registers for its values; false: there are too few */
bool compile_steps(compiler *c);

/*
 * jit_operands.c: numbers for all runs; all that a run points to, before it has code; code
 * that finds it, that reads what stays, and that gives the caller's registers back
 */
void compile_constants(compiler *c);
void compile_find_pointers(compiler *c);
void compile_load_pointers(compiler *c);
void compile_load_steady(compiler *c);
void compile_restore(compiler *c);
/* On to the next vectors; what walks so through the worker's buffers back by as many lanes. */
void compile_move_pointers(compiler *c);
void compile_rewind(compiler *c, map_walk walk, int lanes);
/* 'bytes' behind the first lane of this turn; one of two channels; sixteen lanes by a table. */
x86_operand compile_place(compiler *c, const map_address *a, int64_t bytes);
x86_operand compile_pair_place(compiler *c, const map_address *a, pointer_kind kind, int64_t bytes);
x86_operand compile_group_place(compiler *c, const map_instruction *i, int vector, bool half);
/* A constant, as a broadcast reads it; the same for every lane of another instruction. */
x86_operand compile_number(const compiler *c, int which);
x86_operand compile_constant(const compiler *c, int which);

/* jit_vector.c: all steps of all vectors; what is seldom, behind the run */
void compile_vectors(compiler *c);
void compile_late(compiler *c);

#define UNIT_AT(member) ((int64_t)offsetof(map_unit, member))

#endif
