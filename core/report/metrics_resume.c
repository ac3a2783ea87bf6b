/*
 * metrics_resume.c - divide the lines of metrics.jsonl into kept, repeated and damaged ones.
 *
 * Records are written in order of steps, so a record that the run will repeat is followed only by
 * such records. One that a kept record follows has a damaged step number.
 *
 * An undamaged file is truncated. A damaged one is rewritten after its damaged lines have been
 * appended to another file.
 */
#include "report/metrics_resume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/json.h"

typedef enum line_kind { LINE_KEPT, LINE_LATER, LINE_CUT, LINE_DAMAGED } line_kind;

typedef struct line_group {
    int count, first;      /* 'first' is a line number; 0: none                                   */
} line_group;

/* The result of a scan over the lines. */
typedef struct line_survey {
    long kept_size;        /* bytes up to the end of the last kept line                           */
    bool holes;            /* other lines are between kept ones, or the last has no end           */
    line_group damaged;    /* lines that are no records                                           */
    line_group disordered; /* records of later steps that a kept one follows                      */
} line_survey;

static line_kind kind_of_line(const char *line, size_t size, pons_sink_kept keep)
{
    json_t *d = NULL;
    pons_error ignored = PONS_ERROR_INIT;
    uint64_t step;
    line_kind found = line[size - 1] == '\n' ? LINE_DAMAGED : LINE_CUT;

    if (json_parse(line, size, "", PONS_DATA, &d, &ignored) == PONS_OK) {
        const char *kind = json_string_value(json_object_get(d, "kind"));
        bool validation = kind != NULL && strcmp(kind, "validation") == 0;
        int64_t last = validation ? keep.validation : keep.step;
        if (kind != NULL && json_whole(json_object_get(d, "step"), &step))
            found = last >= 0 && step <= (uint64_t)last ? LINE_KEPT : LINE_LATER;
    }
    json_decref(d);
    return found;
}

static void add_line(line_group *g, int number)
{
    if (g->count++ == 0)
        g->first = number;
}

/* Append the lines of 'from', which follow those of 'to'. */
static void move_lines(line_group *from, line_group *to)
{
    if (to->count == 0)
        to->first = from->first;
    to->count += from->count;
    *from = (line_group){ 0, 0 };
}

static line_survey survey_lines(FILE *file, pons_sink_kept keep)
{
    line_survey s = { .kept_size = 0 };
    line_group later = { 0, 0 };
    bool others = false;
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    rewind(file);
    for (int number = 1; (size = getline(&line, &room, file)) > 0; number++) {
        line_kind kind = kind_of_line(line, (size_t)size, keep);
        if (kind == LINE_KEPT) {
            s.kept_size = ftell(file);
            s.holes = s.holes || others || line[size - 1] != '\n';
            move_lines(&later, &s.disordered);
        }
        others = others || kind != LINE_KEPT;
        if (kind == LINE_DAMAGED)
            add_line(&s.damaged, number);
        if (kind == LINE_LATER)
            add_line(&later, number);
    }
    free(line);
    return s;
}

/* ---- rewrite --------------------------------------------------------------------------------- */

/* Copy the lines of 'kind', each with a line end; a disordered line counts as damaged. */
static pons_status copy_lines(FILE *from, pons_sink_kept keep, const line_survey *s,
                              line_kind kind, FILE *to)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    rewind(from);
    while ((size = getline(&line, &room, from)) > 0) {
        line_kind found = kind_of_line(line, (size_t)size, keep);
        if (found == LINE_LATER && ftell(from) < s->kept_size)
            found = LINE_DAMAGED;
        if (found != kind)
            continue;
        fwrite(line, 1, (size_t)size, to);
        if (line[size - 1] != '\n')
            fputc('\n', to);
    }
    free(line);
    return ferror(to) || ferror(from) ? PONS_FAILURE : PONS_OK;
}

static pons_status copy_damaged(FILE *from, const char *path, pons_sink_kept keep,
                                const line_survey *s, pons_error *err)
{
    FILE *to = NULL;

    if (file_open_stream(path, "a", &to, err) != PONS_OK)
        return err->status;
    bool good = copy_lines(from, keep, s, LINE_DAMAGED, to) == PONS_OK && fflush(to) == 0
                && fsync(fileno(to)) == 0;
    int cause = errno;

    fclose(to);
    if (!good)
        return pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", path, strerror(cause));
    return PONS_OK;
}

static pons_status write_kept(FILE *from, const char *path, pons_sink_kept keep,
                              const line_survey *s, pons_error *err)
{
    safe_file f;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    if (copy_lines(from, keep, s, LINE_KEPT, f.file) == PONS_OK)
        return safe_file_commit(&f, err);
    pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", path, strerror(errno));
    safe_file_discard(&f);
    return err->status;
}

/* Warn of a group; 'one' and 'more' describe a single line and several lines. */
static void warn_lines(const line_group *g, const char *one, const char *more, const char *path,
                       logger *l)
{
    if (g->count == 1)
        log_warning(l, "'%s': line %d %s; it is kept in '%s.damaged'", path, g->first, one, path);
    else if (g->count > 1)
        log_warning(l, "'%s': %d lines %s, the first is line %d; they are kept in '%s.damaged'",
                    path, g->count, more, g->first, path);
}

static pons_status replace_file(FILE *file, const char *path, pons_sink_kept keep,
                                const line_survey *s, logger *l, pons_error *err)
{
    char *aside = NULL;

    if (asprintf(&aside, "%s.damaged", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for '%s'", path);
    if (s->damaged.count + s->disordered.count > 0
        && copy_damaged(file, aside, keep, s, err) == PONS_OK) {
        warn_lines(&s->damaged, "is no record", "are no records", path, l);
        warn_lines(&s->disordered, "has a step beyond that of a later line",
                   "have steps beyond that of a later line", path, l);
    }
    if (err->status == PONS_OK)
        write_kept(file, path, keep, s, err);
    free(aside);
    return err->status;
}

pons_status metrics_resume(FILE *file, const char *path, pons_sink_kept keep, logger *l,
                           bool *replaced, pons_error *err)
{
    line_survey s = { .kept_size = 0 };

    *replaced = false;
    if (keep.step >= 0) /* else the run repeats all records */
        s = survey_lines(file, keep);
    if (ferror(file))
        return pons_fail(err, PONS_FAILURE, "cannot read '%s': %s", path, strerror(errno));
    if (s.damaged.count > 0 || s.holes) {
        *replaced = true;
        return replace_file(file, path, keep, &s, l, err);
    }
    if (ftruncate(fileno(file), s.kept_size) != 0 || fseek(file, 0, SEEK_END) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", path, strerror(errno));
    return PONS_OK;
}
