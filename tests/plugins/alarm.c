/*
 * alarm.c - a sink that sends signals to its own process while it writes a chosen record.
 * CHECK_ALARM is 'KIND STEP stop|linger|kill|marked'.
 *
 * stop sends the request to stop and continues once it is handled; linger continues a while later.
 * marked waits until the previous step's checkpoint is marked as last and best, and kills the
 * process; kill does so at once.
 */
#include <pons/sink.h>

#include "support/process/process_state.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pons_status alarm_open(const void *config, const char *folder, pons_sink_kept keep,
                              void **sink, pons_error *err)
{
    *sink = strdup(folder);
    return PONS_OK;
}

static bool is_marked(const char *folder, const char *mark, long step)
{
    char path[512], line[32] = "", expected[32];

    snprintf(path, sizeof path, "%s/checkpoints/%s", folder, mark);
    snprintf(expected, sizeof expected, "step-%08ld\n", step);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool same = fgets(line, sizeof line, file) != NULL && strcmp(line, expected) == 0;
    fclose(file);
    return same;
}

static void wait_for_marks(const char *folder, long step)
{
    for (int i = 0; i < 20000; i++) {
        if (is_marked(folder, "last", step) && is_marked(folder, "best", step))
            return;
        usleep(1000);
    }
}

/* A thread of this process waits for the signal, which all others block. */
static bool is_waited_for(int number)
{
    DIR *threads = opendir("/proc/self/task");
    bool waited_for = false;

    for (struct dirent *e; threads != NULL && !waited_for && (e = readdir(threads)) != NULL; )
        waited_for = atoi(e->d_name) > 0
                     && !process_has_signal(atoi(e->d_name), "SigBlk", number);
    if (threads != NULL)
        closedir(threads);
    return waited_for;
}

/* Send the signal, and wait until the thread of signals has handled it and waits again. */
static void ask_and_wait(void)
{
    process_signal(getpid(), SIGTERM);
    while (!is_waited_for(SIGTERM))
        usleep(500);
}

static pons_status alarm_write(void *sink, const pons_record *record, pons_error *err)
{
    const char *wanted = getenv("CHECK_ALARM");
    char kind[16], action[16];
    long step;

    if (wanted == NULL || sscanf(wanted, "%15s %ld %15s", kind, &step, action) != 3
        || strcmp(kind, record->kind) != 0 || step != record->step)
        return PONS_OK;
    if (strcmp(action, "marked") == 0)
        wait_for_marks(sink, step - 1);
    if (strcmp(action, "kill") == 0 || strcmp(action, "marked") == 0)
        kill(getpid(), SIGKILL);
    ask_and_wait();
    if (strcmp(action, "linger") == 0)
        usleep(300000);
    return PONS_OK;
}

static pons_status alarm_flush(void *sink, pons_error *err)
{
    return PONS_OK;
}

static void alarm_close(void *sink)
{
    free(sink);
}

static const pons_sink_operations operations = {
    .open = alarm_open, .write = alarm_write, .flush = alarm_flush, .close = alarm_close
};

PONS_SINK(alarm, "1.0", "signals while a record is written", PONS_NO_OPTIONS, operations);
