/*
 * gloo_link.h - C functions around gloo, which has a C++ interface only.
 *
 * Functions return NULL, or one line about the failure in 'text' (of the size below).
 * The line says 'out of memory' if this process lacked memory, and 'Too many open files' if it
 * lacked descriptors.
 */
#ifndef PLUGINS_COMMS_GLOO_GLOO_LINK_H
#define PLUGINS_COMMS_GLOO_GLOO_LINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GLOO_LINK_TEXT 512
#define GLOO_LINK_NO_MEMORY "out of memory"
#define GLOO_LINK_NO_FILES "Too many open files"

typedef struct gloo_link gloo_link;

/* This process among all of them. */
typedef struct gloo_link_ranks {
    int rank, size;
    const char *address;      /* of this node                                                     */
    double timeout_s;         /* for opening                                                      */
    /* By rank, connections to the others (comm_peers.h). Those that belong to gloo become -1. */
    int *socket;
} gloo_link_ranks;

const char *gloo_link_open(const gloo_link_ranks *ranks, gloo_link **out, char *text);
void gloo_link_close(gloo_link *link);
/* Fail the collective under way and all later ones. Any thread. */
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
