/*
 * mapped_file.c - the mappings of this process, and the handler of SIGBUS that searches them.
 *
 * A signal has one handler a process, so the list of mappings is global. It only grows: the entry
 * of a closed file is reused, so a handler can walk the list at any time.
 */
#include "base/file/mapped_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct mapped_file {
    _Atomic(char *) begin;     /* NULL: closed                                                    */
    size_t size, last;         /* last: offset of the last non-zero byte                          */
    bool watched;              /* another owner unmaps it                                         */
    atomic_bool taken, damaged;
    mapped_file *next;
};

static _Atomic(mapped_file *) mappings;
static struct sigaction previous_action;
static size_t page_size;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static mapped_file *find_around(const char *at)
{
    for (mapped_file *m = mappings; m != NULL; m = m->next) {
        const char *begin = m->begin;
        if (begin != NULL && at >= begin && at < begin + m->size)
            return m;
    }
    return NULL;
}

/* Map zeros from the page of 'at' to the end of the mapping, since later pages are lost too. */
static bool replace_rest(mapped_file *m, const char *at)
{
    char *begin = m->begin, *from = begin + (at - begin) - (uintptr_t)at % page_size;

    m->damaged = true;
    return mmap(from, (size_t)(begin + m->size - from), PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Handler of SIGBUS. It may only make system calls and read memory that is never freed. */
static void handle_bus_error(int number, siginfo_t *about, void *context)
{
    int kept = errno;
    mapped_file *m = about->si_code > 0 ? find_around(about->si_addr) : NULL;

    (void)context;
    if (m == NULL || !replace_rest(m, about->si_addr)) {
        sigaction(SIGBUS, &previous_action, NULL); /* the access repeats */
        if (about->si_code <= 0)
            raise(number);
    }
    errno = kept;
}

static void install_handler(void)
{
    struct sigaction mine = { .sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO };

    page_size = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&mine.sa_mask);
    sigaction(SIGBUS, &mine, &previous_action);
}

static mapped_file *take_entry(void)
{
    mapped_file *m;

    for (m = mappings; m != NULL; m = m->next)
        if (!atomic_exchange(&m->taken, true))
            return m;
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->taken = true;
    m->next = mappings;
    while (!atomic_compare_exchange_weak(&mappings, &m->next, m))
        continue;
    return m;
}

static size_t find_last(const char *bytes, size_t size)
{
    while (size > 1 && bytes[size - 1] == 0)
        size--;
    return size - 1;
}

static void begin_entry(mapped_file *m, char *begin, size_t size, bool watched)
{
    pthread_once(&installed, install_handler);
    m->size = size;
    m->damaged = false;
    m->watched = watched;
    m->begin = begin;
    m->last = find_last(begin, size);
}

mapped_file *mapped_file_open(int file, off_t offset, size_t size)
{
    mapped_file *m = take_entry();
    char *begin;

    if (m == NULL)
        return NULL;
    begin = mmap(NULL, size, PROT_READ, MAP_SHARED, file, offset);
    if (begin == MAP_FAILED) {
        m->taken = false;
        return NULL;
    }
    begin_entry(m, begin, size, false);
    return m;
}

mapped_file *mapped_file_watch(void *begin, size_t size)
{
    mapped_file *m = take_entry();

    if (m != NULL)
        begin_entry(m, begin, size, true);
    return m;
}

void mapped_file_close(mapped_file *m)
{
    char *begin;

    if (m == NULL)
        return;
    begin = atomic_exchange(&m->begin, NULL);
    if (!m->watched)
        munmap(begin, m->size);
    m->taken = false;
}

void *mapped_file_bytes(const mapped_file *m)
{
    return m->begin;
}

/* The last byte is tested because a page cut in the middle reads as zeros without a signal. */
bool mapped_file_is_whole(const mapped_file *m)
{
    const volatile char *bytes = m->begin;

    return bytes[m->last] != 0 && !m->damaged;
}
