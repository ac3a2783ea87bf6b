/*
 * jit_internal.h - declarations shared by the compiler of map programs (jit*.c).
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_JIT_JIT_INTERNAL_H
#define PLUGINS_DEVICES_CPU_MAP_JIT_JIT_INTERNAL_H

#include "cpu/map/jit/jit.h"
#include "cpu/map/jit/x86_assembler.h"

#define VECTORS 8              /* vectors of a unit                                               */
#define LANES 16               /* lanes of a vector                                               */
#define POOL 28                /* registers for values; the rest are temporaries of a step        */
#define KEEPS 64               /* most strips that a run may keep                                 */
#define POINTERS 11
#define FREE_POINTERS 6        /* caller-saved ones; the others are saved and restored            */
#define COUNTER X86_R15        /* loop counter                                                    */

/* The use that an instruction makes of the accumulator and memory. */
typedef enum jit_role {
    ROLE_ALONE = 0,            /* not part of any run                                             */
    ROLE_LOAD,                 /* loads the accumulator from [0]                                  */
    ROLE_MAKE,                 /* makes the accumulator from memory of another type or layout     */
    ROLE_CHANGE,               /* changes the accumulator, with operands [0] to [count - 1]       */
    ROLE_KEEP,
    ROLE_USE,                  /* reads the accumulator                                           */
    ROLE_FETCH
} jit_role;

typedef struct jit_trait {
    uint8_t role;
    uint8_t count;             /* float operands in memory: [0] to [count - 1]                    */
    uint8_t even;              /* bit k: operand k is the same in every vector                    */
} jit_trait;

extern const jit_trait jit_traits[MAP_CODE_COUNT];

enum { NOWHERE = -1, IN_MEMORY = -2 };
enum { TEMPORARY = POOL };     /* the first of four                                               */

typedef struct value {
    int last;                  /* last step that reads it, or -1                                  */
    int reads;
    bool steady;               /* the same in every vector: loaded once for each unit             */
    bool reciprocal;           /* steady; the value is 1 / map_unit.numbers[at.place]             */
    map_address at;            /* steady                                                          */
    int reg[2];                /* registers of the vectors processed together                     */
} value;

/* An instruction and the values of its accumulator and operands. */
typedef struct step {
    const map_instruction *i;
    int in, to;                /* value in the accumulator before and after, or NOWHERE           */
    int from[4];               /* operand values, or IN_MEMORY at i->at                           */
} step;

typedef enum pointer_kind { POINTER_OPERAND, POINTER_PAIR_32, POINTER_PAIR_16, POINTER_TABLE }
    pointer_kind;

/* A general register and the memory that it points to within a unit. */
typedef struct pointer {
    pointer_kind kind;
    int32_t base;
    map_addressing addressing;
    const void *table;
    x86_register in;
    size_t constant;           /* TABLE: offset in the code of the table's address                */
} pointer;

typedef struct late {          /* out-of-line code for rare cases                                 */
    size_t jump, back;
    int reg[2], count;
    x86_operand to;
} late;

/* Constants stored with the code. */
enum { CONSTANT_ONE, CONSTANT_SIGN, CONSTANT_SIZE, CONSTANT_UPPER, CONSTANT_HALF, CONSTANT_ODD,
       CONSTANT_BIT, CONSTANT_QUIET, CONSTANTS };

typedef struct jit_compiler {
    const map_machine *machine;
    const map_plan *plan;
    x86_code *code;
    const map_instruction *program; /* instructions of the main program                           */
    int program_count;
    int first, end;            /* first and end instruction of the run                            */
    step *step;
    int step_count;
    value *value;
    int value_count;
    struct { map_address at; int value; } kept[KEEPS];
    int kept_count;
    int together;              /* vectors processed together: 1 or 2                              */
    bool streams;              /* stores are non-temporal where the instructions say so           */
    pointer pointer[POINTERS];
    int pointer_count;
    bool pointers_loaded;      /* no pointer may be added                                         */
    late *late;
    int late_count;
    size_t constant[CONSTANTS], pair_places;
    bool failed;               /* the run needs too many registers or cannot be encoded           */
} jit_compiler;

/* jit_steps.c: the run as steps with registers for its values; false: too few registers */
bool jit_steps(jit_compiler *c);

/*
 * jit_operands.c: constants of all runs; the pointers of a run, before its code; code that loads
 * pointers and invariant values, and that restores the caller's registers
 */
void jit_constants(jit_compiler *c);
void jit_find_pointers(jit_compiler *c);
void jit_load_pointers(jit_compiler *c);
void jit_load_steady(jit_compiler *c);
void jit_restore(jit_compiler *c);
/*
 * Code that advances pointers to the next vectors, and code that moves pointers with this
 * addressing mode in the worker's buffers back by 'lanes'.
 */
void jit_move_pointers(jit_compiler *c);
void jit_rewind(jit_compiler *c, map_addressing addressing, int lanes);
/*
 * Memory operands: 'bytes' past the first lane of this iteration; one of two interleaved channels;
 * sixteen lanes at an offset from a table.
 */
x86_operand jit_operand(jit_compiler *c, const map_address *a, int64_t bytes);
x86_operand jit_interleaved_operand(jit_compiler *c, const map_address *a, pointer_kind kind,
                                    int64_t bytes);
x86_operand jit_group_operand(jit_compiler *c, const map_instruction *i, int vector, bool half);
/* A constant: as the source of a broadcast; as a broadcast operand of another instruction. */
x86_operand jit_broadcast_source(const jit_compiler *c, int which);
x86_operand jit_constant(const jit_compiler *c, int which);

/* jit_vector.c: all steps of all vectors; the out-of-line code */
void jit_vectors(jit_compiler *c);
void jit_out_of_line(jit_compiler *c);

#define UNIT_AT(member) ((int64_t)offsetof(map_unit, member))

#endif
