/*
 * elf_note.c - a reader of ELF that believes nothing: every offset and count is checked against the
 * size of the file before it is used.
 */
#include "plugin/elf_note.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;
typedef ElfW(Nhdr) elf_note;

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

typedef struct elf_file {
    const char *path;
    const uint8_t *data;
    uint64_t size;
    elf_header header;
    pons_error *err;
} elf_file;

static bool inside(uint64_t begin, uint64_t size, uint64_t whole)
{
    return begin <= whole && size <= whole - begin;
}

static pons_status refuse(const elf_file *f, const char *field, unsigned long long found,
                          unsigned long long expected)
{
    return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': %s is %llu, expected %llu", f->path,
                     field, found, expected);
}

static pons_status check_header(elf_file *f)
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
        return refuse(f, "ELF class", h->e_ident[EI_CLASS], CLASS);
    if (h->e_ident[EI_DATA] != DATA)
        return refuse(f, "ELF byte order", h->e_ident[EI_DATA], DATA);
    if (h->e_ident[EI_VERSION] != EV_CURRENT)
        return refuse(f, "ELF version", h->e_ident[EI_VERSION], EV_CURRENT);
    if (h->e_machine != MACHINE)
        return refuse(f, "ELF machine", h->e_machine, MACHINE);
    if (h->e_type != ET_DYN)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': ELF type is %u, expected %u "
                         "(a shared object, which cc -shared makes)", f->path, h->e_type, ET_DYN);
    if (h->e_phentsize != sizeof(elf_segment))
        return refuse(f, "size of a program header", h->e_phentsize, sizeof(elf_segment));
    return PONS_OK;
}

/* Headers of sections lie last in a file; only by them is a cut in its last bytes seen. */
static pons_status check_tables(const elf_file *f)
{
    const elf_header *h = &f->header;

    if (h->e_phnum == 0 || !inside(h->e_phoff, (uint64_t)h->e_phnum * h->e_phentsize, f->size))
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': its %u program headers at %llu "
                         "lie outside of its %llu bytes", f->path, h->e_phnum,
                         (unsigned long long)h->e_phoff, (unsigned long long)f->size);
    if (h->e_shoff != 0 && !inside(h->e_shoff, (uint64_t)h->e_shnum * h->e_shentsize, f->size))
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': its %u section headers at %llu "
                         "lie outside of its %llu bytes (a truncated file?)", f->path, h->e_shnum,
                         (unsigned long long)h->e_shoff, (unsigned long long)f->size);
    return PONS_OK;
}

static elf_segment segment_at(const elf_file *f, int index)
{
    elf_segment s;

    memcpy(&s, f->data + f->header.e_phoff + (uint64_t)index * sizeof s, sizeof s);
    return s;
}

static pons_status check_segments(const elf_file *f)
{
    int loaded = 0;

    for (int i = 0; i < f->header.e_phnum; i++) {
        elf_segment s = segment_at(f, i);
        if (!inside(s.p_offset, s.p_filesz, f->size))
            return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d (%llu bytes at "
                             "%llu) lies outside of its %llu bytes (a truncated file?)", f->path, i,
                             (unsigned long long)s.p_filesz, (unsigned long long)s.p_offset,
                             (unsigned long long)f->size);
        if (s.p_type == PT_LOAD && s.p_filesz > s.p_memsz)
            return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': segment %d has %llu bytes in "
                             "the file and %llu in memory", f->path, i,
                             (unsigned long long)s.p_filesz, (unsigned long long)s.p_memsz);
        loaded += s.p_type == PT_LOAD;
    }
    if (loaded == 0)
        return pons_fail(f->err, PONS_PLUGIN, "cannot load '%s': nothing in it is to be loaded",
                         f->path);
    return PONS_OK;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* Copy the pons notes of one segment; returns how many there are. */
static int notes_in(const elf_file *f, elf_segment s, pons_note *note)
{
    const uint64_t align = s.p_align == 8 ? 8 : 4;
    uint64_t at = 0;
    int count = 0;

    while (inside(at, sizeof(elf_note), s.p_filesz)) {
        const uint8_t *begin = f->data + s.p_offset + at;
        elf_note head;
        uint64_t owner, content;
        memcpy(&head, begin, sizeof head);
        owner = round_up(head.n_namesz, align);
        content = round_up(head.n_descsz, align);
        if (!inside(at + sizeof head, owner + head.n_descsz, s.p_filesz))
            break;
        if (head.n_namesz == sizeof note->owner && head.n_type == PONS_NOTE_TYPE &&
            memcmp(begin + sizeof head, PONS_NOTE_OWNER "\0\0\0", sizeof note->owner) == 0) {
            memset(note, 0, sizeof *note);
            note->content_size = head.n_descsz;
            if (head.n_descsz == sizeof *note - offsetof(pons_note, kind))
                memcpy(&note->kind, begin + sizeof head + owner, head.n_descsz);
            count++;
        }
        at += sizeof head + owner + content;
    }
    return count;
}

static pons_status find_note(const elf_file *f, pons_note *note)
{
    const uint32_t expected = sizeof *note - offsetof(pons_note, kind);
    int count = 0;

    for (int i = 0; i < f->header.e_phnum; i++) {
        elf_segment s = segment_at(f, i);
        if (s.p_type == PT_NOTE)
            count += notes_in(f, s, note);
    }
    if (count != 1)
        return pons_fail(f->err, PONS_PLUGIN,
                         "cannot load '%s': it holds %d pons notes, expected 1: %s", f->path, count,
                         count == 0 ? "not a pons plugin" : "several plugins in one");
    if (note->content_size != expected)
        return refuse(f, "size of the pons note", note->content_size, expected);
    if (memchr(note->name, '\0', sizeof note->name) == NULL)
        return pons_fail(f->err, PONS_PLUGIN,
                         "cannot load '%s': the name in its pons note has no end", f->path);
    return PONS_OK;
}

pons_status elf_note_read(const char *path, const void *data, size_t size, pons_note *note,
                          pons_error *err)
{
    pons_error own = PONS_ERROR_INIT;
    elf_file f = { .path = path, .data = data, .size = size, .err = err != NULL ? err : &own };
    pons_status status = check_header(&f);

    if (status == PONS_OK)
        status = check_tables(&f);
    if (status == PONS_OK)
        status = check_segments(&f);
    if (status == PONS_OK)
        status = find_note(&f, note);
    return status;
}
