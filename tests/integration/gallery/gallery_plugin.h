/*
 * gallery_plugin.h - the errors of a plugin file. Each entry changes bytes of 'image', the file of
 * the valid schedule plugin 'effect', and has the phrase of the loader's message.
 */
#ifndef TESTS_GALLERY_PLUGIN_H
#define TESTS_GALLERY_PLUGIN_H

#include "support/asserts.h"

#include <elf.h>
#include <pons/plugin.h>
#include <stddef.h>
#include <string.h>

static char *image;
static size_t image_size;

static pons_note *note_of_image(void)
{
    static const char owner[8] = PONS_NOTE_OWNER;
    char *at = memmem(image, image_size, owner, sizeof owner);

    /* The word may occur elsewhere. In a note the owner follows the type. */
    while (at != NULL) {
        pons_note *note = (pons_note *)(void *)(at - offsetof(pons_note, owner));
        if (note->type == PONS_NOTE_TYPE && note->owner_size == sizeof owner)
            return note;
        at = memmem(at + 1, image_size - (size_t)(at + 1 - image), owner, sizeof owner);
    }
    ck_abort_msg("the valid plugin has no note");
    return NULL;
}

static void change_magic(void) { image[0] = 'M'; }
static void change_class(void) { image[EI_CLASS] = image[EI_CLASS] == 1 ? 2 : 1; }
static void change_order(void) { image[EI_DATA] = image[EI_DATA] == 1 ? 2 : 1; }
static void change_machine(void) { ((Elf64_Ehdr *)(void *)image)->e_machine = EM_68K; }
static void change_type(void) { ((Elf64_Ehdr *)(void *)image)->e_type = ET_EXEC; }
static void change_phentsize(void) { ((Elf64_Ehdr *)(void *)image)->e_phentsize = 32; }
static void change_phoff(void) { ((Elf64_Ehdr *)(void *)image)->e_phoff = UINT64_MAX - 8; }
static void change_shoff(void) { ((Elf64_Ehdr *)(void *)image)->e_shoff = image_size; }
static void change_owner(void) { memcpy(note_of_image()->owner, "pins", 4); }
static void change_size(void) { note_of_image()->content_size--; }
static void change_kind(void) { note_of_image()->kind = PONS_KIND_LOSS; }
static void change_strange_kind(void) { note_of_image()->kind = 77; }
static void change_major(void) { note_of_image()->abi_major++; }
static void change_minor(void) { note_of_image()->abi_minor = PONS_ABI_MINOR + 1; }
static void change_name(void) { memcpy(note_of_image()->name, "affect", 6); }
static void change_name_end(void) { memset(note_of_image()->name, 'x', PONS_NAME_SIZE); }
static void change_name_path(void) { memcpy(note_of_image()->name, "../../", 6); }

static void change_segment(void)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)(void *)image;
    ((Elf64_Phdr *)(void *)(image + h->e_phoff))->p_filesz = image_size + 1;
}

static const struct { void (*change)(void); const char *phrase; } plugin_gallery[] = {
    { change_magic, "it is not an ELF file" },
    { change_class, "ELF class is 1, expected 2" },
    { change_order, "ELF byte order is 2, expected 1" },
    { change_machine, "ELF machine is 4, expected" },
    { change_type, "ELF type is 2, expected 3" },
    { change_phentsize, "size of a program header is 32, expected 56" },
    { change_phoff, "program headers at 18446744073709551607 lie outside" },
    { change_shoff, "section headers at" },
    { change_segment, "segment 0" },
    { change_owner, "it holds 0 pons notes, expected 1: not a pons plugin" },
    { change_size, "size of the pons note is 55, expected 56" },
    { change_kind, "kind is 'loss', expected 'schedule'" },
    { change_strange_kind, "kind is 77, expected 1 to 9" },
    { change_major, "ABI major is 3, expected 2" },
    { change_minor, "ABI minor is 1, expected at most 0" },
    { change_name, "name is 'affect', expected 'effect'" },
    { change_name_end, "the name in its pons note has no end" },
    { change_name_path, "name in its note is not of small letters" },
};

#endif
