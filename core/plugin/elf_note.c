/*
 * elf_note.c - find the pons note of a shared object and check its ELF tables.
 */
#include "plugin/elf_note.h"

#include <stdint.h>
#include <string.h>

#include "base/integer.h"
#include "plugin/elf_dynamic.h"
#include "plugin/elf_image.h"

/* Copy the pons notes of one segment and return their number. */
static int notes_in(const elf_image *f, elf_segment s, pons_note *note)
{
    const uint64_t align = s.p_align == 8 ? 8 : 4;
    uint64_t at = 0;
    int count = 0;

    while (elf_inside(at, sizeof(elf_note), s.p_filesz)) {
        const uint8_t *begin = f->data + s.p_offset + at;
        elf_note head;
        uint64_t owner, content;
        memcpy(&head, begin, sizeof head);
        owner = round_up_u64(head.n_namesz, align);
        content = round_up_u64(head.n_descsz, align);
        if (!elf_inside(at + sizeof head, owner + head.n_descsz, s.p_filesz))
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

static pons_status find_note(const elf_image *f, pons_note *note)
{
    const uint32_t expected = sizeof *note - offsetof(pons_note, kind);
    int count = 0;

    for (int i = 0; i < f->header.e_phnum; i++) {
        elf_segment s = elf_segment_at(f, i);
        if (s.p_type == PT_NOTE)
            count += notes_in(f, s, note);
    }
    if (count != 1)
        return pons_fail(f->err, PONS_PLUGIN,
                         "cannot load '%s': it holds %d pons notes, expected 1: %s", f->path, count,
                         count == 0 ? "not a pons plugin" : "several plugins in one");
    if (note->content_size != expected)
        return elf_refuse(f, "size of the pons note", note->content_size, expected);
    if (memchr(note->name, '\0', sizeof note->name) == NULL)
        return pons_fail(f->err, PONS_PLUGIN,
                         "cannot load '%s': the name in its pons note has no end", f->path);
    return PONS_OK;
}

pons_status elf_note_read(const char *path, const void *data, size_t size, pons_note *note,
                          pons_error *err)
{
    pons_error own = PONS_ERROR_INIT;
    elf_image f = { .path = path, .data = data, .size = size, .err = err != NULL ? err : &own };
    pons_status status = elf_image_open(&f);

    if (status == PONS_OK)
        status = find_note(&f, note);
    if (status == PONS_OK)
        status = elf_dynamic_check(&f);
    return status;
}
