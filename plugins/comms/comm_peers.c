/*
 * comm_peers.c - connections between all pairs of ranks, proved before a byte of them is used.
 *
 * Each rank listens at one port and publishes its address, port and a random secret in the store,
 * which only processes with the job's token can read. It connects to all lower ranks, then accepts
 * all higher ones:
 *
 *   listener     challenge L
 *   connector    response to L with the listener's secret, challenge C
 *   listener     response to C with the same secret
 *
 * A response names the rank that sends it and the rank that it is for, so none serves at a third
 * one. The listener responds last: otherwise a stranger could pass its response on.
 * Strangers may connect at any time, say anything or nothing: a candidate has a deadline, and where
 * there are too many, or descriptors run out, the oldest has to go. A peer that was turned away in
 * a crowd comes again. A process without descriptors for its peers alone fails at once.
 */
#include "comms/comm_peers.h"

#include "base/clock.h"
#include "cluster/store/socket.h"
#include "cluster/store/message.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define FAILED "cannot connect the processes: "
#define CANDIDATE_S 5.0 /* deadline of a response                                                 */
#define AGAIN_S 0.05    /* pause between two attempts                                             */
#define GLANCE_S 0.5    /* longest wait of the listener                                           */

enum { CANDIDATES = 64, SECRET = 32, VALUE_ROOM = 256, CLAIM = STORE_RESPONSE + STORE_CHALLENGE };

/* The address and the secret that a rank publishes in the store. */
typedef struct address {
    char host[SOCKET_ADDRESS_SIZE], secret[2 * SECRET + 1];
    int port;
} address;

/* A connection that has not proved anything yet. */
typedef struct candidate {
    int fd;
    double until;
    uint8_t challenge[STORE_CHALLENGE], claim[CLAIM];
    size_t got;
} candidate;

typedef struct meeting {
    const pons_comm_rank_info *place;
    const pons_comm_store *store;
    int *socket;
    double deadline;
    int listener, candidates;
    address mine;
    candidate candidate[CANDIDATES];  /* the oldest first                                         */
} meeting;

static pons_status fail_late(const meeting *m, int rank, const char *why, pons_error *err)
{
    return pons_fail(err, PONS_COMMUNICATION, FAILED "no connection with rank %d within %g s: %s",
                     rank, m->place->timeout_s, why);
}

/* ---- responses ------------------------------------------------------------------------------- */

/* The two sides of a connection. */
typedef enum side { CONNECTOR = 0, LISTENER } side;

static void write_response(const meeting *m, side from, int to, const char *secret,
                           const uint8_t *challenge, uint8_t *out)
{
    const store_response h = { .rank = (uint32_t)m->place->rank, .size = (uint32_t)m->place->size,
                               .process = (uint32_t)to, .wait_ms = from };

    store_response_write(&h, secret, challenge, out);
}

