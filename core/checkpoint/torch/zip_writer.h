/*
 * zip_writer.h - write a zip archive of stored entries, whose data begin at multiples of 64 bytes
 * as PyTorch has them.
 */
#ifndef CORE_CHECKPOINT_TORCH_ZIP_WRITER_H
#define CORE_CHECKPOINT_TORCH_ZIP_WRITER_H

#include <pons/plugin.h>
#include <stdio.h>

#include "base/arena.h"

typedef struct zip_written {
    const char *name;
    uint32_t crc, size, place;  /* of the data; 'place' of the local header                       */
} zip_written;

typedef struct zip_writer {
    FILE *file;
    const char *where;          /* the file in messages                                           */
    arena *memory;
    zip_written *entry;
    int count, room;
    uint64_t size;              /* bytes written                                                  */
} zip_writer;

/* Append an entry. PONS_CONFIG: the archive would have over 4 GiB or 65534 entries. */
pons_status zip_writer_add(zip_writer *w, const char *name, const void *bytes, size_t size,
                           pons_error *err);
/* Write the directory, which completes the archive. */
pons_status zip_writer_end(zip_writer *w, pons_error *err);

#endif
