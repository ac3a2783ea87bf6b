/*
 * trace_events.c - trace.json: the events of the first steps in Chrome's trace event format, which
 * Perfetto and chrome://tracing open. Times are microseconds since the begin of the profile. Begins
 * and ends are rounded to nanoseconds, so events of a row nest exactly: Perfetto drops others.
 *
 * A thread that computes kernels has a team of kernel threads, which share the work of each kernel
 * with it. Each of them has a row of its own with the phases of that thread.
 */
#include "report/profile/profile_files_internal.h"

#include <inttypes.h>
#include <math.h>

#include "base/file/json.h"

enum { MAIN_PROCESS = 1 };

typedef struct trace_output {
    FILE *to;
    double begin;
    int rows;                    /* threads that are named so far                                 */
} trace_output;

static void put_name(trace_output *o, const char *name)
{
    o->rows++;
    fprintf(o->to, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":"
            "{\"name\":", MAIN_PROCESS, o->rows);
    json_put_text(o->to, name);
    fprintf(o->to, "}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
            "\"args\":{\"sort_index\":%d}}", MAIN_PROCESS, o->rows, o->rows);
}

static int64_t nanoseconds(const trace_output *o, double time)
{
    return llround(1e9 * fmax(time - o->begin, 0));
}

/* A member of microseconds with three decimals. */
static void put_time(FILE *to, const char *name, int64_t nanoseconds)
{
    fprintf(to, ",\"%s\":%" PRId64 ".%03d", name, nanoseconds / 1000, (int)(nanoseconds % 1000));
}

static void put_event(const trace_output *o, const profile_event *e)
{
    int64_t begin = nanoseconds(o, e->begin);

    fputs(",\n{\"name\":", o->to);
    json_put_text(o->to, e->node->name);
    fprintf(o->to, ",\"cat\":\"%s\",\"ph\":\"X\"", range_kind_name(e->node->kind));
    put_time(o->to, "ts", begin);
    put_time(o->to, "dur", nanoseconds(o, e->end) - begin);
    fprintf(o->to, ",\"pid\":%d,\"tid\":%d}", MAIN_PROCESS, o->rows);
}

static bool is_computed(range_kind kind)
{
    return kind == RANGE_FORWARD || kind == RANGE_BACKWARD || kind == RANGE_UPDATE;
}

static void put_kernel_threads(trace_output *o, const profile_track *t)
{
    char name[128];

    for (int i = 1; i < t->kernel_threads; i++) {
        snprintf(name, sizeof name, "kernel thread %d of %.80s", i, t->name);
        put_name(o, name);
        for (int64_t n = 0; n < t->event_count; n++)
            if (is_computed(t->event[n].node->kind))
                put_event(o, &t->event[n]);
    }
}

static int64_t count_lost(const profile *p)
{
    int64_t lost = 0;

    for (const profile_track *t = profile_tracks(p); t != NULL; t = t->next)
        lost += t->lost_events;
    return lost;
}

void trace_events_put(FILE *to, const profile_writing *w)
{
    const profile *p = w->profile;
    trace_output o = { to, profile_begin(p), 0 };

    fprintf(to, "{\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,"
            "\"args\":{\"name\":", MAIN_PROCESS);
    json_put_text(to, w->of->name);
    fputs("}}", to);
    for (const profile_track *t = profile_tracks(p); t != NULL; t = t->next) {
        if (t->event_count == 0)
            continue;
        put_name(&o, t->name);
        for (int64_t n = 0; n < t->event_count; n++)
            put_event(&o, &t->event[n]);
        put_kernel_threads(&o, t);
    }
    fprintf(to, "],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"steps\":%d,\"events_lost\":%"
            PRId64 "}}\n", profile_traced_steps(p), count_lost(p));
}
