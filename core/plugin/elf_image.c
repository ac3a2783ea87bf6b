/*
 * elf_image.c - read ELF headers without trust: every offset and count is checked against the file
 * size before its use. Segments must be mappable by the dynamic loader, so that a failure to map
 * means a lack of memory.
 */
#include "plugin/elf_image.h"

#include <string.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { MACHINE = EM_RISCV };
#elif defined(__powerpc64__)
enum { MACHINE = EM_PPC64 };
#else
#error "pons does not know this machine's ELF number"
#endif

enum { CLASS = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32 };
enum { DATA = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB };

/*
 * The largest and smallest page size of a machine, and the most memory that a plugin's segments
 * span.
 */
enum { PAGE_MAX = 1 << 16, PAGE_MIN = 1 << 12 };
#define SPAN_MAX ((uint64_t)1 << 32)

bool elf_inside(uint64_t begin, uint64_t size, uint64_t whole)
{
    return begin <= whole && size <= whole - begin;
}

pons_status elf_refuse(const elf_image *f, const char *field, unsigned long long found,
                       unsigned long long expected)
{
    return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': %s is %llu, expected %llu", f->path,
                     field, found, expected);
}

/* ---- header ---------------------------------------------------------------------------------- */

static pons_status check_header(elf_image *f)
{
    const elf_header *h = &f->header;

    if (f->size < sizeof f->header)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': it has %llu bytes, "
                         "an ELF header has %zu", f->path, (unsigned long long)f->size,
                         sizeof f->header);
    memcpy(&f->header, f->data, sizeof f->header);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': it is not an ELF file", f->path);
    if (h->e_ident[EI_CLASS] != CLASS)
        return elf_refuse(f, "ELF class", h->e_ident[EI_CLASS], CLASS);
    if (h->e_ident[EI_DATA] != DATA)
        return elf_refuse(f, "ELF byte order", h->e_ident[EI_DATA], DATA);
    if (h->e_ident[EI_VERSION] != EV_CURRENT)
        return elf_refuse(f, "ELF version", h->e_ident[EI_VERSION], EV_CURRENT);
    if (h->e_machine != MACHINE)
        return elf_refuse(f, "ELF machine", h->e_machine, MACHINE);
    if (h->e_type != ET_DYN)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': ELF type is %u, expected %u "
                         "(a shared object, which cc -shared makes)", f->path, h->e_type, ET_DYN);
    if (h->e_phentsize != sizeof(elf_segment))
        return elf_refuse(f, "size of a program header", h->e_phentsize, sizeof(elf_segment));
    if (h->e_shoff != 0 && h->e_shnum != 0 && h->e_shentsize != sizeof(elf_section))
        return elf_refuse(f, "size of a section header", h->e_shentsize, sizeof(elf_section));
    return PONS_OK;
}

/* Section headers are at the end of a file. They alone reveal that its last bytes are missing. */
static pons_status check_tables(const elf_image *f)
{
    const elf_header *h = &f->header;

    if (h->e_phnum == 0 || !elf_inside(h->e_phoff, (uint64_t)h->e_phnum * h->e_phentsize, f->size))
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': its %u program headers at %llu "
                         "lie outside of its %llu bytes", f->path, h->e_phnum,
                         (unsigned long long)h->e_phoff, (unsigned long long)f->size);
    if (h->e_shoff != 0 && !elf_inside(h->e_shoff, (uint64_t)h->e_shnum * h->e_shentsize, f->size))
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': its %u section headers at %llu "
                         "lie outside of its %llu bytes (a truncated file?)", f->path, h->e_shnum,
                         (unsigned long long)h->e_shoff, (unsigned long long)f->size);
    return PONS_OK;
}

elf_segment elf_segment_at(const elf_image *f, int index)
{
    elf_segment s;

    memcpy(&s, f->data + f->header.e_phoff + (uint64_t)index * sizeof s, sizeof s);
    return s;
}

elf_section elf_section_at(const elf_image *f, int index)
{
    elf_section s;

    memcpy(&s, f->data + f->header.e_shoff + (uint64_t)index * sizeof s, sizeof s);
    return s;
}

