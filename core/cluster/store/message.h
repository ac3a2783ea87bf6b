/*
 * message.h - what goes over the store's connections: a challenge with a number that occurs once,
 * a response that proves the token with it, then messages. All of it has bounds that are checked
 * before anything is kept.
 */
#ifndef CORE_CLUSTER_STORE_MESSAGE_H
#define CORE_CLUSTER_STORE_MESSAGE_H

#include <pons/comm.h>

enum {
    STORE_KEY_MAX = 255,
    STORE_HEAD = 16,        /* kind, size of the key, 0, 0; number; extra; size of the value      */
    STORE_MESSAGE_MAX = STORE_HEAD + STORE_KEY_MAX + PONS_COMM_VALUE_MAX,
    STORE_CHALLENGE = 32,   /* text, 16 random bytes                                              */
    STORE_RESPONSE = 64     /* text, 4 words, HMAC-SHA-256                                        */
};

typedef enum store_kind {
    STORE_SET = 1,          /* requests                                                           */
    STORE_SET_FIRST,
    STORE_GET,              /* extra: milliseconds to wait                                        */
    STORE_CLOSE,            /* the connection ends in order; no answer                            */
    STORE_WELCOME,          /* to a response, when all are there; value: the process's address    */
    STORE_UNAUTHENTICATED,  /* to a response that does not prove the token                        */
    STORE_DONE,             /* to SET                                                             */
    STORE_VALUE,            /* to GET; extra: milliseconds since it was set                       */
    STORE_LATE,             /* to GET: nobody has set it                                          */
    STORE_REFUSED,          /* value: why; extra: the status; number 0: the end of the connection */
    STORE_EARLY,            /* to a response, while an earlier run is there; value: what keeps it */
    STORE_KINDS
} store_kind;

typedef struct store_message {
    store_kind kind;
    uint32_t number, extra; /* an answer has its request's number                                 */
    char key[STORE_KEY_MAX + 1];
    const void *value;
    size_t size;
} store_message;

/* Returns the size, at most STORE_MESSAGE_MAX, of what has been written to 'out'. */
size_t store_message_write(const store_message *m, uint8_t *out);
/* The size of the message with this head; -1: no message has such a head. */
int store_message_size(const uint8_t head[STORE_HEAD]);
/*
 * The first message of 'data': its size, 0 where it is not complete yet, -1 where it is none. The
 * value lies in 'data'.
 */
int store_message_read(const uint8_t *data, size_t size, store_message *out);
/* Words without blanks and control characters, at most STORE_KEY_MAX bytes. */
bool store_key_valid(const char *key);

typedef struct store_response {
    uint32_t rank, size, process;
    uint32_t wait_ms;       /* how long this process will wait for the others                     */
} store_response;

bool store_challenge_write(uint8_t out[STORE_CHALLENGE]);      /* false: no random numbers        */
bool store_challenge_valid(const uint8_t challenge[STORE_CHALLENGE]);
void store_response_write(const store_response *response, const char *token,
                          const uint8_t challenge[STORE_CHALLENGE], uint8_t out[STORE_RESPONSE]);
/*
 * Whether it is a response to this challenge by a process that knows the token; in constant time.
 */
bool store_response_read(const uint8_t data[STORE_RESPONSE], const char *token,
                         const uint8_t challenge[STORE_CHALLENGE], store_response *out);

#endif
