/*
 * zip_archive.h - the entries of a zip archive in memory, also of zip64. Entries are stored, not
 * compressed; an entry that is compressed or encrypted is refused when it is looked for.
 */
#ifndef CORE_CHECKPOINT_TORCH_ZIP_ARCHIVE_H
#define CORE_CHECKPOINT_TORCH_ZIP_ARCHIVE_H

#include <pons/plugin.h>

#include "base/arena.h"
#include "base/hash/name_index.h"

typedef struct zip_entry {
    const char *name;
    const unsigned char *bytes;
    uint64_t size;
    uint32_t crc;           /* CRC-32 of the bytes; 0: not recorded                               */
    unsigned method;        /* 0: stored                                                          */
    bool encrypted;
} zip_entry;

typedef struct zip_archive {
    const char *where;
    zip_entry *entry;       /* of the arena                                                       */
    int count;
    name_index names;
} zip_archive;

/*
 * Read the directory; 'bytes' and 'where' outlive the archive. PONS_DATA: it is damaged, or two
 * entries have one name.
 */
pons_status zip_archive_read(const unsigned char *bytes, size_t size, const char *where, arena *a,
                             zip_archive *out, pons_error *err);
void zip_archive_clear(zip_archive *z);
/* The entry; *out NULL: none of this name. PONS_DATA: it is compressed or encrypted. */
pons_status zip_archive_find(const zip_archive *z, const char *name, const zip_entry **out,
                             pons_error *err);

#endif
