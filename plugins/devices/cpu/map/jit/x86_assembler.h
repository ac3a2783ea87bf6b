/*
 * x86_assembler.h - an assembler for the x86-64 and AVX-512 instructions that jit.c needs.
 *
 * Encodings are from the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. An
 * x86_code belongs to one thread at a time.
 */
#ifndef PLUGINS_DEVICES_CPU_MAP_JIT_X86_ASSEMBLER_H
#define PLUGINS_DEVICES_CPU_MAP_JIT_X86_ASSEMBLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* General registers. Vectors and masks are plain numbers, 0 to 31 and 0 to 7. */
typedef enum x86_register {
    X86_RAX = 0, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9,
    X86_R10, X86_R11, X86_R12, X86_R13, X86_R14, X86_R15,
    X86_CODE = 16 /* as a base: relative to the code, at offset 'displacement'                    */
} x86_register;

/* A vector register, or memory at base + index + displacement. */
typedef struct x86_operand {
    bool memory;
    bool broadcast;     /* one element for all lanes                                              */
    bool indexed;
    int number;         /* vector register                                                        */
    x86_register base, index;
    int64_t displacement;
} x86_operand;

/* Prefix, opcode map and opcode of an instruction; 'bytes' is the size of a memory operand. */
typedef struct x86_operation {
    uint8_t prefix;     /* 0: none, 1: 66, 2: F3, 3: F2                                           */
    uint8_t table;      /* opcode map 1: 0F, 2: 0F 38, 3: 0F 3A                                   */
    uint8_t number;
    uint8_t bytes;
    uint8_t length;     /* vector length 2: 512 bits, 1: 256                                      */
} x86_operation;

extern const x86_operation x86_load, x86_store, x86_store_half, x86_stream, x86_stream_half,
    x86_add, x86_mul, x86_sub, x86_div, x86_sqrt, x86_min, x86_max, x86_and, x86_or, x86_xor,
    x86_add_integer, x86_test_integer, x86_compare, x86_blend, x86_broadcast, x86_words_widened,
    x86_bytes_widened, x86_from_integer, x86_shift, x86_permute_two, x86_multiply_add,
    x86_classify, x86_bf16_of_two, x86_bf16_of_one, x86_store_words;

/* Opcode extension of x86_shift by an immediate. */
enum { X86_SHIFT_LEFT = 6, X86_SHIFT_RIGHT = 2 };
/* Predicates of x86_compare. */
enum { X86_EQUAL = 0x00, X86_UNORDERED = 0x03, X86_NOT_EQUAL = 0x04, X86_LESS = 0x11,
       X86_LESS_EQUAL = 0x12, X86_GREATER_EQUAL = 0x1d, X86_GREATER = 0x1e };

typedef struct x86_code {
    uint8_t *byte;      /* owned, from malloc                                                     */
    size_t size, room;
    bool failed;        /* out of memory, or a displacement out of range                          */
} x86_code;

static inline x86_operand x86_vector(int number) { return (x86_operand){ .number = number }; }

static inline x86_operand x86_at(x86_register base, int64_t displacement)
{
    return (x86_operand){ .memory = true, .base = base, .displacement = displacement };
}

/*
 * to = left operation right. A 'mask' of 0 means all lanes. Masked-out lanes become 0 with 'zero';
 * otherwise they keep their value. 'number' is the immediate, or -1. The source of an instruction
 * with one source is 'right', and 'left' is 0. The source of a store is 'to'.
 */
void x86_put(x86_code *c, x86_operation operation, int to, int left, x86_operand right, int mask,
             bool zero, int number);

/* General registers; memory operands are never broadcast. */
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
void x86_prefetch(x86_code *c, x86_operand memory, int cache);
void x86_scale(x86_code *c, x86_register r, int bits); /* r <<= bits                              */

/* Scalars in the lowest lane. */
void x86_float_of_32(x86_code *c, int to, x86_operand from);
void x86_divide_one(x86_code *c, int to, int left, int right);

/* x86_jump_unless_zero then jumps if any bit is set */
void x86_test_masks(x86_code *c, int left, int right);

void x86_entry(x86_code *c);                    /* endbr64: target of an indirect jump            */
void x86_jump(x86_code *c, x86_operand memory); /* indirect jump                                  */
/* Jumps return the offset of their distance, which x86_land fills in. */
size_t x86_jump_unless_zero(x86_code *c);
size_t x86_jump_if_less(x86_code *c);           /* signed comparison                              */
size_t x86_jump_unless_less(x86_code *c);
size_t x86_jump_always(x86_code *c);
void x86_land(x86_code *c, size_t jump);
void x86_land_at(x86_code *c, size_t jump, size_t to);

/* Data in the code, aligned to its size; returns its offset. */
size_t x86_constant(x86_code *c, const void *bytes, size_t size);

/*
 * Map the code as executable, read-only pages; NULL if the system refuses. x86_release unmaps it.
 */
void *x86_finish(const x86_code *c);
void x86_release(void *memory, size_t size);

#endif
