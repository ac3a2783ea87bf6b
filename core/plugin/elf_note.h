/*
 * elf_note.h - read the pons note from the bytes of a plugin file.
 */
#ifndef CORE_PLUGIN_ELF_NOTE_H
#define CORE_PLUGIN_ELF_NOTE_H

#include <pons/plugin.h>

/*
 * Check that 'data' is a complete shared object for this machine and copy its pons note. 'path'
 * appears only in messages. Reads no byte outside [data, data + size).
 */
pons_status elf_note_read(const char *path, const void *data, size_t size, pons_note *note,
                          pons_error *err);

#endif
