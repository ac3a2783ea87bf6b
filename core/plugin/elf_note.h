/*
 * elf_note.h - the note of a plugin, read from the bytes of its file.
 */
#ifndef CORE_PLUGIN_ELF_NOTE_H
#define CORE_PLUGIN_ELF_NOTE_H

#include <pons/plugin.h>

/*
 * Check that 'data' is a whole shared object for this machine and copy its pons note. 'path' only
 * appears in messages. Reads no byte outside [data, data + size).
 */
pons_status elf_note_read(const char *path, const void *data, size_t size, pons_note *note,
                          pons_error *err);

#endif
