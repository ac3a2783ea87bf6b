/*
 * elf_image.h - access the bytes of a shared object by file offset and by address, within its
 * bounds.
 */
#ifndef CORE_PLUGIN_ELF_IMAGE_H
#define CORE_PLUGIN_ELF_IMAGE_H

#include <elf.h>
#include <link.h>
#include <pons/plugin.h>
#include <stdint.h>

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;
typedef ElfW(Shdr) elf_section;
typedef ElfW(Nhdr) elf_note;
typedef ElfW(Dyn) elf_entry;
typedef ElfW(Sym) elf_symbol;
typedef ElfW(Rela) elf_relocation;

typedef struct elf_image {
    const char *path;       /* for messages                                                       */
    const uint8_t *data;
    uint64_t size;
    elf_header header;
    pons_error *err;
} elf_image;

bool elf_inside(uint64_t begin, uint64_t size, uint64_t whole);
pons_status elf_refuse(const elf_image *f, const char *field, unsigned long long found,
                       unsigned long long expected);

/* Check the header, segments and sections. elf_segment_at and elf_section_at need it. */
pons_status elf_image_open(elf_image *f);
elf_segment elf_segment_at(const elf_image *f, int index);
elf_section elf_section_at(const elf_image *f, int index);

/* Whether a loaded segment with 'flags' (PF_W, PF_X) covers 'size' bytes at 'address'. */
bool elf_is_loaded(const elf_image *f, uint64_t address, uint64_t size, unsigned flags);
/* The file's bytes at 'address', if one loaded segment has them all; else NULL. */
const uint8_t *elf_bytes_at(const elf_image *f, uint64_t address, uint64_t size);

#endif
