/*
 * torch_maker.c - the bytes of zip archives, without alignment and without zip64.
 */
#include "support/data/torch_maker.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL_SIZE = 30, ENTRY_SIZE = 46, END_SIZE = 22 };

static unsigned char *put_number(unsigned char *to, uint32_t value, int size)
{
    for (int i = 0; i < size; i++)
        *to++ = (unsigned char)(value >> 8 * i);
    return to;
}

static unsigned char *put_bytes(unsigned char *to, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(to, bytes, size);
    return to + size;
}

/* The members that local headers and entries of the directory share: flags to extra size. */
static unsigned char *put_facts(unsigned char *to, const torch_entry *e)
{
    to = put_number(to, 0, 2);  /* flags, stored, time, date */
    to = put_number(to, 0, 2);
    to = put_number(to, 0, 4);
    to = put_number(to, (uint32_t)crc32(0, e->bytes, (unsigned)e->size), 4);
    to = put_number(to, (uint32_t)e->size, 4);
    to = put_number(to, (uint32_t)e->size, 4);
    to = put_number(to, (uint32_t)strlen(e->name), 2);
    return put_number(to, 0, 2);
}

static unsigned char *put_entry(unsigned char *to, const torch_entry *e, uint32_t place)
{
    to = put_number(to, 0x02014b50, 4);
    to = put_number(to, 0, 2);
    to = put_number(to, 0, 2);
    to = put_facts(to, e);
    to = put_number(to, 0, 4);  /* comment, disk, attributes */
    to = put_number(to, 0, 2);
    to = put_number(to, 0, 4);
    to = put_number(to, place, 4);
    return put_bytes(to, e->name, strlen(e->name));
}

unsigned char *torch_maker_archive(int count, const torch_entry entry[], size_t *size)
{
    uint32_t place[64] = { 0 }, directory;
    unsigned char *bytes, *to;

    *size = END_SIZE;
    for (int i = 0; i < count; i++)
        *size += LOCAL_SIZE + ENTRY_SIZE + 2 * strlen(entry[i].name) + entry[i].size;
    bytes = to = malloc(*size);
    for (int i = 0; i < count; i++) {
        place[i] = (uint32_t)(to - bytes);
        to = put_number(to, 0x04034b50, 4);
        to = put_number(to, 0, 2);
        to = put_facts(to, &entry[i]);
        to = put_bytes(to, entry[i].name, strlen(entry[i].name));
        to = put_bytes(to, entry[i].bytes, entry[i].size);
    }
    directory = (uint32_t)(to - bytes);
    for (int i = 0; i < count; i++)
        to = put_entry(to, &entry[i], place[i]);
    to = put_number(to, 0x06054b50, 4);
    to = put_number(to, 0, 4);
    to = put_number(to, (uint32_t)count, 2);
    to = put_number(to, (uint32_t)count, 2);
    to = put_number(to, (uint32_t)(*size - END_SIZE - directory), 4);
    to = put_number(to, directory, 4);
    put_number(to, 0, 2);
    return bytes;
}

unsigned char *torch_maker_file(const void *pickle, size_t length, size_t data, size_t *size)
{
    unsigned char storage[256];

    for (size_t i = 0; i < data; i++)
        storage[i] = (unsigned char)i;
    return torch_maker_archive(2, (torch_entry[]){ { "a/data.pkl", pickle, length },
                                                   { "a/data/0", storage, data } }, size);
}
