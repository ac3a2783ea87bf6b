/*
 * event_files.c - remove the records of event files that a resumed run writes again.
 *
 * Scalars are in the order of their steps. A picture comes later than its validation, so one that
 * stays may follow scalars that do not: the file is then written anew without these. Any other file
 * is cut behind its last record that stays, and readers that have it open are at its end.
 */
#include "sinks/tensorboard/event_files.h"

#include "sinks/tensorboard/event.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_own_file(const struct dirent *e)
{
    size_t size = strlen(e->d_name), end = sizeof EVENT_FILE_END - 1;

    return strncmp(e->d_name, EVENT_FILE_START, sizeof EVENT_FILE_START - 1) == 0
           && size > sizeof EVENT_FILE_START + end + 1
           && strcmp(e->d_name + size - end, EVENT_FILE_END) == 0;
}

/* The records of a file. */
typedef struct file_survey {
    long kept_size;     /* up to the end of the last record that stays; 0: none does              */
    bool holes;         /* records that go come before it                                         */
    bool graph;
} file_survey;

/* Whether a record stays; those without a step, such as the version, do in a file that stays. */
static bool stays(const event_facts *f, pons_sink_kept keep)
{
    bool validation = strncmp(f->tag, "validation/", 11) == 0 || strncmp(f->tag, "case/", 5) == 0;

    return f->step <= (validation ? keep.validation : keep.step);
}

static file_survey survey_file(FILE *file, pons_sink_kept keep)
{
    file_survey s = { .kept_size = 0 };
    message event = { 0 };
    bool gone = false;
    event_facts f;

    rewind(file);
    while (event_read(file, &event, &f)) {
        s.graph = s.graph || f.graph;
        gone = gone || !stays(&f, keep);
        if (f.step == 0 || !stays(&f, keep))
            continue;
        s.kept_size = ftell(file);
        s.holes = gone;
    }
    message_free(&event);
    return s;
}

static bool copy_kept(FILE *from, FILE *to, pons_sink_kept keep)
{
    message event = { 0 };
    bool good = true;
    event_facts f;

    rewind(from);
    while (good && event_read(from, &event, &f))
        good = !stays(&f, keep) || event_write(to, &event);
    message_free(&event);
    return good && fflush(to) == 0 && fsync(fileno(to)) == 0;
}

/* Write the records that stay to another file, which takes the name of this one. */
static pons_status write_anew(FILE *file, const char *path, const char *folder,
                              pons_sink_kept keep, pons_error *err)
{
    char *other = NULL;
    FILE *to = NULL;

    if (asprintf(&other, "%s/.tensorboard.new", folder) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for event files");
    if (pons_sink_file(other, "w", &to, err) == PONS_OK) {
        bool good = copy_kept(file, to, keep);

        good = fclose(to) == 0 && good;
        if (!good || rename(other, path) != 0) {
            pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", other, strerror(errno));
            unlink(other);
        }
    }
    free(other);
    return err->status;
}

static pons_status cut_file(const char *path, const char *folder, pons_sink_kept keep,
                            event_files *out, pons_error *err)
{
    FILE *file = NULL;
    file_survey s;

    if (pons_sink_file(path, "a+", &file, err) != PONS_OK)
        return err->status;
    s = survey_file(file, keep);
    out->graph = out->graph || (s.graph && s.kept_size > 0);
    if (s.holes)
        write_anew(file, path, folder, keep, err);
    else if (s.kept_size > 0 ? ftruncate(fileno(file), s.kept_size) != 0 : unlink(path) != 0)
        pons_fail(err, PONS_FAILURE, "cannot cut '%s': %s", path, strerror(errno));
    fclose(file);
    return err->status;
}

pons_status event_files_cut(const char *folder, pons_sink_kept keep, event_files *out,
                            pons_error *err)
{
    struct dirent **entry = NULL;
    int count = scandir(folder, &entry, is_own_file, alphasort);

    if (count < 0)
        return pons_fail(err, PONS_FAILURE, "cannot read '%s': %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        long long named = strtoll(entry[i]->d_name + sizeof EVENT_FILE_START - 1, NULL, 10);
        char *path = NULL;

        if (out->time <= named)
            out->time = named + 1;
        if (asprintf(&path, "%s/%s", folder, entry[i]->d_name) < 0)
            pons_fail(err, PONS_DEVICE, "out of memory for event files");
        else if (err->status == PONS_OK)
            cut_file(path, folder, keep, out, err);
        free(path);
        free(entry[i]);
    }
    free(entry);
    return err->status;
}
