/*
 * fuzz_store.c - arbitrary bytes on a connection of the store. The parser returns messages within
 * the bounds, independent of how the bytes are split, or ends the connection. The first 96 bytes
 * also serve as a challenge and a response, which must be refused.
 */
#include "fuzz/fuzz_file.h"

#include "cluster/store/message.h"

static void require_sound(const store_message *m, const uint8_t *data, size_t size, int whole)
{
    uint8_t *bytes = malloc(STORE_MESSAGE_MAX);

    require(m->kind >= STORE_SET && m->kind < STORE_KINDS, "a message has a kind");
    require(memchr(m->key, '\0', sizeof m->key) != NULL, "a key has an end");
    require(m->key[0] == '\0' || store_key_valid(m->key), "a key is a word");
    require(m->size <= PONS_COMM_VALUE_MAX, "a value has a bound");
    require(whole >= STORE_HEAD && (size_t)whole <= size && whole <= STORE_MESSAGE_MAX,
            "a message lies in its bytes");
    require((const uint8_t *)m->value + m->size == data + whole, "a value lies in its message");
    require(bytes && store_message_write(m, bytes) == (size_t)whole
            && memcmp(bytes, data, (size_t)whole) == 0, "a message is written as it was read");
    free(bytes);
}

/* A prefix of a message is incomplete, or is refused for the same reason. */
static void require_patience(const uint8_t *data, int whole)
{
    store_message m;

    for (int part = 0; part < whole; part += 1 + part / 64)
        require(store_message_read(data, (size_t)part, &m) == 0, "a part is no message");
}

static void require_ignorance(const uint8_t *data, size_t size)
{
    store_response response;

    if (size >= STORE_CHALLENGE + STORE_RESPONSE)
        require(!store_response_read(data + STORE_CHALLENGE, "token", data, &response),
                "nobody guesses a code");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    store_message m;
    int whole;

    require_ignorance(data, size);
    while ((whole = store_message_read(data, size, &m)) > 0) {
        require_sound(&m, data, size, whole);
        require_patience(data, whole);
        data += whole;
        size -= (size_t)whole;
    }
    require(whole == 0 || whole == -1, "the rest waits or is refused");
    require(size < STORE_HEAD || (store_message_size(data) < 0) <= (whole == -1),
            "a head without bounds is refused at once");
    return 0;
}
