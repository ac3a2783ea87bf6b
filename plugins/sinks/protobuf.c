/*
 * protobuf.c - encode and decode messages of Protocol Buffers.
 */
#include "sinks/protobuf.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 }; /* wire types                         */

/* ---- bytes ----------------------------------------------------------------------------------- */

void little_endian_store(unsigned char *out, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

uint64_t little_endian_load(const unsigned char *from, int size)
{
    uint64_t value = 0;

    for (int i = 0; i < size; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

/* ---- writing --------------------------------------------------------------------------------- */

void message_free(message *m)
{
    free(m->data);
    *m = (message){ 0 };
}

bool message_resize(message *m, size_t size)
{
    m->size = 0;
    if (size > m->room) {
        unsigned char *larger = realloc(m->data, size);

        if (larger == NULL)
            return false;
        m->data = larger;
        m->room = size;
    }
    m->size = size;
    return true;
}

void message_append(message *m, const void *data, size_t size)
{
    if (m->size + size > m->room) {
        size_t room = 2 * (m->size + size) + 64;
        unsigned char *larger = m->failed ? NULL : realloc(m->data, room);

        if (larger == NULL) {
            m->failed = true;
            return;
        }
        m->data = larger;
        m->room = room;
    }
    if (size > 0)
        memcpy(m->data + m->size, data, size);
    m->size += size;
}

static void append_varint(message *m, uint64_t value)
{
    unsigned char byte[10];
    size_t size = 0;

    for (; value >= 0x80; value >>= 7)
        byte[size++] = (unsigned char)(value | 0x80);
    byte[size++] = (unsigned char)value;
    message_append(m, byte, size);
}

static void append_key(message *m, int field, int wire)
{
    append_varint(m, (uint64_t)(field << 3 | wire));
}

static void append_fixed(message *m, uint64_t value, int size)
{
    unsigned char byte[8];

    little_endian_store(byte, value, size);
    message_append(m, byte, (size_t)size);
}

void message_put_integer(message *m, int field, uint64_t value)
{
    append_key(m, field, VARINT);
    append_varint(m, value);
}

void message_put_double(message *m, int field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    append_key(m, field, FIXED_64);
    append_fixed(m, bits, 8);
}

void message_put_float(message *m, int field, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    append_key(m, field, FIXED_32);
    append_fixed(m, bits, 4);
}

void message_put_bytes(message *m, int field, const void *data, size_t size)
{
    append_key(m, field, BYTES);
    append_varint(m, size);
    message_append(m, data, size);
}

bool text_is_utf8(const char *text)
{
    json_t *string = json_string(text);
    bool valid = string != NULL;

    json_decref(string);
    return valid;
}

void message_put_text(message *m, int field, const char *text)
{
    size_t size = strlen(text), from;

    message_put_bytes(m, field, text, size);
    if (m->failed || text_is_utf8(text))
        return;
    from = m->size - size;
    for (size_t i = from; i < m->size; i++)
        m->data[i] = m->data[i] < 0x80 ? m->data[i] : '?';
}

void message_put(message *m, int field, const message *inner)
{
    m->failed = m->failed || inner->failed;
    message_put_bytes(m, field, inner->data, inner->size);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_varint(message_view *v, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && v->at < v->end; shift += 7) {
        unsigned char byte = *v->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool skip_bytes(message_view *v, uint64_t size)
{
    if (size > (uint64_t)(v->end - v->at))
        return false;
    v->at += size;
    return true;
}

bool message_read(message_view *v, message_field *out)
{
    uint64_t key, size;

    if (!read_varint(v, &key))
        return false;
    *out = (message_field){ .number = (int)(key >> 3 & 0xffff) };
    switch (key & 7) {
    case VARINT:
        return read_varint(v, &out->value);
    case FIXED_64:
        return skip_bytes(v, 8);
    case FIXED_32:
        return skip_bytes(v, 4);
    case BYTES:
        if (!read_varint(v, &size))
            return false;
        out->bytes = (message_view){ v->at, v->at };
        if (!skip_bytes(v, size))
            return false;
        out->bytes.end = v->at;
        return true;
    default:
        return false;
    }
}

bool message_find(message_view v, int number, message_field *out)
{
    while (message_read(&v, out))
        if (out->number == number)
            return true;
    return false;
}
