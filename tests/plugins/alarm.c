/*
 * alarm.c - a sink that sends signals to its own process while a chosen record is being written:
 * CHECK_ALARM is 'KIND STEP once|stop|twice|kill|marked'. Once asks for the end, stop goes on when
 * that has been heard, twice ends the grace as well, marked waits until the checkpoint of the step
 * before is marked as last and best, and kills.
 */
#include <pons/sink.h>

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

/* Ask for the end; the thread that waits for signals has taken it then, and a moment more. */
static void ask_and_wait(void)
{
    sigset_t pending;

    kill(getpid(), SIGTERM);
    do {
        usleep(1000);
        sigpending(&pending);
    } while (sigismember(&pending, SIGTERM));
    usleep(10000);
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
    if (strcmp(action, "stop") == 0) {
        ask_and_wait();
        return PONS_OK;
    }
    kill(getpid(), SIGTERM);
    usleep(50000);
    if (strcmp(action, "twice") == 0)
        kill(getpid(), SIGTERM);
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

static const pons_option options[] = { PONS_OPTIONS_END };
static const pons_sink_operations operations = { alarm_open, alarm_write, alarm_flush,
                                                 alarm_close };

PONS_SINK(alarm, "1.0", "signals while a record is written", 0, options, operations)
