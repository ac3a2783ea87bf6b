/*
 * elf_dynamic.h - check the tables that the dynamic loader reads.
 */
#ifndef CORE_PLUGIN_ELF_DYNAMIC_H
#define CORE_PLUGIN_ELF_DYNAMIC_H

#include "plugin/elf_image.h"

/* Entries of the dynamic section that occur once. */
enum {
    ELF_STRTAB, ELF_STRSZ, ELF_SYMTAB, ELF_SYMENT, ELF_HASH, ELF_GNU_HASH, ELF_RELA, ELF_RELASZ,
    ELF_RELAENT, ELF_RELACOUNT, ELF_JMPREL, ELF_PLTRELSZ, ELF_PLTREL, ELF_PLTGOT, ELF_INIT,
    ELF_FINI, ELF_INIT_ARRAY, ELF_INIT_ARRAYSZ, ELF_FINI_ARRAY, ELF_FINI_ARRAYSZ, ELF_VERSYM,
    ELF_VERNEED, ELF_VERNEEDNUM, ELF_VERDEF, ELF_VERDEFNUM, ELF_RELR, ELF_RELRSZ, ELF_RELRENT,
    ELF_SONAME, ELF_RPATH, ELF_RUNPATH, ELF_DYNAMIC_COUNT
};

typedef struct elf_dynamic {
    const elf_image *file;
    bool has[ELF_DYNAMIC_COUNT];
    uint64_t value[ELF_DYNAMIC_COUNT];
    uint64_t symbol_count;
} elf_dynamic;

/*
 * Check that each table of the dynamic section is in a loaded segment and points only into loaded
 * segments. Section headers, if present, must agree. elf_image_open has checked 'f'.
 */
pons_status elf_dynamic_check(const elf_image *f);

/* Parts of elf_dynamic_check, in elf_dynamic_symbols.c and elf_dynamic_relocations.c. */
pons_status elf_symbols_check(elf_dynamic *d);
pons_status elf_relocations_check(const elf_dynamic *d);

/* Fail with "cannot load 'FILE': its table of WHAT FAULT (a damaged file?)". */
pons_status elf_table_refuse(const elf_dynamic *d, const char *what, const char *fault);
/* Whether the string at 'offset' ends within the string table. */
bool elf_text_ends(const elf_dynamic *d, uint64_t offset);

#endif
