/*
 * embed_call.c - the way of a call from a program's thread to one of pons.
 */
#include <config.h>

#include "embed/embed_internal.h"

#include <signal.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/text.h"
#include "base/thread/thread.h"
#include "plugin/plugin_load.h"

pons_status embed_copy(void *own, size_t room, const void *given, const char *what,
                       pons_error *err)
{
    uint32_t size;
    const unsigned char *byte = given;

    memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return pons_fail(err, PONS_USAGE, "%s.size is %u, expected sizeof(%s)", what, size, what);
    for (size_t i = room; i < size; i++)
        if (byte[i] != 0)
            return pons_fail(err, PONS_USAGE, "byte %zu of %s is set, expected at most %zu bytes\n"
                             "hint: the program is for a later version than libpons "
                             PACKAGE_VERSION, i, what, room);
    memset(own, 0, room);
    memcpy(own, given, min_size(size, room));
    return PONS_OK;
}

pons_status embed_return(const pons_error *outcome, pons_error *err)
{
    if (err != NULL)
        *err = *outcome;
    return outcome->status;
}

/* A trial of a plugin forks, which a program with threads of its own does not survive. */
pons_status embed_open_thread(worker **out, pons_error *err)
{
    sigset_t before;

    plugin_end_trials();
    thread_block_signals(&before);
    worker_open(WORKER_NORMAL, "the thread of pons", out, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err->status;
}

/* A job for a thread of pons. */
typedef struct embed_job {
    worker_job *job;
    void *context;
} embed_job;

/* Values of configurations are texts with a decimal point, whatever locale the program has set. */
static pons_status run_in_c_locale(void *context, pons_error *err)
{
    const embed_job *j = context;
    locale_t before = text_locale_begin();

    j->job(j->context, err);
    text_locale_end(before);
    return err->status;
}

pons_status embed_run(worker *thread, worker_job *job, void *context, pons_error *err)
{
    embed_job j = { job, context };

    return worker_start(thread, run_in_c_locale, &j, err) == PONS_OK ? worker_wait(thread, err)
                                                                     : err->status;
}

void embed_callbacks_open(embed_callbacks *c, bool (*stop)(void *context),
                          void (*line)(void *context, const char *line), void *context)
{
    *c = (embed_callbacks){ .stop = stop, .line = line, .context = context };
    pthread_mutex_init(&c->lock, NULL);
}

void embed_callbacks_close(embed_callbacks *c)
{
    pthread_mutex_destroy(&c->lock);
}

bool embed_stop(embed_callbacks *c)
{
    bool stopped;

    pthread_mutex_lock(&c->lock);
    c->stopped = c->stopped || (c->stop != NULL && c->stop(c->context));
    stopped = c->stopped;
    pthread_mutex_unlock(&c->lock);
    return stopped;
}

void embed_line(void *callbacks, const char *line)
{
    embed_callbacks *c = callbacks;

    if (c->line == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->line(c->context, line);
    pthread_mutex_unlock(&c->lock);
}
