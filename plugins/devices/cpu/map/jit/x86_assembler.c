/*
 * x86_assembler.c - encoding of prefixes, operands and opcodes.
 */
#include "cpu/map/jit/x86_assembler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const x86_operation x86_load = { 0, 1, 0x10, 64, 2 };
const x86_operation x86_store = { 0, 1, 0x11, 64, 2 };
const x86_operation x86_store_half = { 0, 1, 0x11, 32, 1 };
const x86_operation x86_stream = { 0, 1, 0x2b, 64, 2 };
const x86_operation x86_stream_half = { 0, 1, 0x2b, 32, 1 };
const x86_operation x86_add = { 0, 1, 0x58, 64, 2 };
const x86_operation x86_mul = { 0, 1, 0x59, 64, 2 };
const x86_operation x86_sub = { 0, 1, 0x5c, 64, 2 };
const x86_operation x86_div = { 0, 1, 0x5e, 64, 2 };
const x86_operation x86_sqrt = { 0, 1, 0x51, 64, 2 };
const x86_operation x86_min = { 0, 1, 0x5d, 64, 2 };
const x86_operation x86_max = { 0, 1, 0x5f, 64, 2 };
const x86_operation x86_and = { 1, 1, 0xdb, 64, 2 };
const x86_operation x86_or = { 1, 1, 0xeb, 64, 2 };
const x86_operation x86_xor = { 1, 1, 0xef, 64, 2 };
const x86_operation x86_add_integer = { 1, 1, 0xfe, 64, 2 };
const x86_operation x86_test_integer = { 1, 2, 0x27, 64, 2 };
const x86_operation x86_compare = { 0, 1, 0xc2, 64, 2 };
const x86_operation x86_blend = { 1, 2, 0x65, 64, 2 };
const x86_operation x86_broadcast = { 1, 2, 0x18, 4, 2 };
const x86_operation x86_words_widened = { 1, 2, 0x33, 32, 2 };
const x86_operation x86_bytes_widened = { 1, 2, 0x31, 16, 2 };
const x86_operation x86_from_integer = { 0, 1, 0x5b, 64, 2 };
const x86_operation x86_shift = { 1, 1, 0x72, 64, 2 };
const x86_operation x86_permute_two = { 1, 2, 0x77, 64, 2 };
const x86_operation x86_multiply_add = { 1, 2, 0xb8, 64, 2 };
const x86_operation x86_classify = { 1, 3, 0x66, 64, 2 };
const x86_operation x86_bf16_of_two = { 3, 2, 0x72, 64, 2 };
const x86_operation x86_bf16_of_one = { 2, 2, 0x72, 64, 2 };
const x86_operation x86_store_words = { 2, 2, 0x33, 32, 2 };

static void byte(x86_code *c, unsigned value)
{
    if (c->failed)
        return;
    if (c->size == c->room) {
        size_t more = 2 * c->room + 1024;
        uint8_t *memory = realloc(c->byte, more);
        if (memory == NULL) {
            c->failed = true;
            return;
        }
        c->byte = memory;
        c->room = more;
    }
    c->byte[c->size++] = (uint8_t)value;
}

static void put_32(x86_code *c, int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX)
        c->failed = true;
    for (int k = 0; k < 4; k++)
        byte(c, (uint32_t)value >> 8 * k & 0xff);
}

/*
 * Write ModRM, SIB and displacement. A displacement of one byte counts units of 'unit' bytes.
 * 'behind' more bytes follow in the instruction.
 */
static void put_operand(x86_code *c, int reg, x86_operand o, int unit, int behind)
{
    unsigned middle = (unsigned)(reg & 7) << 3, low = o.base & 7;
    bool is_short = o.displacement % unit == 0 && o.displacement / unit >= -128
                 && o.displacement / unit < 128;

    if (!o.memory) {
        byte(c, 0xc0 | middle | (o.number & 7));
        return;
    }
    if (o.base == X86_CODE) {
        byte(c, middle | 5);
        put_32(c, o.displacement - (int64_t)c->size - 4 - behind);
        return;
    }
    byte(c, (is_short ? 0x40 : 0x80) | middle | (o.indexed ? 4 : low));
    if (o.indexed)
        byte(c, (unsigned)(o.index & 7) << 3 | low);
    else if (low == 4)
        byte(c, 0x24);
    if (is_short)
        byte(c, (uint8_t)(o.displacement / unit));
    else
        put_32(c, o.displacement);
}

