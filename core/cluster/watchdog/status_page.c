/*
 * status_page.c - the page that the launcher shares with its ranks: an anonymous file that all map.
 *
 * A rank may be killed between two writes, and the launcher may read at any time. So every word is
 * written by one atomic store, and 'ended' is written last.
 */
#include "cluster/watchdog/status_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errno_status.h"

/* A string of up to 15 characters in two words, each written by one atomic store. */
typedef struct short_word {
    _Atomic uint64_t half[2];
} short_word;

typedef struct slot {
    _Atomic int64_t step, collective, size;
    short_word doing, kind;
    _Atomic double noted;
    int status;
    double when;
    char text[sizeof((status_page_entry *)0)->text];
    atomic_bool ended;
} slot;

struct status_page {
    int descriptor, count;
    slot *slots;
};

struct status_page_slot {
    slot *slots;      /* the whole page                                                           */
    size_t size;
    slot *mine;
};

/* ---- words ----------------------------------------------------------------------------------- */

static void put_word(short_word *to, const char *text)
{
    uint64_t half[2] = { 0, 0 };

    memcpy(half, text, strnlen(text, sizeof half - 1));
    to->half[0] = half[0];
    to->half[1] = half[1];
}

static void get_word(const short_word *from, char out[16])
{
    uint64_t half[2] = { from->half[0], from->half[1] };

    memcpy(out, half, sizeof half);
    out[15] = '\0';
}

/* ---- launcher -------------------------------------------------------------------------------- */

/* The file is sealed: a rank that truncated it would end the launcher with SIGBUS. */
static pons_status make_file(status_page *b, size_t size, pons_error *err)
{
    b->descriptor = memfd_create("pons launch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (b->descriptor < 0 || ftruncate(b->descriptor, (off_t)size) != 0
        || fcntl(b->descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot make the page of the "
                         "ranks: %s", strerror(errno));
    b->slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, b->descriptor, 0);
    if (b->slots == MAP_FAILED) {
        b->slots = NULL;
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot map the page of the "
                         "ranks: %s", strerror(errno));
    }
    return PONS_OK;
}

pons_status status_page_new(int slots, status_page **out, pons_error *err)
{
    status_page *b = calloc(1, sizeof *b);

    if (b == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    b->descriptor = -1;
    b->count = slots;
    if (make_file(b, (size_t)slots * sizeof(slot), err) != PONS_OK) {
        status_page_free(b);
        return err->status;
    }
    for (int i = 0; i < slots; i++) {
        b->slots[i].step = -1;
        b->slots[i].collective = -1;
    }
    *out = b;
    return PONS_OK;
}

void status_page_free(status_page *b)
{
    if (b == NULL)
        return;
    if (b->slots != NULL)
        munmap(b->slots, (size_t)b->count * sizeof(slot));
    if (b->descriptor >= 0)
        close(b->descriptor);
    free(b);
}

int status_page_descriptor(const status_page *b)
{
    return b->descriptor;
}

void status_page_read(const status_page *b, int i, status_page_entry *out)
{
    const slot *s = &b->slots[i];

    *out = (status_page_entry){ .step = s->step, .collective = s->collective, .size = s->size,
                                .noted = s->noted, .ended = s->ended };
    get_word(&s->doing, out->doing);
    get_word(&s->kind, out->kind);
    if (!out->ended)
        return;
    out->status = s->status;
    out->when = s->when;
    memcpy(out->text, s->text, sizeof out->text);
    out->text[sizeof out->text - 1] = '\0';
}

/* ---- rank ------------------------------------------------------------------------------------ */

status_page_slot *status_page_attach(const char *value)
{
    int descriptor, number, end = 0;
    struct stat facts;

    if (value == NULL || sscanf(value, "%d %d%n", &descriptor, &number, &end) != 2
        || value[end] != '\0' || fstat(descriptor, &facts) != 0 || number < 0
        || (size_t)facts.st_size % sizeof(slot) != 0
        || (size_t)facts.st_size / sizeof(slot) <= (size_t)number)
        return NULL;
    /* Only a page of status_page_new has these seals. Any other file is left alone. */
    if (fcntl(descriptor, F_GET_SEALS) != (F_SEAL_SHRINK | F_SEAL_GROW))
        return NULL;
    status_page_slot *s = malloc(sizeof *s);
    if (s == NULL)
        return NULL;
    s->size = (size_t)facts.st_size;
    s->slots = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (s->slots == MAP_FAILED) {
        free(s);
        return NULL;
    }
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    s->mine = &s->slots[number];
    return s;
}

void status_page_detach(status_page_slot *s)
{
    if (s == NULL)
        return;
    munmap(s->slots, s->size);
    free(s);
}

void status_page_note(status_page_slot *s, int64_t step, const char *doing)
{
    if (s == NULL)
        return;
    s->mine->step = step;
    put_word(&s->mine->doing, doing);
    s->mine->noted = seconds_now();
}

void status_page_collective(status_page_slot *s, int64_t sequence, const char *kind, int64_t size)
{
    if (s == NULL)
        return;
    s->mine->size = size;
    put_word(&s->mine->kind, kind);
    s->mine->collective = sequence;
    s->mine->noted = seconds_now();
}

void status_page_report(status_page_slot *s, int status, const char *text)
{
    if (s == NULL || s->mine->ended)
        return;
    s->mine->status = status;
    s->mine->when = seconds_now();
    snprintf(s->mine->text, sizeof s->mine->text, "%s", text);
    s->mine->ended = true;
}
