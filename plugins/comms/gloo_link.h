/*
 * gloo_link.h - what the gloo plugin asks of the library, in C: gloo has a C++ interface only.
 *
 * Functions return NULL, or one line that says what went wrong, in 'text' (of the size below).
 * Where this process had no memory for it, the line says 'out of memory'.
 */
#ifndef PLUGINS_COMMS_GLOO_LINK_H
#define PLUGINS_COMMS_GLOO_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GLOO_LINK_TEXT 512
#define GLOO_LINK_NO_MEMORY "out of memory"

typedef struct gloo_link gloo_link;

/* Values by which the processes find each other; false: 'text' says why. */
typedef struct gloo_link_store {
    void *context;
    bool (*set)(void *context, const char *key, const void *value, size_t size, char *text);
    bool (*get)(void *context, const char *key, void *value, size_t room, size_t *size,
                 char *text);
    size_t room;              /* largest value                                                    */
} gloo_link_store;

const char *gloo_link_open(int rank, int size, const char *address, double timeout_s,
                           const gloo_link_store *store, gloo_link **out, char *text);
void gloo_link_close(gloo_link *link);
/* What is under way and what comes later fails. Any thread. */
void gloo_link_stop(gloo_link *link);

const char *gloo_link_sum_floats(gloo_link *link, float *buffer, size_t count, uint32_t tag,
                                 char *text);
const char *gloo_link_sum_doubles(gloo_link *link, double *buffer, size_t count, uint32_t tag,
                                  char *text);
const char *gloo_link_broadcast(gloo_link *link, void *buffer, size_t size, int root, uint32_t tag,
                                char *text);
const char *gloo_link_gather(gloo_link *link, const void *mine, size_t size, void *all,
                             uint32_t tag, char *text);
const char *gloo_link_barrier(gloo_link *link, uint32_t tag, char *text);

#ifdef __cplusplus
}
#endif

#endif
