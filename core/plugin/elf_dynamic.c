/*
 * elf_dynamic.c - check the dynamic section of a shared object: its addresses, sizes and strings,
 * and the section headers that repeat them.
 */
#include "plugin/elf_dynamic.h"

#include <string.h>

/* Flags of a segment with functions; in ELFv1 of 64-bit POWER, function descriptors are data. */
#if defined(__powerpc64__) && _CALL_ELF != 2
enum { CODE = PF_R };
#else
enum { CODE = PF_X };
#endif

#define HAS(d, slot) ((d)->has[slot])
#define VALUE(d, slot) ((d)->value[slot])

static const int64_t tags[ELF_DYNAMIC_COUNT] = {
    [ELF_STRTAB] = DT_STRTAB, [ELF_STRSZ] = DT_STRSZ, [ELF_SYMTAB] = DT_SYMTAB,
    [ELF_SYMENT] = DT_SYMENT, [ELF_HASH] = DT_HASH, [ELF_GNU_HASH] = DT_GNU_HASH,
    [ELF_RELA] = DT_RELA, [ELF_RELASZ] = DT_RELASZ, [ELF_RELAENT] = DT_RELAENT,
    [ELF_RELACOUNT] = DT_RELACOUNT, [ELF_JMPREL] = DT_JMPREL, [ELF_PLTRELSZ] = DT_PLTRELSZ,
    [ELF_PLTREL] = DT_PLTREL, [ELF_PLTGOT] = DT_PLTGOT, [ELF_INIT] = DT_INIT, [ELF_FINI] = DT_FINI,
    [ELF_INIT_ARRAY] = DT_INIT_ARRAY, [ELF_INIT_ARRAYSZ] = DT_INIT_ARRAYSZ,
    [ELF_FINI_ARRAY] = DT_FINI_ARRAY, [ELF_FINI_ARRAYSZ] = DT_FINI_ARRAYSZ,
    [ELF_VERSYM] = DT_VERSYM, [ELF_VERNEED] = DT_VERNEED, [ELF_VERNEEDNUM] = DT_VERNEEDNUM,
    [ELF_VERDEF] = DT_VERDEF, [ELF_VERDEFNUM] = DT_VERDEFNUM,
    [ELF_RELR] = 36, [ELF_RELRSZ] = 35, [ELF_RELRENT] = 37, /* missing in some <elf.h>            */
    [ELF_SONAME] = DT_SONAME, [ELF_RPATH] = DT_RPATH, [ELF_RUNPATH] = DT_RUNPATH
};

/* Other permitted entries: they hold no address that the loader follows. */
static const int64_t harmless[] = {
    DT_NULL, DT_NEEDED, DT_SYMBOLIC, DT_DEBUG, DT_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1,
    DT_RELCOUNT
};

pons_status elf_table_refuse(const elf_dynamic *d, const char *what, const char *fault)
{
    return pons_fail(d->file->err, PONS_PLUGIN, "cannot load '%s': its table of %s %s (a damaged "
                     "file?)", d->file->path, what, fault);
}

bool elf_text_ends(const elf_dynamic *d, uint64_t offset)
{
    const uint64_t size = VALUE(d, ELF_STRSZ);
    const uint8_t *texts = elf_bytes_at(d->file, VALUE(d, ELF_STRTAB), size);

    return texts != NULL && offset < size
           && memchr(texts + offset, '\0', (size_t)(size - offset)) != NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool is_harmless(int64_t tag)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (tag == harmless[i])
            return true;
    return (tag >= DT_LOOS && tag < DT_LOPROC)
           || (tag >= DT_LOPROC && tag <= DT_HIPROC && tag != DT_AUXILIARY && tag != DT_FILTER);
}

static pons_status read_entry(elf_dynamic *d, const elf_entry *e)
{
    for (int slot = 0; slot < ELF_DYNAMIC_COUNT; slot++) {
        if (tags[slot] != (int64_t)e->d_tag)
            continue;
        if (HAS(d, slot))
            return elf_table_refuse(d, "dynamic entries", "names one of them twice");
        d->has[slot] = true;
        d->value[slot] = e->d_un.d_val;
        return PONS_OK;
    }
    return is_harmless((int64_t)e->d_tag) ? PONS_OK
         : elf_table_refuse(d, "dynamic entries", "has an entry of an unknown kind");
}

