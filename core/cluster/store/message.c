/*
 * message.c - messages of the store as bytes, little end first, and the proof of the token.
 *
 * A response has the HMAC-SHA-256 of the server's random challenge and of what it says. The key is
 * the token, which itself never travels, and no response serves twice.
 */
#include "cluster/store/message.h"

#include <string.h>
#include <sys/random.h>

#include "base/hash/hmac_sha256.h"

static const char challenge_text[16] = "pons store 2\n", response_text[16] = "pons rank 2\n";

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

/* ---- challenge and response ------------------------------------------------------------------ */

enum { TEXT = 16, HEAD = STORE_RESPONSE - SHA256_SIZE };

bool store_challenge_write(uint8_t out[STORE_CHALLENGE])
{
    memcpy(out, challenge_text, TEXT);
    return getrandom(out + TEXT, STORE_CHALLENGE - TEXT, 0) == STORE_CHALLENGE - TEXT;
}

bool store_challenge_valid(const uint8_t challenge[STORE_CHALLENGE])
{
    return memcmp(challenge, challenge_text, TEXT) == 0;
}

/* The code of the challenge and the head of a response, with the token as the key. */
static void token_hmac(const char *token, const uint8_t challenge[STORE_CHALLENGE],
                       const uint8_t head[HEAD], uint8_t code[SHA256_SIZE])
{
    hmac_sha256 h;

    hmac_sha256_init(&h, token, strlen(token));
    hmac_sha256_add(&h, challenge, STORE_CHALLENGE);
    hmac_sha256_add(&h, head, HEAD);
    hmac_sha256_finish(&h, code);
}

void store_response_write(const store_response *response, const char *token,
                          const uint8_t challenge[STORE_CHALLENGE], uint8_t out[STORE_RESPONSE])
{
    memcpy(out, response_text, TEXT);
    put_word(out + 16, response->rank);
    put_word(out + 20, response->size);
    put_word(out + 24, response->process);
    put_word(out + 28, response->wait_ms);
    token_hmac(token, challenge, out, out + HEAD);
}

bool store_response_read(const uint8_t data[STORE_RESPONSE], const char *token,
                         const uint8_t challenge[STORE_CHALLENGE], store_response *out)
{
    volatile unsigned wrong = 0;
    uint8_t code[SHA256_SIZE];

    token_hmac(token, challenge, data, code);
    for (int i = 0; i < SHA256_SIZE; i++)
        wrong |= data[HEAD + i] ^ code[i];
    if (wrong != 0 || memcmp(data, response_text, TEXT) != 0)
        return false;
    *out = (store_response){ .rank = get_word(data + 16), .size = get_word(data + 20),
                             .process = get_word(data + 24), .wait_ms = get_word(data + 28) };
    return true;
}
