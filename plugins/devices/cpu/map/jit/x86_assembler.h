/*
 * x86_assembler.h - instructions of x86-64 with AVX-512, written as bytes.
 *
 * Forms and numbers from the Intel 64 and IA-32 Architectures Software Developer's Manual, volume
 * 2. Only what jit.c needs. One thread at a time writes to an x86_code.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_JIT_X86_ASSEMBLER_H
#define PLUGINS_DEVICES_CPU_MAP_JIT_X86_ASSEMBLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers for addresses; vectors and masks are plain numbers, 0 to 31 and 0 to 7. */
typedef enum x86_register {
    X86_RAX = 0, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9,
    X86_R10, X86_R11, X86_R12, X86_R13, X86_R14, X86_R15,
    X86_CODE = 16 /* as a base: the place in the code itself that 'displacement' names            */
} x86_register;

/* A vector register, or memory at base + index + displacement. */
typedef struct x86_operand {
    bool memory;
    bool broadcast;     /* one number for all lanes                                               */
    bool indexed;
    int number;         /* the register                                                           */
    x86_register base, index;
    int64_t displacement;
} x86_operand;

/* Prefix, table and number of an instruction; 'bytes' is the size of a memory operand. */
typedef struct x86_operation {
    uint8_t prefix;     /* 0: none, 1: 66, 2: F3, 3: F2                                           */
    uint8_t table;      /* 1: 0F, 2: 0F 38, 3: 0F 3A                                              */
    uint8_t number;
    uint8_t bytes;
    uint8_t length;     /* of the vectors: 2: 512 bits, 1: 256                                    */
} x86_operation;

extern const x86_operation x86_load, x86_store, x86_store_half, x86_stream, x86_stream_half,
    x86_add, x86_mul, x86_sub, x86_div, x86_sqrt, x86_min, x86_max, x86_and, x86_or, x86_xor,
    x86_add_integer, x86_test_integer, x86_compare, x86_blend, x86_broadcast, x86_words_widened,
    x86_bytes_widened, x86_from_integer, x86_shift, x86_permute_two, x86_multiply_add,
    x86_classify, x86_halves_of_two, x86_halves_of_one, x86_store_words;

/* Third opcode of x86_shift, by a number of bits. */
enum { X86_SHIFT_LEFT = 6, X86_SHIFT_RIGHT = 2 };
/* What x86_compare asks. */
enum { X86_EQUAL = 0x00, X86_UNORDERED = 0x03, X86_NOT_EQUAL = 0x04, X86_LESS = 0x11,
       X86_LESS_EQUAL = 0x12, X86_GREATER_EQUAL = 0x1d, X86_GREATER = 0x1e };

typedef struct x86_code {
    uint8_t *byte;      /* malloc                                                                 */
    size_t size, room;
    bool failed;        /* no memory, or a distance that does not fit                             */
} x86_code;

static inline x86_operand x86_vector(int number) { return (x86_operand){ .number = number }; }

static inline x86_operand x86_at(x86_register base, int64_t displacement)
{
    return (x86_operand){ .memory = true, .base = base, .displacement = displacement };
}

/*
 * to = left operation right. 'mask' 0: all lanes; with 'zero' the others become 0, else they keep
 * what they have. 'number' follows where the instruction has one, else -1. Where the manual has
 * only one source it is 'right', and 'left' is 0; a store's source is 'to'.
 */
void x86_put(x86_code *c, x86_operation operation, int to, int left, x86_operand right, int mask,
             bool zero, int number);

/* General registers; memory is never broadcast there. */
void x86_load_64(x86_code *c, x86_register to, x86_operand from);
void x86_load_signed_32(x86_code *c, x86_register to, x86_operand from);
void x86_add_64(x86_code *c, x86_register to, x86_operand from);
void x86_set_32(x86_code *c, x86_register to, uint32_t number);
void x86_add_number(x86_code *c, x86_register to, int64_t number);
void x86_compare_32(x86_code *c, x86_operand memory, int32_t number);
void x86_add_32(x86_code *c, x86_operand memory, int32_t number);
void x86_compare_with(x86_code *c, x86_register r, x86_operand memory); /* 32 bits               */
void x86_test_8(x86_code *c, x86_register r, uint8_t bits);
void x86_push(x86_code *c, x86_register r);
void x86_pop(x86_code *c, x86_register r);
void x86_fetch(x86_code *c, x86_operand memory, int cache);
void x86_scale(x86_code *c, x86_register r, int bits); /* r <<= bits                              */

/* A number in the lowest lane. */
void x86_float_of_32(x86_code *c, int to, x86_operand from);
void x86_divide_one(x86_code *c, int to, int left, int right);

void x86_test_masks(x86_code *c, int left, int right); /* then x86_jump_unless_zero: any bit      */

void x86_entry(x86_code *c);                    /* what a jump through a register may land on     */
void x86_jump(x86_code *c, x86_operand memory); /* to where memory points                         */
/* The place of a distance that x86_land fills in. */
size_t x86_jump_unless_zero(x86_code *c);
size_t x86_jump_if_less(x86_code *c);           /* signed                                         */
size_t x86_jump_unless_less(x86_code *c);
size_t x86_jump_always(x86_code *c);
void x86_land(x86_code *c, size_t jump);
void x86_land_at(x86_code *c, size_t jump, size_t to);

/* Bytes that are no instruction, at a multiple of their size; where they lie. */
size_t x86_constant(x86_code *c, const void *bytes, size_t size);

/*
 * The code as memory that can be run and not be written, of whole pages; NULL where the system
 * refuses. x86_release gives it back.
 */
void *x86_finish(const x86_code *c);
void x86_release(void *memory, size_t size);

#endif
