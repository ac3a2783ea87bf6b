/*
 * function.c - find the begin and end of functions in .eh_frame_hdr: a sorted table of begins, each
 * with a description that has the size. Only the encoding that linkers write is read: 32-bit
 * offsets from the table, and 32-bit sizes after a 32-bit begin.
 */
#include "plugin/function.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* DW_EH_PE_*: sdata4 | pcrel, udata4, sdata4 | datarel. */
enum { TABLE_VERSION = 1, FROM_HERE = 0x1b, COUNT = 0x03, FROM_TABLE = 0x3b };

/*
 * Whether a function pointer is a code address; in ELFv1 of 64-bit POWER it points to a descriptor.
 */
#if defined(__powerpc64__) && _CALL_ELF != 2
enum { DIRECT = false };
#else
enum { DIRECT = true };
#endif

typedef struct question {
    uintptr_t address;
    function_find found;
} question;

typedef struct table {
    uintptr_t begin;        /* address of .eh_frame_hdr                                           */
    const uint8_t *entries;
    uint32_t count;
} table;

static int32_t word_at(const uint8_t *bytes)
{
    int32_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

static bool open_table(uintptr_t base, const ElfW(Phdr) *segment, table *out)
{
    const uint8_t *bytes;

    out->begin = base + segment->p_vaddr;
    bytes = (const uint8_t *)out->begin;
    if (segment->p_memsz < 12 || bytes[0] != TABLE_VERSION || bytes[1] != FROM_HERE
        || bytes[2] != COUNT || bytes[3] != FROM_TABLE)
        return false;
    out->count = (uint32_t)word_at(bytes + 8);
    out->entries = bytes + 12;
    return out->count <= (segment->p_memsz - 12) / 8;
}

static uintptr_t function_begin(const table *t, uint32_t index)
{
    return t->begin + (uintptr_t)(intptr_t)word_at(t->entries + 8 * (size_t)index);
}

/* The last function that begins at 'address' or before it; 'count' if there is none. */
static uint32_t find_function(const table *t, uintptr_t address)
{
    uint32_t low = 0, high = t->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (function_begin(t, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : t->count;
}

/* Read a function's description (FDE): size, offset of its CIE, begin, length. */
static function_find classify_address(const table *t, uint32_t index, uintptr_t address)
{
    const uintptr_t begin = function_begin(t, index);
    const uint8_t *d = (const uint8_t *)(t->begin + (uintptr_t)(intptr_t)
                                         word_at(t->entries + 8 * (size_t)index + 4));

    if ((uintptr_t)(d + 8) + (uintptr_t)(intptr_t)word_at(d + 8) != begin)
        return FUNCTION_UNLISTED;
    if (address == begin)
        return FUNCTION_BEGINS;
    return address - begin < (uint32_t)word_at(d + 12) ? FUNCTION_WITHIN : FUNCTION_UNLISTED;
}

static bool has_code_at(const struct dl_phdr_info *library, uintptr_t address)
{
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *s = &library->dlpi_phdr[i];
        if (s->p_type == PT_LOAD && (s->p_flags & PF_X) != 0
            && address - (library->dlpi_addr + s->p_vaddr) < s->p_memsz)
            return true;
    }
    return false;
}

static int search_library(struct dl_phdr_info *library, size_t size, void *context)
{
    question *q = context;
    table t;

    if (!has_code_at(library, q->address))
        return 0;
    q->found = FUNCTION_UNLISTED;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        uint32_t index;
        if (library->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME
            || !open_table(library->dlpi_addr, &library->dlpi_phdr[i], &t))
            continue;
        index = find_function(&t, q->address);
        if (index < t.count)
            q->found = classify_address(&t, index, q->address);
    }
    return 1;
}

function_find function_at(const void *address)
{
    question q = { (uintptr_t)address, DIRECT ? FUNCTION_NONE : FUNCTION_UNLISTED };

    if (DIRECT)
        dl_iterate_phdr(search_library, &q);
    return q.found;
}
