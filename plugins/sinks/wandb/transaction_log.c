/*
 * transaction_log.c - divide records into the fragments of a log, and join them.
 */
#include "sinks/wandb/transaction_log.h"

#include <string.h>
#include <zlib.h>

enum { BLOCK = 32768, HEAD = 7 };
enum { WHOLE = 1, FIRST = 2, MIDDLE = 3, LAST = 4 };

static const unsigned char header[] = { ':', 'W', '&', 'B', 0xe1, 0xbe, 0 };

static uint32_t fragment_crc(unsigned char type, const void *data, size_t size)
{
    return (uint32_t)crc32_z(crc32_z(0, &type, 1), data, size);
}

/* ---- writing --------------------------------------------------------------------------------- */

void transaction_log_begin(message *out)
{
    message_append(out, header, sizeof header);
}

static void append_fragment(message *out, int type, const void *data, size_t size)
{
    unsigned char head[HEAD];

    little_endian_store(head, fragment_crc((unsigned char)type, data, size), 4);
    little_endian_store(head + 4, size, 2);
    head[6] = (unsigned char)type;
    message_append(out, head, HEAD);
    message_append(out, data, size);
}

void transaction_log_append(message *out, int64_t at, const message *record)
{
    static const unsigned char zeros[HEAD];
    size_t left = record->size;
    const unsigned char *data = record->data;

    out->failed = out->failed || record->failed;
    for (bool first = true; first || left > 0; first = false) {
        size_t room = (size_t)(BLOCK - at % BLOCK), size;
        if (room < HEAD) {
            message_append(out, zeros, room);
            at += (int64_t)room;
            room = BLOCK;
        }
        size = left < room - HEAD ? left : room - HEAD;
        append_fragment(out, first ? size == left ? WHOLE : FIRST : size == left ? LAST : MIDDLE,
                        data, size);
        data += size;
        left -= size;
        at += (int64_t)(HEAD + size);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

bool transaction_log_open(FILE *file)
{
    unsigned char found[sizeof header];

    rewind(file);
    return fread(found, 1, sizeof found, file) == sizeof found
           && memcmp(found, header, sizeof header) == 0;
}

/* Append the data of the next fragment to the record. The result is its type; 0: there is none. */
static int read_fragment(FILE *file, message *record)
{
    unsigned char head[HEAD], data[BLOCK];
    long room = BLOCK - ftell(file) % BLOCK;
    size_t size;

    if ((room < HEAD && fseek(file, room, SEEK_CUR) != 0) || fread(head, 1, HEAD, file) != HEAD)
        return 0;
    size = little_endian_load(head + 4, 2);
    if (size > sizeof data || fread(data, 1, size, file) != size
        || little_endian_load(head, 4) != fragment_crc(head[6], data, size))
        return 0;
    message_append(record, data, size);
    return head[6];
}

bool transaction_log_read(FILE *file, message *record)
{
    int type;

    record->size = 0;
    type = read_fragment(file, record);
    if (type == FIRST)
        while ((type = read_fragment(file, record)) == MIDDLE)
            continue;
    else if (type != WHOLE)
        return false;
    return (type == WHOLE || type == LAST) && !record->failed;
}