static bool find_segment(const elf_image *f, uint32_t type, elf_segment *out)
{
    int count = 0;

    for (int i = 0; i < f->header.e_phnum; i++) {
        const elf_segment s = elf_segment_at(f, i);
        if (s.p_type == type) {
            *out = s;
            count++;
        }
    }
    return count == 1;
}

static elf_entry entry_at(const elf_image *f, const elf_segment *s, uint64_t index)
{
    elf_entry e;

    memcpy(&e, f->data + s->p_offset + index * sizeof e, sizeof e);
    return e;
}

static pons_status read_entries(elf_dynamic *d, const elf_segment *s)
{
    const uint64_t count = s->p_filesz / sizeof(elf_entry);

    for (uint64_t i = 0; i < count; i++) {
        const elf_entry e = entry_at(d->file, s, i);
        if (e.d_tag == DT_NULL)
            return PONS_OK;
        if (read_entry(d, &e) != PONS_OK)
            return PONS_PLUGIN;
    }
    return elf_table_refuse(d, "dynamic entries", "has no end");
}

/* Check names of libraries after all entries are read, since the string table may come later. */
static pons_status check_needed(const elf_dynamic *d, const elf_segment *s)
{
    elf_entry e;

    for (uint64_t i = 0; (e = entry_at(d->file, s, i)).d_tag != DT_NULL; i++)
        if (e.d_tag == DT_NEEDED && !elf_text_ends(d, e.d_un.d_val))
            return elf_table_refuse(d, "dynamic entries", "names a library outside of its texts");
    return PONS_OK;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Entries with a required value, and the table that requires them. */
static const struct { int slot, table; uint64_t value; } fixed[] = {
    { ELF_SYMENT, ELF_SYMTAB, sizeof(elf_symbol) },
    { ELF_RELAENT, ELF_RELASZ, sizeof(elf_relocation) },
    { ELF_PLTREL, ELF_JMPREL, DT_RELA },
    { ELF_RELRENT, ELF_RELRSZ, sizeof(void *) }
};

/* Tables of 'unit'-byte entries, given by address and size, in a segment with 'flags'. */
static const struct { int address, size; uint64_t unit; unsigned flags; const char *name; }
ranges[] = {
    { ELF_STRTAB, ELF_STRSZ, 1, PF_R, "texts" },
    { ELF_RELA, ELF_RELASZ, sizeof(elf_relocation), PF_R, "relocations" },
    { ELF_JMPREL, ELF_PLTRELSZ, sizeof(elf_relocation), PF_R, "relocations of calls" },
    { ELF_RELR, ELF_RELRSZ, sizeof(void *), PF_R, "relative relocations" },
    { ELF_INIT_ARRAY, ELF_INIT_ARRAYSZ, sizeof(void *), PF_R | PF_W, "constructors" },
    { ELF_FINI_ARRAY, ELF_FINI_ARRAYSZ, sizeof(void *), PF_R | PF_W, "destructors" }
};

static pons_status check_range(const elf_dynamic *d, size_t i)
{
    const uint64_t address = VALUE(d, ranges[i].address), size = VALUE(d, ranges[i].size);

    if (HAS(d, ranges[i].address) != HAS(d, ranges[i].size))
        return elf_table_refuse(d, ranges[i].name, "has no size or no address");
    if (!HAS(d, ranges[i].address) || size == 0)
        return PONS_OK;
    if (size % ranges[i].unit != 0)
        return elf_table_refuse(d, ranges[i].name, "ends within an entry");
    if (!elf_is_loaded(d->file, address, size, ranges[i].flags)
        || elf_bytes_at(d->file, address, size) == NULL)
        return elf_table_refuse(d, ranges[i].name, "lies outside of what is loaded");
    return PONS_OK;
}

static pons_status check_addresses(const elf_dynamic *d)
{
    static const int code[] = { ELF_INIT, ELF_FINI }, text[] = { ELF_SONAME, ELF_RPATH,
                                                                 ELF_RUNPATH };

    if (!HAS(d, ELF_STRTAB) || !HAS(d, ELF_SYMTAB))
        return elf_table_refuse(d, "dynamic entries", "lacks symbols or texts");
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if ((HAS(d, fixed[i].table) && !HAS(d, fixed[i].slot))
            || (HAS(d, fixed[i].slot) && VALUE(d, fixed[i].slot) != fixed[i].value))
            return elf_table_refuse(d, "dynamic entries", "has tables of another form");
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (check_range(d, i) != PONS_OK)
            return PONS_PLUGIN;
    for (size_t i = 0; i < sizeof code / sizeof *code; i++)
        if (HAS(d, code[i]) && !elf_is_loaded(d->file, VALUE(d, code[i]), 1, CODE))
            return elf_table_refuse(d, "dynamic entries", "calls what is no code");
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (HAS(d, text[i]) && !elf_text_ends(d, VALUE(d, text[i])))
            return elf_table_refuse(d, "dynamic entries", "names what is outside of its texts");
    if (HAS(d, ELF_PLTGOT) && !elf_is_loaded(d->file, VALUE(d, ELF_PLTGOT), 1, 0))
        return elf_table_refuse(d, "dynamic entries", "has addresses outside of what is loaded");
    return PONS_OK;
}

/* ---- section headers ------------------------------------------------------------------------- */

/* Section types that repeat a dynamic entry; 'size' is -1 where no entry gives it. */
static const struct { uint32_t type; int address, size; } repeated[] = {
    { SHT_HASH, ELF_HASH, -1 }, { SHT_GNU_HASH, ELF_GNU_HASH, -1 },
    { SHT_INIT_ARRAY, ELF_INIT_ARRAY, ELF_INIT_ARRAYSZ },
    { SHT_FINI_ARRAY, ELF_FINI_ARRAY, ELF_FINI_ARRAYSZ }, { SHT_GNU_versym, ELF_VERSYM, -1 },
    { SHT_GNU_verneed, ELF_VERNEED, -1 }, { SHT_GNU_verdef, ELF_VERDEF, -1 },
    { SHT_DYNSYM, ELF_SYMTAB, -1 }
};

static bool is_repeated(const elf_dynamic *d, const elf_section *s)
{
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++)
        if (repeated[i].type == s->sh_type)
            return HAS(d, repeated[i].address) && VALUE(d, repeated[i].address) == s->sh_addr
                   && (repeated[i].size < 0 || VALUE(d, repeated[i].size) == s->sh_size);
    return true;
}