/* ---- segments -------------------------------------------------------------------------------- */

static pons_status check_extent(const elf_image *f, int index, const elf_segment *s)
{
    if (!elf_inside(s->p_offset, s->p_filesz, f->size))
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d (%llu bytes at "
                         "%llu) lies outside of its %llu bytes (a truncated file?)", f->path, index,
                         (unsigned long long)s->p_filesz, (unsigned long long)s->p_offset,
                         (unsigned long long)f->size);
    if ((s->p_type == PT_LOAD || s->p_type == PT_TLS) && s->p_filesz > s->p_memsz)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d has %llu bytes in "
                         "the file and %llu in memory", f->path, index,
                         (unsigned long long)s->p_filesz, (unsigned long long)s->p_memsz);
    return PONS_OK;
}

/* A loaded segment follows the previous one, and its address and offset agree within a page. */
static pons_status check_loaded(const elf_image *f, int index, const elf_segment *s, uint64_t *end)
{
    if ((s->p_align & (s->p_align - 1)) != 0 || s->p_align > SPAN_MAX
        || (s->p_align > 1 && (s->p_vaddr - s->p_offset) % s->p_align != 0)
        || (s->p_vaddr - s->p_offset) % PAGE_MIN != 0)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d at %llu of the file "
                         "and %llu of memory is not aligned to %llu", f->path, index,
                         (unsigned long long)s->p_offset, (unsigned long long)s->p_vaddr,
                         (unsigned long long)s->p_align);
    if (s->p_vaddr < *end || !elf_inside(s->p_vaddr, s->p_memsz, SPAN_MAX))
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d (%llu bytes at "
                         "address %llu) lies over another one, or beyond %llu", f->path, index,
                         (unsigned long long)s->p_memsz, (unsigned long long)s->p_vaddr,
                         (unsigned long long)SPAN_MAX);
    *end = s->p_vaddr + s->p_memsz;
    return PONS_OK;
}

/* Segments whose tables the loader reads from memory; 'grows': they may be larger in memory. */
static const struct { uint32_t type; bool grows; } mapped[] = {
    { PT_DYNAMIC, false }, { PT_NOTE, false }, { PT_GNU_PROPERTY, false }, { PT_PHDR, false },
    { PT_GNU_EH_FRAME, false }, { PT_GNU_RELRO, true }, { PT_TLS, true }
};

/*
 * The bytes at 'p_vaddr' in memory must be those at 'p_offset' in the file, so that the loader
 * reads the table that was checked here.
 */
static pons_status check_mapped(const elf_image *f, int index, const elf_segment *s)
{
    size_t i = 0;

    while (i < sizeof mapped / sizeof *mapped && mapped[i].type != s->p_type)
        i++;
    if (i == sizeof mapped / sizeof *mapped || (s->p_filesz == 0 && s->p_type == PT_TLS))
        return PONS_OK;
    if (elf_bytes_at(f, s->p_vaddr, s->p_filesz) == f->data + s->p_offset
        && (mapped[i].grows || s->p_memsz == s->p_filesz))
        return PONS_OK;
    return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d of type %u at address %llu "
                     "lies outside of what is loaded", f->path, index, s->p_type,
                     (unsigned long long)s->p_vaddr);
}

static pons_status check_segments(const elf_image *f)
{
    uint64_t end = 0;
    bool loaded = false;

    for (int i = 0; i < f->header.e_phnum; i++) {
        const elf_segment s = elf_segment_at(f, i);
        if (check_extent(f, i, &s) != PONS_OK)
            return PONS_PLUGIN;
        if (s.p_type == PT_LOAD && check_loaded(f, i, &s, &end) != PONS_OK)
            return PONS_PLUGIN;
        loaded |= s.p_type == PT_LOAD;
    }
    if (!loaded)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': nothing in it is to be loaded",
                         f->path);
    for (int i = 0; i < f->header.e_phnum; i++) {
        const elf_segment s = elf_segment_at(f, i);
        if (check_mapped(f, i, &s) != PONS_OK)
            return PONS_PLUGIN;
    }
    return PONS_OK;
}

