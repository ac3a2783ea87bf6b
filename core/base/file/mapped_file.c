/*
 * mapped_file.c - the mappings of this process, and the handler of SIGBUS that looks into them.
 *
 * A signal has one handler in a process, so their list is the process's. It only grows: an entry
 * whose file is closed serves another one, and a handler may walk along it at any time.
 */
#include "base/file/mapped_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct mapped_file {
    _Atomic(char *) begin;     /* NULL: closed                                                    */
    size_t size, last;         /* last: the place of the last byte that is not 0                  */
    atomic_bool taken, damaged;
    mapped_file *next;
};

static _Atomic(mapped_file *) all;
static struct sigaction before;
static size_t page;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static mapped_file *find_around(const char *at)
{
    for (mapped_file *m = all; m != NULL; m = m->next) {
        const char *begin = m->begin;
        if (begin != NULL && at >= begin && at < begin + m->size)
            return m;
    }
    return NULL;
}

/* Zeros from the page of 'at' on: what is behind it is gone as well. */
static bool replace_rest(mapped_file *m, const char *at)
{
    char *begin = m->begin, *from = begin + (size_t)(at - begin) / page * page;

    m->damaged = true;
    return mmap(from, (size_t)(begin + m->size - from), PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Only what a handler may do: system calls, and memory that stays. */
static void answer(int number, siginfo_t *about, void *context)
{
    int kept = errno;
    mapped_file *m = about->si_code > 0 ? find_around(about->si_addr) : NULL;

    (void)context;
    if (m == NULL || !replace_rest(m, about->si_addr)) {
        sigaction(SIGBUS, &before, NULL); /* an access that failed comes again */
        if (about->si_code <= 0)
            raise(number);
    }
    errno = kept;
}

static void install(void)
{
    struct sigaction mine = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO };

    page = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&mine.sa_mask);
    sigaction(SIGBUS, &mine, &before);
}

static mapped_file *take_entry(void)
{
    mapped_file *m;

    for (m = all; m != NULL; m = m->next)
        if (!atomic_exchange(&m->taken, true))
            return m;
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->taken = true;
    m->next = all;
    while (!atomic_compare_exchange_weak(&all, &m->next, m))
        continue;
    return m;
}

static size_t find_last(const char *bytes, size_t size)
{
    while (size > 1 && bytes[size - 1] == 0)
        size--;
    return size - 1;
}

mapped_file *mapped_file_open(int file, off_t offset, size_t size)
{
    mapped_file *m = take_entry();
    char *begin;

    if (m == NULL)
        return NULL;
    pthread_once(&installed, install);
    begin = mmap(NULL, size, PROT_READ, MAP_SHARED, file, offset);
    if (begin == MAP_FAILED) {
        m->taken = false;
        return NULL;
    }
    m->size = size;
    m->damaged = false;
    m->begin = begin;
    m->last = find_last(begin, size);
    return m;
}

void mapped_file_close(mapped_file *m)
{
    char *begin;

    if (m == NULL)
        return;
    begin = atomic_exchange(&m->begin, NULL);
    munmap(begin, m->size);
    m->taken = false;
}

void *mapped_file_bytes(const mapped_file *m)
{
    return m->begin;
}

/* A page that is cut in the middle reads as zeros behind the cut, without a signal. */
bool mapped_file_is_whole(const mapped_file *m)
{
    const volatile char *bytes = m->begin;

    return bytes[m->last] != 0 && !m->damaged;
}