static bool is_within(const elf_dynamic *d, int address, int size, const elf_section *s)
{
    return HAS(d, address) && s->sh_addr >= VALUE(d, address)
           && elf_inside(s->sh_addr - VALUE(d, address), s->sh_size, VALUE(d, size));
}

/* Loaded relocations must be in one of the two relocation tables. */
static bool is_relocated(const elf_dynamic *d, const elf_section *s)
{
    return s->sh_type != SHT_RELA || (s->sh_flags & SHF_ALLOC) == 0 || s->sh_size == 0
           || is_within(d, ELF_RELA, ELF_RELASZ, s) || is_within(d, ELF_JMPREL, ELF_PLTRELSZ, s);
}

/* The string table of the symbols must be that of the dynamic section. */
static bool has_its_texts(const elf_dynamic *d, const elf_section *s)
{
    elf_section texts;

    if (s->sh_type != SHT_DYNSYM)
        return true;
    if (s->sh_link >= d->file->header.e_shnum)
        return false;
    texts = elf_section_at(d->file, (int)s->sh_link);
    return texts.sh_addr == VALUE(d, ELF_STRTAB) && texts.sh_size == VALUE(d, ELF_STRSZ);
}

static pons_status check_sections(const elf_dynamic *d)
{
    for (int i = 0; d->file->header.e_shoff != 0 && i < d->file->header.e_shnum; i++) {
        const elf_section s = elf_section_at(d->file, i);
        if (!is_repeated(d, &s) || !is_relocated(d, &s) || !has_its_texts(d, &s))
            return elf_table_refuse(d, "dynamic entries", "contradicts its section headers");
    }
    return PONS_OK;
}

pons_status elf_dynamic_check(const elf_image *f)
{
    elf_dynamic d = { .file = f };
    elf_segment s = { 0 };

    if (!find_segment(f, PT_DYNAMIC, &s))
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': it has no dynamic section, or "
                         "several", f->path);
    if (read_entries(&d, &s) != PONS_OK || check_addresses(&d) != PONS_OK
        || check_needed(&d, &s) != PONS_OK || check_sections(&d) != PONS_OK
        || elf_symbols_check(&d) != PONS_OK)
        return PONS_PLUGIN;
    return elf_relocations_check(&d);
}