bool elf_is_loaded(const elf_image *f, uint64_t address, uint64_t size, unsigned flags)
{
    for (int i = 0; i < f->header.e_phnum; i++) {
        const elf_segment s = elf_segment_at(f, i);
        if (s.p_type == PT_LOAD && (s.p_flags & flags) == flags && address >= s.p_vaddr
            && elf_inside(address - s.p_vaddr, size, s.p_memsz))
            return true;
    }
    return false;
}

const uint8_t *elf_bytes_at(const elf_image *f, uint64_t address, uint64_t size)
{
    for (int i = 0; i < f->header.e_phnum; i++) {
        const elf_segment s = elf_segment_at(f, i);
        if (s.p_type == PT_LOAD && address >= s.p_vaddr
            && elf_inside(address - s.p_vaddr, size, s.p_filesz))
            return f->data + s.p_offset + (address - s.p_vaddr);
    }
    return NULL;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* Check that a loaded section is inside a segment with the required access rights. */
static pons_status check_section(const elf_image *f, int index, const elf_section *s)
{
    const unsigned flags = ((s->sh_flags & SHF_WRITE) != 0 ? PF_W : 0)
                           | ((s->sh_flags & SHF_EXECINSTR) != 0 ? PF_X : PF_R);
    bool fits;

    if (s->sh_type == SHT_NULL || s->sh_size == 0)
        return PONS_OK;
    fits = s->sh_type == SHT_NOBITS || elf_inside(s->sh_offset, s->sh_size, f->size);
    if (fits && (s->sh_flags & SHF_ALLOC) != 0 && (s->sh_flags & SHF_TLS) == 0)
        fits = elf_is_loaded(f, s->sh_addr, s->sh_size, flags)
               && (s->sh_type == SHT_NOBITS
                   || elf_bytes_at(f, s->sh_addr, s->sh_size) == f->data + s->sh_offset);
    if (fits)
        return PONS_OK;
    return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': section %d (%llu bytes at address "
                     "%llu) lies outside of its segments", f->path, index,
                     (unsigned long long)s->sh_size, (unsigned long long)s->sh_addr);
}

/* Check that at most a page of padding follows the last section of a segment. */
static pons_status check_filled(const elf_image *f, int index, const elf_segment *s)
{
    uint64_t end = 0;

    for (int i = 0; i < f->header.e_shnum; i++) {
        const elf_section section = elf_section_at(f, i);
        const uint64_t behind = section.sh_addr + section.sh_size;
        if ((section.sh_flags & SHF_ALLOC) != 0 && section.sh_addr >= s->p_vaddr
            && section.sh_addr - s->p_vaddr <= s->p_memsz && behind > end)
            end = behind;
    }
    if (end == 0 || s->p_vaddr + s->p_memsz <= end + PAGE_MAX)
        return PONS_OK;
    return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d ends at address %llu, its "
                     "last section at %llu", f->path, index,
                     (unsigned long long)(s->p_vaddr + s->p_memsz), (unsigned long long)end);
}

static pons_status check_sections(const elf_image *f)
{
    if (f->header.e_shoff == 0)
        return PONS_OK;
    for (int i = 0; i < f->header.e_shnum; i++) {
        const elf_section s = elf_section_at(f, i);
        if (check_section(f, i, &s) != PONS_OK)
            return PONS_PLUGIN;
    }
    for (int i = 0; i < f->header.e_phnum; i++) {
        const elf_segment s = elf_segment_at(f, i);
        if (s.p_type == PT_LOAD && check_filled(f, i, &s) != PONS_OK)
            return PONS_PLUGIN;
    }
    return PONS_OK;
}

pons_status elf_image_open(elf_image *f)
{
    pons_status status = check_header(f);

    if (status == PONS_OK)
        status = check_tables(f);
    if (status == PONS_OK)
        status = check_segments(f);
    if (status == PONS_OK)
        status = check_sections(f);
    return status;
}