void x86_put(x86_code *c, x86_operation operation, int to, int left, x86_operand right, int mask,
             bool zero, int number)
{
    unsigned high_base = right.memory ? (right.base < X86_CODE && right.base & 8) != 0
                                      : (right.number & 8) != 0;
    unsigned high_index = right.memory ? right.indexed && (right.index & 8) != 0
                                       : (right.number & 16) != 0;
    unsigned length = operation.length;

    byte(c, 0x62);
    byte(c, ((to & 8) == 0) << 7 | (high_index == 0) << 6 | (high_base == 0) << 5
                | ((to & 16) == 0) << 4 | operation.table);
    byte(c, (~(unsigned)left & 15) << 3 | 4 | operation.prefix);
    byte(c, (unsigned)zero << 7 | length << 5 | (unsigned)(right.memory && right.broadcast) << 4
                | ((left & 16) == 0) << 3 | (unsigned)mask);
    byte(c, operation.number);
    put_operand(c, to, right, right.broadcast ? 4 : operation.bytes, number >= 0);
    if (number >= 0)
        byte(c, (unsigned)number);
}

/* ---- general registers ----------------------------------------------------------------------- */

/* Write the REX prefix of an instruction with a register and an operand; 'wide' means 64 bits. */
static void put_rex(x86_code *c, bool wide, int reg, x86_operand o)
{
    unsigned bits = (unsigned)wide << 3 | ((reg & 8) != 0) << 2
                  | (unsigned)(o.memory && o.indexed && (o.index & 8) != 0) << 1
                  | ((o.memory ? (int)o.base : o.number) & 8) >> 3;

    if (bits != 0)
        byte(c, 0x40 | bits);
}

static void put_general(x86_code *c, bool wide, unsigned number, int reg, x86_operand o, int behind)
{
    put_rex(c, wide, reg, o);
    byte(c, number);
    put_operand(c, reg, o, 1, behind);
}

void x86_load_64(x86_code *c, x86_register to, x86_operand from)
{
    put_general(c, true, 0x8b, (int)to, from, 0);
}

void x86_load_signed_32(x86_code *c, x86_register to, x86_operand from)
{
    put_general(c, true, 0x63, (int)to, from, 0);
}

void x86_add_64(x86_code *c, x86_register to, x86_operand from)
{
    put_general(c, true, 0x03, (int)to, from, 0);
}

void x86_set_32(x86_code *c, x86_register to, uint32_t number)
{
    if (to & 8)
        byte(c, 0x41);
    byte(c, 0xb8 | (to & 7));
    put_32(c, (int32_t)number);
}

void x86_add_number(x86_code *c, x86_register to, int64_t number)
{
    put_general(c, true, 0x81, 0, x86_vector((int)to), 4);
    put_32(c, number);
}

void x86_compare_32(x86_code *c, x86_operand memory, int32_t number)
{
    put_general(c, false, 0x81, 7, memory, 4);
    put_32(c, number);
}

void x86_add_32(x86_code *c, x86_operand memory, int32_t number)
{
    put_general(c, false, 0x81, 0, memory, 4);
    put_32(c, number);
}

void x86_compare_with(x86_code *c, x86_register r, x86_operand memory)
{
    put_general(c, false, 0x3b, (int)r, memory, 0);
}

void x86_test_8(x86_code *c, x86_register r, uint8_t bits)
{
    /* a REX prefix makes the low byte of every register addressable */
    byte(c, 0x40 | (r & 8) >> 3);
    byte(c, 0xf6);
    byte(c, 0xc0 | (r & 7));
    byte(c, bits);
}

