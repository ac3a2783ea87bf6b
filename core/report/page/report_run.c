/*
 * report_run.c - read resolved.ini, the records and the manifest of a run.
 */
#include "report/page/report_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "checkpoint/checkpoint.h"
#include "metric/metric.h"

static const size_t resolved_limit = 1 << 24;

/* ---- resolved.ini ---------------------------------------------------------------------------- */

static char *trim(char *text)
{
    size_t size;

    text += strspn(text, " \t\r");
    size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1]) != NULL)
        text[--size] = '\0';
    return text;
}

/* Cut the comment, which begins at the first ';' behind a blank, off a value. */
static char *cut_origin(char *value)
{
    static char none[] = "";
    char *mark = strstr(value, "; ");

    while (mark != NULL && mark > value && mark[-1] != ' ')
        mark = strstr(mark + 1, "; ");
    if (mark == NULL)
        return none;
    *mark = '\0';
    return mark + 2;
}

static void add_line(report_run *r, char *line, const char **section, run_setting *setting)
{
    char *equals = strchr(line, '=');

    if (line[0] == '[') {
        line[strcspn(line, "]")] = '\0';
        *section = line + 1;
    } else if (line[0] == ';' && **section == '\0') {
        r->comment[r->comment_count++] = trim(line + 1);
    } else if (line[0] != ';' && equals != NULL) {
        char *origin = cut_origin(equals + 1);

        *equals = '\0';
        setting[r->setting_count++] = (run_setting){ *section, trim(line), trim(equals + 1),
                                                     trim(origin) };
    }
}

/* A value goes on in the next line after a blank and a backslash; put blanks between its parts. */
static void join_lines(char *text)
{
    for (char *end = strstr(text, " \\\n"); end != NULL; end = strstr(end, " \\\n"))
        memset(end, ' ', 3 + strspn(end + 3, " \t"));
}

static void split_lines(report_run *r)
{
    char *text = arena_string(r->memory, r->resolved), *next = NULL;
    const char *section = "";
    run_setting *setting;
    size_t lines = 1;

    join_lines(text);
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    setting = arena_alloc(r->memory, lines * sizeof *setting);
    r->setting = setting;
    r->comment = arena_alloc(r->memory, lines * sizeof *r->comment);
    for (char *line = strtok_r(text, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next))
        add_line(r, trim(line), &section, setting);
}

