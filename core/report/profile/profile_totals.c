/*
 * profile_totals.c - profile.json: phases, groups of kernels, plugins and threads, in nanoseconds.
 * The members of groups of kernels are those of DLProf's summary.
 */
#include "report/profile/profile_files_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/json.h"

static void put_times(FILE *to, double cpu, double gpu)
{
    fprintf(to, ",\"cpu_ns\":%.0f,\"gpu_ns\":%.0f}", 1e9 * cpu, 1e9 * gpu);
}

static void put_phase(FILE *to, int phase, const profile_phase *sum)
{
    fprintf(to, "{\"phase\":\"%s\",\"calls\":%" PRId64, range_kind_name((range_kind)phase),
            sum->calls);
    put_times(to, sum->seconds, sum->device_seconds);
}

static void put_phases(FILE *to, const profile *p)
{
    fputs(",\n\"phases\":[", to);
    for (int i = 0; i < RANGE_PHASE_COUNT; i++) {
        const profile_phase sum = profile_phase_sum(p, (range_kind)i);

        fputs(i > 0 ? ",\n" : "\n", to);
        put_phase(to, i, &sum);
    }
    putc(']', to);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static int longest_first(const void *a, const void *b)
{
    const profile_kernels *x = *(const profile_kernels *const *)a;
    const profile_kernels *y = *(const profile_kernels *const *)b;
    double left = x->seconds + x->device_seconds, right = y->seconds + y->device_seconds;

    return (left < right) - (left > right);
}

static int count_groups(const profile *p)
{
    int count = 0;

    for (const profile_kernels *k = profile_kernel_groups(p); k != NULL; k = k->next)
        count++;
    return count;
}

static void put_group(FILE *to, const profile_kernels *k)
{
    fprintf(to, "\n{\"kind\":\"%s\",\"implementation\":", k->kind);
    json_put_text(to, k->implementation);
    fprintf(to, ",\"kernels\":%" PRId64, k->calls);
    put_times(to, k->seconds, k->device_seconds);
}

static void put_kernels(FILE *to, const profile *p)
{
    int count = count_groups(p), n = 0;
    const profile_kernels **group = calloc((size_t)count + 1, sizeof *group);
    const profile_kernels *unsorted = group == NULL ? profile_kernel_groups(p) : NULL;
    profile_kernels all = { .calls = 0 };

    for (const profile_kernels *k = profile_kernel_groups(p); k != NULL; k = k->next) {
        all.calls += k->calls;
        all.seconds += k->seconds;
        all.device_seconds += k->device_seconds;
        if (group != NULL)
            group[n++] = k;
    }
    fprintf(to, ",\n\"all\":{\"kernels\":%" PRId64, all.calls);
    put_times(to, all.seconds, all.device_seconds);
    fputs(",\n\"groups\":[", to);
    if (group != NULL)
        qsort(group, (size_t)n, sizeof *group, longest_first);
    for (int i = 0; i < n; i++) {
        if (i > 0)
            putc(',', to);
        put_group(to, group[i]);
    }
    for (const profile_kernels *k = unsorted; k != NULL; k = k->next) {
        put_group(to, k);
        if (k->next != NULL)
            putc(',', to);
    }
    putc(']', to);
    free(group);
}

/* ---- plugins --------------------------------------------------------------------------------- */

typedef struct plugin_sum {
    const profile *profile;
    const profile_node *first;   /* the first range of this plugin                                */
    profile_phase sum;
} plugin_sum;

static bool is_plugin(const profile_node *n)
{
    return n->kind >= RANGE_TRANSFORM && n->kind <= RANGE_OPTIMIZER;
}

static void add_plugin(const profile_node *n, plugin_sum *s)
{
    if (n->kind == s->first->kind && strcmp(n->name, s->first->name) == 0) {
        s->sum.calls += n->calls;
        s->sum.seconds += n->seconds;
        s->sum.device_seconds += n->device_seconds;
        return;
    }
    for (const profile_node *c = n->child; c != NULL; c = c->next)
        add_plugin(c, s);
}

/* The first range of the plugin of 'n', in the order of the tracks. */
static const profile_node *first_below(const profile_node *at, const profile_node *n)
{
    const profile_node *found = NULL;

    if (at->kind == n->kind && strcmp(at->name, n->name) == 0)
        return at;
    for (const profile_node *c = at->child; c != NULL && found == NULL; c = c->next)
        found = first_below(c, n);
    return found;
}

static bool is_first(const profile *p, const profile_node *n)
{
    const profile_node *found = NULL;

    for (const profile_track *t = profile_tracks(p); t != NULL && found == NULL; t = t->next)
        found = first_below(&t->root, n);
    return found == n;
}

static void put_plugin(FILE *to, const profile *p, const profile_node *n, bool *any)
{
    plugin_sum s = { p, n, { 0, 0, 0 } };

    for (const profile_track *t = profile_tracks(p); t != NULL; t = t->next)
        add_plugin(&t->root, &s);
    fprintf(to, "%s\n{\"kind\":\"%s\",\"name\":", *any ? "," : "", range_kind_name(n->kind));
    json_put_text(to, n->name);
    fprintf(to, ",\"calls\":%" PRId64, s.sum.calls);
    put_times(to, s.sum.seconds, s.sum.device_seconds);
    *any = true;
}

static void put_plugins_below(FILE *to, const profile *p, const profile_node *n, bool *any)
{
    if (is_plugin(n) && is_first(p, n))
        put_plugin(to, p, n, any);
    for (const profile_node *c = n->child; c != NULL; c = c->next)
        put_plugins_below(to, p, c, any);
}

static void put_plugins(FILE *to, const profile *p)
{
    bool any = false;

    fputs(",\n\"plugins\":[", to);
    for (const profile_track *t = profile_tracks(p); t != NULL; t = t->next)
        put_plugins_below(to, p, &t->root, &any);
    putc(']', to);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The phases of a thread, but for those that it has no part in. */
static void put_thread_phases(FILE *to, const profile_track *t)
{
    bool any = false;

    fputs(",\"phases\":[", to);
    for (int i = 0; i < RANGE_PHASE_COUNT; i++) {
        const profile_phase sum = profile_track_phase(t, (range_kind)i);

        if (sum.calls == 0)
            continue;
        fputs(any ? ",\n " : "\n ", to);
        put_phase(to, i, &sum);
        any = true;
    }
    putc(']', to);
}

static void put_threads(FILE *to, const profile *p)
{
    bool any = false;

    fputs(",\n\"threads\":[", to);
    for (const profile_track *t = profile_tracks(p); t != NULL; t = t->next) {
        if (t->root.child == NULL)
            continue;
        fputs(any ? ",\n{\"name\":" : "\n{\"name\":", to);
        json_put_text(to, t->name);
        fprintf(to, ",\"busy_ns\":%.0f,\"kernel_threads\":%d",
                1e9 * profile_track_seconds(t), t->kernel_threads);
        put_thread_phases(to, t);
        putc('}', to);
        any = true;
    }
    putc(']', to);
}

void profile_totals_put(FILE *to, const profile_writing *w)
{
    const profile *p = w->profile;

    fputs("{\"format\":\"pons profile 1\",\"run\":", to);
    json_put_text(to, w->of->name);
    fputs(",\"processor\":", to);
    json_put_text(to, w->of->processor);
    fprintf(to, ",\"rank\":%d,\"ranks\":%d,\"steps\":%" PRId64 ",\"wall_ns\":%.0f", w->of->rank,
            w->of->ranks, profile_steps(p), 1e9 * (w->end - profile_begin(p)));
    put_phases(to, p);
    put_kernels(to, p);
    put_plugins(to, p);
    put_threads(to, p);
    fputs("}\n", to);
}
