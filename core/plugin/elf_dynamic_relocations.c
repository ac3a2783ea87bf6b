/*
 * elf_dynamic_relocations.c - check the words of a shared object that the loader writes. Each is in
 * a writable segment, is written once, and gets the address of a symbol or of a loaded segment.
 */
#include "plugin/elf_dynamic.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
enum { RELATIVE = R_X86_64_RELATIVE, JUMP_SLOT = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { RELATIVE = R_AARCH64_RELATIVE, JUMP_SLOT = R_AARCH64_JUMP_SLOT };
#elif defined(__riscv)
enum { RELATIVE = R_RISCV_RELATIVE, JUMP_SLOT = R_RISCV_JUMP_SLOT };
#elif defined(__powerpc64__)
enum { RELATIVE = R_PPC64_RELATIVE, JUMP_SLOT = R_PPC64_JMP_SLOT };
#else
#error "pons does not know this machine's relocations"
#endif

enum { NONE = 0 };

static uint64_t symbol_of(const elf_relocation *r)
{
    return sizeof(void *) == 8 ? ELF64_R_SYM((uint64_t)r->r_info) : ELF32_R_SYM(r->r_info);
}

static uint64_t type_of(const elf_relocation *r)
{
    return sizeof(void *) == 8 ? ELF64_R_TYPE((uint64_t)r->r_info) : ELF32_R_TYPE(r->r_info);
}

static elf_relocation relocation_at(const elf_dynamic *d, int table, uint64_t index)
{
    elf_relocation r;

    memcpy(&r, elf_bytes_at(d->file, d->value[table] + index * sizeof r, sizeof r), sizeof r);
    return r;
}

static uint64_t count_of(const elf_dynamic *d, int table, int size)
{
    return d->has[table] ? d->value[size] / sizeof(elf_relocation) : 0;
}

/* Relocations must not write to code through a read-only segment (DT_TEXTREL). */
static bool is_sound(const elf_dynamic *d, const elf_relocation *r)
{
    const uint64_t type = type_of(r), symbol = symbol_of(r);

    if (type == NONE)
        return true;
    if (symbol >= d->symbol_count || (type == RELATIVE && symbol != 0)
        || (type == JUMP_SLOT && symbol == 0))
        return false;
    if (type == RELATIVE && !elf_is_loaded(d->file, (uint64_t)r->r_addend, 0, 0))
        return false;
    return elf_is_loaded(d->file, r->r_offset, type == RELATIVE ? sizeof(void *) : 4, PF_W);
}

/* Check one table and append the addresses that it writes to 'word'. */
static pons_status check_table(const elf_dynamic *d, int table, int size, uint64_t *word,
                               uint64_t *written)
{
    for (uint64_t i = 0; i < count_of(d, table, size); i++) {
        const elf_relocation r = relocation_at(d, table, i);
        if (!is_sound(d, &r))
            return elf_table_refuse(d, "relocations", "points outside of what is loaded");
        if (table == ELF_RELA && i < d->value[ELF_RELACOUNT] && type_of(&r) != RELATIVE)
            return elf_table_refuse(d, "relocations", "does not begin with as many relative ones "
                                    "as it says");
        if (type_of(&r) != NONE)
            word[(*written)++] = r.r_offset;
    }
    return PONS_OK;
}

static int by_address(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static pons_status check_once(const elf_dynamic *d, uint64_t *word, uint64_t count)
{
    if (count > 0)
        qsort(word, (size_t)count, sizeof *word, by_address);
    for (uint64_t i = 1; i < count; i++)
        if (word[i] - word[i - 1] < sizeof(void *))
            return elf_table_refuse(d, "relocations", "writes into one word twice");
    return PONS_OK;
}

/* Whether the relocations of calls are the end of the other table, as some linkers write them. */
static bool is_joined(const elf_dynamic *d)
{
    return d->has[ELF_RELA] && d->has[ELF_JMPREL] && d->value[ELF_JMPREL] >= d->value[ELF_RELA]
           && d->value[ELF_JMPREL] - d->value[ELF_RELA] < d->value[ELF_RELASZ];
}

pons_status elf_relocations_check(const elf_dynamic *d)
{
    const uint64_t count = count_of(d, ELF_RELA, ELF_RELASZ)
                           + count_of(d, ELF_JMPREL, ELF_PLTRELSZ);
    uint64_t *word = malloc((size_t)(count + 1) * sizeof *word), written = 0;
    pons_status status;

    if (word == NULL)
        return pons_fail(d->file->err, PONS_DEVICE, "out of memory");
    status = d->has[ELF_RELACOUNT]
             && d->value[ELF_RELACOUNT] > count_of(d, ELF_RELA, ELF_RELASZ)
             ? elf_table_refuse(d, "relocations", "has fewer relative ones than it says")
             : check_table(d, ELF_RELA, ELF_RELASZ, word, &written);
    if (status == PONS_OK && !is_joined(d))
        status = check_table(d, ELF_JMPREL, ELF_PLTRELSZ, word, &written);
    if (status == PONS_OK)
        status = check_once(d, word, written);
    free(word);
    return status;
}
