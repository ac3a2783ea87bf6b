/*
 * profile_files.c - write the files of a profile, each one complete or not at all.
 */
#include "report/profile/profile_files_internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/text.h"

double profile_track_seconds(const profile_track *t)
{
    double seconds = 0;

    for (const profile_node *n = t->root.child; n != NULL; n = n->next)
        seconds += n->seconds;
    return seconds;
}

static pons_status write_file(const char *folder, const char *name, const profile_writing *w,
                              void (*put)(FILE *to, const profile_writing *w), pons_error *err)
{
    char *path = NULL;
    safe_file f;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for '%s'", name);
    if (safe_file_open(&f, path, err) == PONS_OK) {
        locale_t before = text_locale_begin();

        put(f.file, w);
        text_locale_end(before);
        safe_file_commit(&f, err);
    }
    free(path);
    return err->status;
}

pons_status profile_files_write(profile *p, const profile_subject *of, const char *folder,
                                pons_error *err)
{
    const profile_writing w = { p, of, seconds_now() };

    profile_sort_events(p);
    if (write_file(folder, "profile.json", &w, profile_totals_put, err) != PONS_OK
        || write_file(folder, "profile.svg", &w, flame_graph_put, err) != PONS_OK)
        return err->status;
    return write_file(folder, "trace.json", &w, trace_events_put, err);
}

void profile_phases_text(const profile *p, char *out, size_t size)
{
    double all = 0;
    size_t used = 0;

    for (int i = 0; i < RANGE_PHASE_COUNT; i++)
        all += profile_phase_sum(p, (range_kind)i).seconds;
    out[0] = '\0';
    for (int i = 0; i < RANGE_PHASE_COUNT && all > 0 && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s %.1f %%", i > 0 ? ", " : "",
                                 range_kind_name((range_kind)i),
                                 100 * profile_phase_sum(p, (range_kind)i).seconds / all);
}