void x86_push(x86_code *c, x86_register r)
{
    if (r & 8)
        byte(c, 0x41);
    byte(c, 0x50 | (r & 7));
}

void x86_pop(x86_code *c, x86_register r)
{
    if (r & 8)
        byte(c, 0x41);
    byte(c, 0x58 | (r & 7));
}

void x86_prefetch(x86_code *c, x86_operand memory, int cache)
{
    put_rex(c, false, 0, memory);
    byte(c, 0x0f);
    byte(c, 0x18);
    put_operand(c, cache, memory, 1, 0);
}

void x86_scale(x86_code *c, x86_register r, int bits)
{
    put_general(c, true, 0xc1, 4, x86_vector((int)r), 1);
    byte(c, (unsigned)bits);
}

/* ---- scalars and masks ----------------------------------------------------------------------- */

static const x86_operation float_of_32 = { 2, 1, 0x2a, 4, 0 };
static const x86_operation divide_one = { 2, 1, 0x5e, 4, 0 };

void x86_float_of_32(x86_code *c, int to, x86_operand from)
{
    x86_put(c, float_of_32, to, to, from, 0, false, -1);
}

void x86_divide_one(x86_code *c, int to, int left, int right)
{
    x86_put(c, divide_one, to, left, x86_vector(right), 0, false, -1);
}

/* Two-byte VEX prefix; 16 bits a mask. */
void x86_test_masks(x86_code *c, int left, int right)
{
    byte(c, 0xc5);
    byte(c, 0xf8);
    byte(c, 0x98);
    byte(c, 0xc0 | (unsigned)left << 3 | (unsigned)right);
}

/* ---- jumps ----------------------------------------------------------------------------------- */

void x86_entry(x86_code *c)
{
    byte(c, 0xf3);
    byte(c, 0x0f);
    byte(c, 0x1e);
    byte(c, 0xfa);
}

void x86_jump(x86_code *c, x86_operand memory) { put_general(c, false, 0xff, 4, memory, 0); }

static size_t jump_if(x86_code *c, unsigned condition)
{
    byte(c, 0x0f);
    byte(c, condition);
    put_32(c, 0);
    return c->size - 4;
}

size_t x86_jump_unless_zero(x86_code *c) { return jump_if(c, 0x85); }
size_t x86_jump_if_less(x86_code *c) { return jump_if(c, 0x8c); }
size_t x86_jump_unless_less(x86_code *c) { return jump_if(c, 0x8d); }

size_t x86_jump_always(x86_code *c)
{
    byte(c, 0xe9);
    put_32(c, 0);
    return c->size - 4;
}

void x86_land_at(x86_code *c, size_t jump, size_t to)
{
    int64_t distance = (int64_t)to - (int64_t)jump - 4;

    if (distance < INT32_MIN || distance > INT32_MAX)
        c->failed = true;
    for (int k = 0; k < 4 && !c->failed; k++)
        c->byte[jump + (size_t)k] = (uint8_t)((uint32_t)distance >> 8 * k);
}

void x86_land(x86_code *c, size_t jump) { x86_land_at(c, jump, c->size); }

/* ---- constants and executable memory --------------------------------------------------------- */

size_t x86_constant(x86_code *c, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    size_t at;

    while (c->size % size != 0 && !c->failed)
        byte(c, 0xcc);
    at = c->size;
    for (size_t k = 0; k < size; k++)
        byte(c, from[k]);
    return at;
}

void *x86_finish(const x86_code *c)
{
    void *memory;

    if (c->failed)
        return NULL;
    memory = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    memcpy(memory, c->byte, c->size);
    if (mprotect(memory, c->size, PROT_READ | PROT_EXEC) != 0) {
        munmap(memory, c->size);
        return NULL;
    }
    return memory;
}

void x86_release(void *memory, size_t size)
{
    if (memory != NULL)
        munmap(memory, size);
}
