/*
 * fuzz_note.c - arbitrary bytes as a plugin file, whose note and dynamic tables are read. The
 * reader refuses the file with a line that names it, or returns a note with a terminated name.
 */
#include "fuzz/fuzz_file.h"

#include "plugin/elf_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    pons_note note;
    pons_status status = elf_note_read("a.so", data, size, &note, &err);

    if (status == PONS_OK) {
        require(memchr(note.name, '\0', sizeof note.name) != NULL, "a name ends");
    } else {
        require(status == PONS_PLUGIN && err.status == PONS_PLUGIN, "a refusal has its code");
        require(strstr(err.text, "a.so") != NULL, "a refusal names the file");
    }
    return 0;
}