/* The rank that sent this response here, or -1. */
static int read_response(const meeting *m, side from, const uint8_t *data, const char *secret,
                         const uint8_t *challenge)
{
    store_response h;

    if (!store_response_read(data, secret, challenge, &h) || h.size != (uint32_t)m->place->size
        || h.process != (uint32_t)m->place->rank || h.wait_ms != from || h.rank >= h.size)
        return -1;
    return (int)h.rank;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static pons_status make_secret(char out[2 * SECRET + 1], pons_error *err)
{
    uint8_t bytes[SECRET];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return pons_fail(err, PONS_FAILURE, FAILED "no random numbers: %s", strerror(errno));
    for (int i = 0; i < SECRET; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return PONS_OK;
}

static pons_status publish(meeting *m, pons_error *err)
{
    char key[32], value[VALUE_ROOM];

    m->listener = socket_listen_free(m->place->address, &m->mine.port);
    if (m->listener < 0)
        return pons_fail(err, socket_is_shortage(errno) ? PONS_DEVICE : PONS_COMMUNICATION, FAILED
                         "cannot listen at '%s': %s", m->place->address, strerror(errno));
    if (make_secret(m->mine.secret, err) != PONS_OK)
        return err->status;
    snprintf(key, sizeof key, "gloo.%d", m->place->rank);
    snprintf(value, sizeof value, "%s %d %s", m->place->address, m->mine.port, m->mine.secret);
    return m->store->set(m->store->context, key, value, strlen(value), err);
}

static pons_status find(const meeting *m, int rank, address *out, pons_error *err)
{
    char key[32], value[VALUE_ROOM];
    size_t size;
    pons_error late = PONS_ERROR_INIT;

    snprintf(key, sizeof key, "gloo.%d", rank);
    if (m->store->get(m->store->context, key, value, sizeof value - 1, &size, &late) != PONS_OK)
        return pons_fail(err, late.status, FAILED "%s", late.text);
    value[size < sizeof value ? size : sizeof value - 1] = '\0';
    if (sscanf(value, "%63s %d %64s", out->host, &out->port, out->secret) != 3)
        return pons_fail(err, PONS_COMMUNICATION, FAILED "rank %d has published no address", rank);
    return PONS_OK;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* True if the other side is that rank; it may be busy with others until the deadline. */
static bool prove(const meeting *m, int fd, int rank, const address *there)
{
    uint8_t challenge[STORE_CHALLENGE], claim[CLAIM], answer[STORE_RESPONSE];

    if (!socket_receive(fd, challenge, sizeof challenge, m->deadline)
        || !store_challenge_valid(challenge) || !store_challenge_write(claim + STORE_RESPONSE))
        return false;
    write_response(m, CONNECTOR, rank, there->secret, challenge, claim);
    return socket_send(fd, claim, sizeof claim, m->deadline)
           && socket_receive(fd, answer, sizeof answer, m->deadline)
           && read_response(m, LISTENER, answer, there->secret, claim + STORE_RESPONSE) == rank;
}

static pons_status connect_to(meeting *m, int rank, pons_error *err)
{
    const struct timespec again = clock_timespec(AGAIN_S);
    char why[128] = "it has not answered";
    address there;

    if (find(m, rank, &there, err) != PONS_OK)
        return err->status;
    do {
        int fd = socket_connect(there.host, there.port, m->deadline, why, sizeof why);
        if (fd >= 0 && prove(m, fd, rank, &there)) {
            m->socket[rank] = fd;
            return PONS_OK;
        }
        if (fd < 0 && errno == ECONNREFUSED) /* a listener publishes its open port */
            break;
        if (fd < 0 && socket_is_shortage(errno))
            return pons_fail(err, PONS_DEVICE, FAILED "no connection with rank %d: %s", rank, why);
        if (fd >= 0) {
            close(fd);
            snprintf(why, sizeof why, "%s", "it has ended the connection");
        }
        nanosleep(&again, NULL);
    } while (seconds_now() < m->deadline);
    return fail_late(m, rank, why, err);
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void drop(meeting *m, int i, bool with_connection)
{
    if (with_connection)
        close(m->candidate[i].fd);
    m->candidates--;
    memmove(&m->candidate[i], &m->candidate[i + 1],
            (size_t)(m->candidates - i) * sizeof *m->candidate);
}

/* A shortage of descriptors: a candidate gives its own back; the connection is accepted later. */
static pons_status refuse_one(meeting *m, int problem, pons_error *err)
{
    if (!socket_is_shortage(problem))
        return PONS_OK;
    if (m->candidates == 0)
        return pons_fail(err, PONS_DEVICE, FAILED "cannot take a connection: %s",
                         strerror(problem));
    drop(m, 0, true);
    return PONS_OK;
}

static pons_status accept_one(meeting *m, pons_error *err)
{
    int fd = socket_accept(m->listener);
    candidate *c;

    if (fd < 0)
        return refuse_one(m, errno, err);
    if (m->candidates == CANDIDATES)
        drop(m, 0, true);
    c = &m->candidate[m->candidates++];
    c->fd = fd;
    c->got = 0;
    c->until = seconds_now() + CANDIDATE_S;
    if (!store_challenge_write(c->challenge)
        || !socket_send(fd, c->challenge, sizeof c->challenge, c->until))
        drop(m, m->candidates - 1, true);
    return PONS_OK;
}

/* The claim is complete. A peer that comes again has given up its first connection. */
static void judge_claim(meeting *m, int i)
{
    candidate *c = &m->candidate[i];
    int rank = read_response(m, CONNECTOR, c->claim, m->mine.secret, c->challenge);
    uint8_t answer[STORE_RESPONSE];

    if (rank <= m->place->rank || !store_challenge_valid(c->claim + STORE_RESPONSE)) {
        drop(m, i, true);
        return;
    }
    write_response(m, LISTENER, rank, m->mine.secret, c->claim + STORE_RESPONSE, answer);
    if (!socket_send(c->fd, answer, sizeof answer, c->until)) {
        drop(m, i, true);
        return;
    }
    if (m->socket[rank] >= 0)
        close(m->socket[rank]);
    m->socket[rank] = c->fd;
    drop(m, i, false);
}

/* Read no more than the claim: later bytes belong to the next owner of the connection. */
static void hear(meeting *m, int i)
{
    candidate *c = &m->candidate[i];
    ssize_t got = read(c->fd, c->claim + c->got, sizeof c->claim - c->got);

    if (got > 0)
        c->got += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        drop(m, i, true);
    if (got > 0 && c->got == sizeof c->claim)
        judge_claim(m, i);
}

/* Poll all candidates once. The loop runs backwards because removal moves the last one up. */
static pons_status look_round(meeting *m, pons_error *err)
{
    struct pollfd p[CANDIDATES + 1] = { { m->listener, POLLIN, 0 } };

    for (int i = 0; i < m->candidates; i++)
        p[i + 1] = (struct pollfd){ m->candidate[i].fd, POLLIN, 0 };
    if (poll(p, (nfds_t)m->candidates + 1, (int)(1e3 * GLANCE_S)) <= 0)
        p[0].revents = 0;
    for (int i = m->candidates - 1; i >= 0; i--)
        if (p[i + 1].revents != 0)
            hear(m, i);
        else if (seconds_now() > m->candidate[i].until)
            drop(m, i, true);
    return p[0].revents != 0 ? accept_one(m, err) : PONS_OK;
}

static int first_missing(const meeting *m)
{
    for (int rank = m->place->rank + 1; rank < m->place->size; rank++)
        if (m->socket[rank] < 0)
            return rank;
    return -1;
}

static pons_status accept_all(meeting *m, pons_error *err)
{
    int missing;

    while ((missing = first_missing(m)) >= 0) {
        if (seconds_now() > m->deadline)
            return fail_late(m, missing, "it has not come", err);
        if (look_round(m, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pons_status meet(meeting *m, pons_error *err)
{
    if (publish(m, err) != PONS_OK)
        return err->status;
    for (int rank = 0; rank < m->place->rank; rank++)
        if (connect_to(m, rank, err) != PONS_OK)
            return err->status;
    return accept_all(m, err);
}

pons_status comm_peers_connect(const pons_comm_rank_info *place, const pons_comm_store *store,
                               int *socket,
                               pons_error *err)
{
    meeting *m = calloc(1, sizeof *m);

    for (int rank = 0; rank < place->size; rank++)
        socket[rank] = -1;
    if (m == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", place->size);
    m->place = place;
    m->store = store;
    m->socket = socket;
    m->deadline = seconds_now() + place->timeout_s;
    m->listener = -1;
    if (meet(m, err) != PONS_OK)
        comm_peers_close(place->size, socket);
    while (m->candidates > 0)
        drop(m, 0, true);
    if (m->listener >= 0)
        close(m->listener);
    free(m);
    return err->status;
}

void comm_peers_close(int count, int *socket)
{
    for (int rank = 0; rank < count; rank++) {
        if (socket[rank] >= 0)
            close(socket[rank]);
        socket[rank] = -1;
    }
}