static pons_status read_resolved(report_run *r, pons_error *err)
{
    const char *path = arena_format(r->memory, "%s/resolved.ini", r->path);
    char *text;
    size_t size;

    r->resolved = "";
    if (access(path, F_OK) != 0)
        return PONS_OK;
    if (file_read(path, resolved_limit, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    r->resolved = arena_string(r->memory, text);
    free(text);
    split_lines(r);
    return PONS_OK;
}

const run_setting *report_run_find(const report_run *r, const char *section, const char *key)
{
    for (int i = 0; i < r->setting_count; i++)
        if (strcmp(r->setting[i].key, key) == 0 && strcmp(r->setting[i].section, section) == 0)
            return &r->setting[i];
    return NULL;
}

const char *report_run_setting(const report_run *r, const char *section, const char *key)
{
    const run_setting *found = report_run_find(r, section, key);

    return found != NULL ? found->value : "";
}

const char *report_run_comment(const report_run *r, const char *word)
{
    size_t size = strlen(word);

    for (int i = 0; i < r->comment_count; i++)
        if (strncmp(r->comment[i], word, size) == 0 && r->comment[i][size] == ' ')
            return r->comment[i] + size + 1;
    return NULL;
}

int report_run_metric(const report_run *r)
{
    const char *best = report_run_setting(r, "train", "best");
    size_t size = strcspn(best, ".");

    for (int m = 0; m < r->cases.metric_count; m++)
        if (strlen(r->cases.metric[m]) == size && strncmp(r->cases.metric[m], best, size) == 0)
            return m;
    return 0;
}

/* ---- log ------------------------------------------------------------------------------------- */

static bool is_hint(const char *line)
{
    const char *hint = strstr(line, "hint: ");

    return hint != NULL && hint - line <= (ptrdiff_t)strlen("2026-11-28 22:08:11 ");
}

const char *report_run_last_line(const report_run *r)
{
    const char *path = arena_format(r->memory, "%s/log.txt", r->path), *last = NULL;
    FILE *from = file_open_reader(path);
    char text[4097], *next = NULL;
    size_t size = 0;

    if (from == NULL)
        return NULL;
    if (fseek(from, -(long)(sizeof text - 1), SEEK_END) != 0)
        rewind(from);
    size = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    text[size] = '\0';
    for (char *line = strtok_r(text, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next))
        if (!is_hint(line))
            last = line;
    return last != NULL ? arena_string(r->memory, last) : NULL;
}

/* ---- manifest -------------------------------------------------------------------------------- */

/* The folder that the mark 'last' names; its files are not verified, which takes long. */
static const char *newest_checkpoint(const report_run *r)
{
    const char *mark = arena_format(r->memory, "%s/checkpoints/last", r->path), *path = NULL;
    pons_error ignored = PONS_ERROR_INIT;
    char *name = NULL;
    size_t size;

    if (file_read(mark, 256, &name, &size, PONS_DATA, &ignored) != PONS_OK)
        return NULL;
    name[strcspn(name, "\n")] = '\0';
    if (strncmp(name, "step-", 5) == 0 && strchr(name, '/') == NULL)
        path = arena_format(r->memory, "%s/checkpoints/%s", r->path, name);
    free(name);
    return path;
}

/* A run before its first checkpoint has no facts, and neither has one whose newest is damaged. */
static void read_facts(report_run *r)
{
    const char *checkpoint = newest_checkpoint(r), *key;
    pons_error ignored = PONS_ERROR_INIT;
    json_t *manifest = NULL, *made_with, *value;
    run_fact *fact;

    if (checkpoint != NULL)
        checkpoint_manifest(checkpoint, &manifest, &ignored);
    made_with = json_object_get(manifest, CHECKPOINT_FACTS);
    fact = arena_alloc(r->memory, (json_object_size(made_with) + 1) * sizeof *fact);
    r->fact = fact;
    json_object_foreach(made_with, key, value)
        if (json_is_string(value))
            fact[r->fact_count++] = (run_fact){ arena_string(r->memory, key),
                                                arena_string(r->memory,
                                                             json_string_value(value)) };
    json_decref(manifest);
}

/* ---- run ------------------------------------------------------------------------------------- */

/* The last part of a path, without slashes at its end. */
static const char *last_part(arena *memory, const char *path)
{
    char *whole = realpath(path, NULL), *copy = arena_string(memory, whole ? whole : path);
    const char *slash = strrchr(copy, '/');

    free(whole);
    return slash != NULL && slash[1] != '\0' ? slash + 1 : copy;
}

pons_status report_run_read(arena *memory, const char *path, report_run *out, pons_error *err)
{
    *out = (report_run){ .memory = memory, .path = path, .name = last_part(memory, path) };
    if (run_history_read(memory, arena_format(memory, "%s/metrics.jsonl", path), &out->history,
                         err) != PONS_OK
        || read_resolved(out, err) != PONS_OK
        || case_scores_read(memory, path, &out->cases, err) != PONS_OK)
        return err->status;
    read_facts(out);
    return PONS_OK;
}

int report_run_best(const report_run *r, const history_series **series)
{
    const char *name = report_run_setting(r, "train", "best");
    const history_series *s = run_history_find(&r->history, "validation", name);
    char *metric = arena_string(r->memory, name);
    metric_kind kind;
    int best = -1;

    *series = s;
    metric[strcspn(metric, ".")] = '\0';
    kind = metric_kind_find(metric);
    for (int i = 0; s != NULL && kind < METRIC_KIND_COUNT && i < s->count; i++)
        if (isfinite(s->value[i])
            && (best < 0
                || metric_badness(kind, s->value[i]) < metric_badness(kind, s->value[best])))
            best = i;
    return best;
}
