/*
 * message.c - messages of the store as bytes, little end first, and the proof of the token:
 * a hash over token and greeting, so that the token itself never travels and no hello serves twice.
 */
#include "cluster/store/message.h"

#include <string.h>
#include <sys/random.h>

#include "base/hash/sha256.h"

static const char greeting_text[16] = "pons store 1\n", hello_text[16] = "pons rank 1\n";

static void put_word(uint8_t *out, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(word >> 8 * i);
}

static uint32_t get_word(const uint8_t *data)
{
    return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool is_word(const uint8_t *key, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (key[i] <= ' ' || key[i] == 0x7f)
            return false;
    return true;
}

bool store_key_valid(const char *key)
{
    size_t size = strlen(key);

    return size >= 1 && size <= STORE_KEY_MAX && is_word((const uint8_t *)key, size);
}

size_t store_message_write(const store_message *m, uint8_t *out)
{
    size_t key = strlen(m->key);

    memset(out, 0, STORE_HEAD);
    out[0] = (uint8_t)m->kind;
    out[1] = (uint8_t)key;
    put_word(out + 4, m->number);
    put_word(out + 8, m->extra);
    put_word(out + 12, (uint32_t)m->size);
    memcpy(out + STORE_HEAD, m->key, key);
    if (m->size > 0)
        memcpy(out + STORE_HEAD + key, m->value, m->size);
    return STORE_HEAD + key + m->size;
}

int store_message_size(const uint8_t head[STORE_HEAD])
{
    uint32_t value = get_word(head + 12);

    if (head[0] < STORE_SET || head[0] >= STORE_KINDS || head[2] != 0 || head[3] != 0
        || value > PONS_COMM_VALUE_MAX)
        return -1;
    return STORE_HEAD + head[1] + (int)value;
}

int store_message_read(const uint8_t *data, size_t size, store_message *out)
{
    int whole = size < STORE_HEAD ? 0 : store_message_size(data);
    size_t key;

    if (whole <= 0 || size < (size_t)whole)
        return whole < 0 ? -1 : 0;
    key = data[1];
    if (!is_word(data + STORE_HEAD, key))
        return -1;
    *out = (store_message){ .kind = (store_kind)data[0], .number = get_word(data + 4),
                            .extra = get_word(data + 8), .value = data + STORE_HEAD + key,
                            .size = (size_t)whole - STORE_HEAD - key };
    memcpy(out->key, data + STORE_HEAD, key);
    return whole;
}

/* ---- greeting and hello ---------------------------------------------------------------------- */

bool store_greeting_write(uint8_t out[STORE_GREETING])
{
    size_t text = sizeof greeting_text;

    memcpy(out, greeting_text, text);
    return getrandom(out + text, STORE_GREETING - text, 0) == (ssize_t)(STORE_GREETING - text);
}

bool store_greeting_valid(const uint8_t greeting[STORE_GREETING])
{
    return memcmp(greeting, greeting_text, sizeof greeting_text) == 0;
}

enum { HELLO_TEXT = 16, HELLO_HEAD = 32, PROOF = STORE_HELLO - HELLO_HEAD, TOKEN_ROOM = 128 };

/* hash(key, hash(key, message)) with the token, filled up with zeros, as key. */
static void prove(const char *token, const uint8_t greeting[STORE_GREETING],
                  const uint8_t head[HELLO_HEAD], char proof[PROOF + 1])
{
    uint8_t key[TOKEN_ROOM] = { 0 };
    sha256 h;

    memcpy(key, token, strnlen(token, TOKEN_ROOM));
    sha256_init(&h);
    sha256_add(&h, key, sizeof key);
    sha256_add(&h, greeting, STORE_GREETING);
    sha256_add(&h, head, HELLO_HEAD);
    sha256_finish(&h, proof);
    sha256_init(&h);
    sha256_add(&h, key, sizeof key);
    sha256_add(&h, proof, PROOF);
    sha256_finish(&h, proof);
}

void store_hello_write(const store_hello *hello, const char *token,
                       const uint8_t greeting[STORE_GREETING], uint8_t out[STORE_HELLO])
{
    char proof[PROOF + 1];

    memcpy(out, hello_text, HELLO_TEXT);
    put_word(out + 16, hello->rank);
    put_word(out + 20, hello->size);
    put_word(out + 24, hello->process);
    put_word(out + 28, hello->wait_ms);
    prove(token, greeting, out, proof);
    memcpy(out + HELLO_HEAD, proof, PROOF);
}

bool store_hello_read(const uint8_t data[STORE_HELLO], const char *token,
                      const uint8_t greeting[STORE_GREETING], store_hello *out)
{
    volatile unsigned wrong = 0;
    char proof[PROOF + 1];

    prove(token, greeting, data, proof);
    for (int i = 0; i < PROOF; i++)
        wrong |= data[HELLO_HEAD + i] ^ (uint8_t)proof[i];
    if (wrong != 0 || memcmp(data, hello_text, HELLO_TEXT) != 0)
        return false;
    *out = (store_hello){ .rank = get_word(data + 16), .size = get_word(data + 20),
                          .process = get_word(data + 24), .wait_ms = get_word(data + 28) };
    return true;
}
