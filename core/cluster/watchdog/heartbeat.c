/*
 * heartbeat.c - detect failed ranks from their heartbeats, and describe them in messages.
 */
#include "cluster/watchdog/heartbeat.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define JUST_NOW_S 0.05 /* a younger heartbeat is reported without its age                        */

void heartbeat_record(heartbeat_row *row, const heartbeat *b, double now, double on_way,
                      double clock)
{
    if (b->serial == row->last.serial)
        return;
    if (b->progress != row->last.progress || row->last.serial == 0)
        row->changed = now;
    row->heard = now;
    row->state_time = clock - on_way - b->age;
    row->last = *b;
}

heartbeat heartbeat_forward(const heartbeat_row *row, double clock)
{
    heartbeat b = row->last;

    b.age = clock - row->state_time;
    return b;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void append_text(char *out, size_t room, const char *format, ...)
{
    size_t used = strlen(out);
    va_list list;

    va_start(list, format);
    vsnprintf(out + used, room - used, format, list);
    va_end(list);
}

static void print_collective(const heartbeat *b, char *out, size_t room)
{
    append_text(out, room, "%lld (%.15s", (long long)b->number, b->kind);
    if (b->size > 0)
        append_text(out, room, ", %lld bytes", (long long)b->size);
    append_text(out, room, ")");
}

/* Write "step 17, data, last collective 230 (all_reduce, 4096 bytes)". */
static void print_state(const heartbeat *b, char *out, size_t room)
{
    out[0] = '\0';
    if (b->serial == 0) {
        append_text(out, room, "nothing known");
        return;
    }
    if (b->step >= 0)
        append_text(out, room, "step %lld, ", (long long)b->step);
    append_text(out, room, "%.15s", b->left ? "end" : b->doing);
    if (b->number >= 0) {
        append_text(out, room, b->waiting ? ", waits in collective " : ", last collective ");
        print_collective(b, out, room);
    }
}

/* Begin an old heartbeat with its age, because the rank may have moved on. */
static void print_row(const heartbeat_row *row, double clock, char *out, size_t room)
{
    char where[160];

    out[0] = '\0';
    print_state(&row->last, where, sizeof where);
    if (row->last.serial > 0 && clock - row->state_time >= JUST_NOW_S)
        append_text(out, room, "last heard %.1f s ago, at ", clock - row->state_time);
    append_text(out, room, "%s", where);
}

void heartbeats_print(const heartbeat_row *row, int count, double clock, char *out, size_t room)
{
    char line[192];

    out[0] = '\0';
    for (int k = 0; k < count; k++) {
        print_row(&row[k], clock, line, sizeof line);
        if (strlen(out) + strlen(line) + 48 > room) {
            append_text(out, room, "\n... and %d more", count - k);
            return;
        }
        append_text(out, room, "\n  rank %d: %s", k, line);
    }
}

/* ---- conclusions ----------------------------------------------------------------------------- */

static bool find_silent(const heartbeat_row *row, int count, double now, double timeout_s,
                        char *line, size_t room)
{
    for (int k = 0; k < count; k++) {
        char where[160];
        if (row[k].last.left || now - row[k].heard <= timeout_s)
            continue;
        print_state(&row[k].last, where, sizeof where);
        snprintf(line, room, "rank %d has stopped: nothing was heard from it for %.1f s "
                 "(before: %s)", k, now - row[k].heard, where);
        return true;
    }
    return false;
}

static bool is_still(const heartbeat_row *row, double now, double timeout_s)
{
    return !row->last.left && now - row->changed > timeout_s;
}

static bool find_hanging(const heartbeat_row *row, int count, double now, double timeout_s,
                         char *line, size_t room)
{
    bool awaited = false;

    for (int k = 0; k < count; k++)
        awaited = awaited || (row[k].last.waiting && is_still(&row[k], now, timeout_s));
    for (int k = 0; k < count; k++) {
        bool starting = strcmp(row[k].last.doing, "start") == 0;
        char where[160];
        if (row[k].last.waiting || !is_still(&row[k], now, timeout_s) || (starting && !awaited))
            continue;
        print_state(&row[k].last, where, sizeof where);
        if (count == 1)
            snprintf(line, room, "the run hangs: no progress for %.1f s (%s)\nhint: what takes "
                     "longer needs a larger [distribute] timeout_s", now - row[k].changed, where);
        else
            snprintf(line, room, "rank %d hangs: no progress for %.1f s (%s)", k,
                     now - row[k].changed, where);
        return true;
    }
    return false;
}

/* All ranks wait and none progresses: the first collective that has not ended is stuck. */
static bool find_stuck(const heartbeat_row *row, int count, double now, double timeout_s,
                       char *line, size_t room)
{
    int first = 0;
    char what[96] = "";

    for (int k = 0; k < count; k++) {
        if (!row[k].last.waiting || !is_still(&row[k], now, timeout_s))
            return false;
        if (row[k].last.number < row[first].last.number)
            first = k;
    }
    print_collective(&row[first].last, what, sizeof what);
    snprintf(line, room, "collective %s has not ended for %.1f s, though all ranks have started it",
             what, now - row[first].changed);
    return true;
}

static bool find_mismatch(const heartbeat_row *row, int count, char *line, size_t room)
{
    for (int k = 1; k < count; k++) {
        const heartbeat *a = &row[0].last, *b = &row[k].last;
        char what[2][96] = { "", "" };
        if (a->number < 0 || a->number != b->number
            || (strcmp(a->kind, b->kind) == 0 && a->size == b->size))
            continue;
        print_collective(b, what[0], sizeof what[0]);
        print_collective(a, what[1], sizeof what[1]);
        snprintf(line, room, "ranks have started different collectives: rank %d %s, rank 0 %s", k,
                 what[0], what[1]);
        return true;
    }
    return false;
}

bool heartbeats_check(const heartbeat_row *row, int count, double now, double timeout_s, char *line,
                      size_t room)
{
    return find_mismatch(row, count, line, room)
           || find_silent(row, count, now, timeout_s, line, room)
           || find_hanging(row, count, now, timeout_s, line, room)
           || find_stuck(row, count, now, timeout_s, line, room);
}
