/*
 * config.c - find entries, fill structs by option tables, and report entries that no table has
 * read.
 */
#include "config/config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/hash/json_digest.h"
#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "base/text/text_stream.h"
#include "config/config_internal.h"
#include "config/list.h"

/* ---- entries --------------------------------------------------------------------------------- */

config_entry *config_entry_find(const config *c, const char *section, const char *key)
{
    int place = name_index_find(&c->by_name, section, key);

    return place >= 0 ? &c->entry[place] : NULL;
}

/* Double the size of an array. The arena keeps the old array until it is freed. */
static void *grown_array(arena *a, const void *old, int count, int *room, size_t size)
{
    *room = *room > 0 ? 2 * *room : 64;
    return arena_grow(a, old, (size_t)count * size, (size_t)*room * size);
}

pons_status config_entry_add(config *c, config_entry entry, pons_error *err)
{
    if (name_index_add(&c->by_name, entry.section, entry.key, c->entry_count) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory reading '%s'", entry.file);
    if (c->entry_count == c->entry_room)
        c->entry = grown_array(c->arena, c->entry, c->entry_count, &c->entry_room,
                               sizeof *c->entry);
    c->entry[c->entry_count++] = entry;
    return PONS_OK;
}

/* A folder is that of a run, or probably a dataset, which 'pons init' makes an INI file of. */
static pons_status read_file(config *c, const char *file, pons_error *err)
{
    char word[1024], resolved[PATH_MAX];

    snprintf(resolved, sizeof resolved, "%s%sresolved.ini", file,
             text_ends_with(file, "/") ? "" : "/");
    if (folder_is_there(file) && access(resolved, R_OK) == 0)
        return pons_fail(err, PONS_CONFIG, "'%s' is a folder, expected an INI file\n"
                         "hint: the run's is %s", file,
                         shell_word_bare(word, sizeof word, resolved));
    if (folder_is_there(file))
        return pons_fail(err, PONS_CONFIG, "'%s' is a folder, expected an INI file\n"
                         "hint: pons init %s -o FILE.ini plans one for a dataset", file,
                         shell_word_bare(word, sizeof word, file));
    return config_read_file(c, file, err);
}

/* A configuration without entries; NULL: out of memory. */
static config *new_config(const char *file)
{
    config *c = calloc(1, sizeof *c);
    char here[PATH_MAX];

    if (c == NULL || (c->arena = arena_new()) == NULL) {
        free(c);
        return NULL;
    }
    c->folder = arena_string(c->arena, getcwd(here, sizeof here) != NULL ? here : "/");
    c->file = file != NULL ? arena_string(c->arena, file) : NULL;
    return c;
}

/* Read --set after the other entries. */
static pons_status finish_config(config *c, int set_count, const char *const *set, config **out,
                                 pons_error *err)
{
    for (int i = 0; err->status == PONS_OK && i < set_count; i++)
        config_read_set(c, set[i], err);
    if (err->status == PONS_OK)
        *out = c;
    else
        config_close(c);
    return err->status;
}

pons_status config_open(const char *file, int set_count, const char *const *set, config **out,
                        pons_error *err)
{
    config *c = new_config(file);
    pons_error own = PONS_ERROR_INIT;

    if (err == NULL)
        err = &own;
    if (c == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (file != NULL)
        read_file(c, file, err);
    return finish_config(c, set_count, set, out, err);
}

pons_status config_open_lines(const char *name, int count, const config_line *line, int set_count,
                              const char *const *set, config **out, pons_error *err)
{
    config *c = new_config(name);

    if (c == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        const config_entry e = { .section = arena_string(c->arena, line[i].section),
                                 .key = arena_string(c->arena, line[i].key),
                                 .value = arena_string(c->arena, line[i].value),
                                 .file = c->file, .folder = c->folder };
        config_entry_add(c, e, err);
    }
    return finish_config(c, set_count, set, out, err);
}

void config_close(config *c)
{
    if (c == NULL)
        return;
    name_index_clear(&c->by_name);
    arena_free(c->arena);
    free(c);
}

const char *config_file(const config *c)
{
    return c->file;
}

const char *config_path(config *c, const config_entry *e, const char *value)
{
    const char *folder = e != NULL && e->folder != NULL ? e->folder : c->folder;

    while (value[0] == '.' && value[1] == '/')
        value += 2;
    if (value[0] == '/')
        return arena_string(c->arena, value);
    if (strcmp(value, ".") == 0)
        return folder;
    return arena_format(c->arena, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, value);
}

const config_entry *config_find(const config *c, const char *section, const char *key)
{
    return config_entry_find(c, section, key);
}

bool config_is_part(const char *section, const char *whole)
{
    size_t size = strlen(whole);

    return strncmp(section, whole, size) == 0 && (section[size] == '\0' || section[size] == '.');
}

bool config_given(const config *c, const char *section, const char *key)
{
    return config_entry_find(c, section, key) != NULL;
}

static const char *origin_of(config *c, const config_entry *e)
{
    return e->line == 0 ? e->file : arena_format(c->arena, "%s:%d", e->file, e->line);
}

const char *config_origin(config *c, const char *section, const char *key)
{
    const config_entry *e = config_entry_find(c, section, key);
    return e != NULL ? origin_of(c, e) : NULL;
}

/* ---- fill ------------------------------------------------------------------------------------ */

static void add_known_section(config *c, const char *section, const pons_option *options,
                              bool skipped)
{
    known_section *k = arena_alloc(c->arena, sizeof *k);

    *k = (known_section){ arena_string(c->arena, section), skipped, options, c->known };
    c->known = k;
}

static filled *filled_find(const config *c, const char *section, const char *key)
{
    for (int i = 0; i < c->filled_count; i++)
        if (strcmp(c->filled[i].key, key) == 0 && strcmp(c->filled[i].section, section) == 0)
            return &c->filled[i];
    return NULL;
}

static filled *filled_add(config *c, const char *section, const char *key)
{
    filled *f = filled_find(c, section, key);

    if (f == NULL) {
        if (c->filled_count == c->filled_room)
            c->filled = grown_array(c->arena, c->filled, c->filled_count, &c->filled_room,
                                    sizeof *c->filled);
        f = &c->filled[c->filled_count++];
        f->section = arena_string(c->arena, section);
        f->key = arena_string(c->arena, key);
    }
    f->reason = NULL;
    return f;
}

/* Paths as absolute paths; NULL: a quote does not end. Quotes around a single path are optional. */
static const char *absolute_paths(config *c, const config_entry *e, const char *value, bool several)
{
    int count;
    char **item;
    const char **path;

    if (*value == '\0' || (!several && *value != '"'))
        return *value == '\0' ? value : config_path(c, e, value);
    item = list_split(c->arena, value, &count);
    if (item == NULL || (!several && count != 1))
        return NULL;
    path = arena_alloc(c->arena, (size_t)count * sizeof *path);
    for (int i = 0; i < count; i++)
        path[i] = config_path(c, e, item[i]);
    return several ? list_join(c->arena, count, path) : path[0];
}

/*
 * The entry's value or the default. A malformed list of paths stays, so that option_parse refuses
 * it.
 */
static const char *value_of(config *c, const config_entry *e, const pons_option *option)
{
    const char *value = e != NULL ? e->value : option->fallback, *absolute = NULL;

    if (option->type == PONS_OPTION_PATH || option->type == PONS_OPTION_PATHS)
        absolute = absolute_paths(c, e, value, option->type == PONS_OPTION_PATHS);
    return absolute != NULL ? absolute : value;
}

/* Refuse control characters, also in the folder of the file: config_write could not write them. */
static pons_status check_path(const pons_option *option, const char *value, const char *where,
                              pons_error *err)
{
    if (option->type != PONS_OPTION_PATH && option->type != PONS_OPTION_PATHS)
        return PONS_OK;
    for (const char *p = value; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return pons_fail(err, PONS_CONFIG, "%s: the path has the control character 0x%02x in "
                             "the name of a folder or file, expected none", where,
                             (unsigned char)*p);
    return PONS_OK;
}

static pons_status refuse_name(pons_error *err, const char *where, const char *what,
                               const char *name, const char *behind, const char *best)
{
    if (best != NULL)
        return pons_fail(err, PONS_CONFIG, "%s: unknown %s '%s'%s; did you mean '%s'?", where, what,
                         name, behind, best);
    return pons_fail(err, PONS_CONFIG, "%s: unknown %s '%s'%s", where, what, name, behind);
}

static bool is_near_name(const char *wrong, const char *name)
{
    text_guess guess = text_guess_for(wrong);

    text_guess_try(&guess, name);
    return guess.best != NULL;
}

static bool is_step(const char *section)
{
    return strchr(section, '.') != NULL;
}

static bool has_item(config *c, const char *list, const char *word)
{
    int count = 0;
    char **item = list_split(c->arena, list, &count);

    for (int i = 0; item != NULL && i < count; i++)
        if (strcmp(item[i], word) == 0)
            return true;
    return false;
}

/* Whether 'steps' of the section before the dot lists the name after it. */
static bool is_listed(config *c, const char *section)
{
    const char *dot = strchr(section, '.');
    config_entry *e = config_entry_find(c, arena_format(c->arena, "%.*s", (int)(dot - section),
                                                        section),
                                        "steps");

    return e != NULL && has_item(c, e->value, dot + 1);
}

pons_status config_refuse_misspelt(config *c, const char *section, const char *key, pons_error *err)
{
    for (int i = 0; i < c->entry_count && is_step(section); i++) {
        const config_entry *e = &c->entry[i];
        if (is_step(e->section) && is_near_name(e->section, section) && !is_listed(c, e->section))
            return refuse_name(err, origin_of(c, e), "section", e->section, "", section);
    }
    for (int i = 0; i < c->entry_count; i++) {
        const config_entry *e = &c->entry[i];
        if (!e->used && strcmp(e->section, section) == 0 && is_near_name(e->key, key))
            return refuse_name(err, origin_of(c, e), "key", e->key,
                               arena_format(c->arena, " in [%s]", section), key);
    }
    return PONS_OK;
}

static pons_status fill_option(config *c, const char *section, const pons_option *option,
                               void *target, pons_error *err)
{
    config_entry *e = config_entry_find(c, section, option->name);
    const char *origin = e != NULL ? origin_of(c, e) : "default";
    const char *value, *where;
    filled *f;

    if (e == NULL && option->fallback == NULL) {
        if (config_refuse_misspelt(c, section, option->name, err) != PONS_OK)
            return PONS_CONFIG;
        return pons_fail(err, PONS_CONFIG, "%s: [%s] has no '%s', which must be given: %s",
                         config_location(c, section, NULL), section, option->name, option->help);
    }
    if (e != NULL)
        e->used = true;
    value = value_of(c, e, option);
    where = arena_format(c->arena, "%s: [%s] %s", origin, section, option->name);
    if (check_path(option, value, where, err) != PONS_OK)
        return PONS_CONFIG;
    if (option_parse(c, option, value, where, target, err) != PONS_OK)
        return PONS_CONFIG;
    f = filled_add(c, section, option->name);
    f->path = option->type == PONS_OPTION_PATH;
    f->value = arena_string(c->arena, value);
    f->origin = origin;
    return PONS_OK;
}

pons_status config_fill(config *c, const char *section, const pons_option *options, void *target,
                        pons_error *err)
{
    pons_error own = PONS_ERROR_INIT;
    pons_status status = PONS_OK;

    if (err == NULL)
        err = &own;
    add_known_section(c, section, options, false);
    for (const pons_option *o = options; status == PONS_OK && o != NULL && o->name != NULL; o++)
        status = fill_option(c, section, o, target, err);
    return status;
}

/* ---- unknown --------------------------------------------------------------------------------- */

void config_skip(config *c, const char *section)
{
    add_known_section(c, section, NULL, true);
    for (int i = 0; i < c->entry_count; i++)
        if (strcmp(c->entry[i].section, section) == 0)
            c->entry[i].used = true;
}

const char *config_leave_out(config *c, const char *section, const pons_option *known,
                             const pons_option *kept)
{
    const char *names = NULL;

    for (int i = 0; i < c->entry_count; i++) {
        config_entry *e = &c->entry[i];
        if (e->used || e->line == 0 || strcmp(e->section, section) != 0
            || option_find(known, e->key) == NULL || option_find(kept, e->key) != NULL)
            continue;
        e->used = true;
        names = names != NULL ? arena_format(c->arena, "%s, %s", names, e->key) : e->key;
    }
    return names;
}

static bool is_known(const config *c, const char *section)
{
    for (const known_section *k = c->known; k != NULL; k = k->next)
        if (strcmp(k->name, section) == 0)
            return true;
    return false;
}

/* Whether files have the section, and --set gives none of its keys. */
static bool is_of_files(const config *c, const char *section)
{
    bool found = false;

    for (const section_line *s = c->section; s != NULL; s = s->next)
        found = found || strcmp(s->name, section) == 0;
    for (int i = 0; i < c->entry_count; i++)
        if (c->entry[i].line == 0 && strcmp(c->entry[i].section, section) == 0)
            return false;
    return found;
}

const char *config_leave_out_parts(config *c, const char *whole, const char *key)
{
    const config_entry *e = config_find(c, whole, key);
    const char *names = NULL;
    int count = 0;
    char **item = e != NULL && e->replaced != NULL
                ? list_split(c->arena, e->replaced, &count) : NULL;

    for (int i = 0; item != NULL && i < count; i++) {
        const char *section = arena_format(c->arena, "%s.%s", whole, item[i]);
        if (has_item(c, e->value, item[i]) || is_known(c, section) || !is_of_files(c, section))
            continue;
        config_skip(c, section);
        names = names != NULL ? arena_format(c->arena, "%s, %s", names, item[i]) : item[i];
    }
    return names;
}

static pons_status refuse_section(config *c, const char *section, const char *where,
                                  pons_error *err)
{
    text_guess guess = text_guess_for(section);
    const char *dot = strchr(section, '.'), *behind = "";
    const char *whole = dot != NULL
                      ? arena_format(c->arena, "%.*s", (int)(dot - section), section) : section;

    for (const known_section *k = c->known; k != NULL; k = k->next)
        text_guess_try(&guess, k->name);
    if (dot != NULL && is_known(c, whole)) /* a step that 'steps' does not list */
        behind = arena_format(c->arena, ": [%s] does not name '%s'", whole, dot + 1);
    return refuse_name(err, where, "section", section, behind, guess.best);
}

static pons_status refuse_key(config *c, const config_entry *e, pons_error *err)
{
    text_guess guess = text_guess_for(e->key);

    for (const known_section *k = c->known; k != NULL; k = k->next)
        for (const pons_option *o = k->options; strcmp(k->name, e->section) == 0 && o != NULL &&
                                                o->name != NULL; o++)
            text_guess_try(&guess, o->name);
    return refuse_name(err, origin_of(c, e), "key", e->key,
                       arena_format(c->arena, " in [%s]", e->section), guess.best);
}

static pons_status refuse_sections(config *c, bool steps, pons_error *err)
{
    for (const section_line *s = c->section; s != NULL; s = s->next)
        if (!is_known(c, s->name) && (steps || !is_step(s->name)))
            return refuse_section(c, s->name, arena_format(c->arena, "%s:%d", s->file, s->line),
                                  err);
    for (int i = 0; i < c->entry_count; i++) {
        const config_entry *e = &c->entry[i];
        if (!is_known(c, e->section) && (steps || !is_step(e->section)))
            return refuse_section(c, e->section, origin_of(c, e), err);
    }
    return PONS_OK;
}

pons_status config_refuse_sections(config *c, pons_error *err)
{
    return refuse_sections(c, false, err);
}

pons_status config_refuse_keys(config *c, const char *section, pons_error *err)
{
    for (int i = 0; i < c->entry_count; i++)
        if (!c->entry[i].used && (section == NULL || strcmp(c->entry[i].section, section) == 0))
            return refuse_key(c, &c->entry[i], err);
    return PONS_OK;
}

pons_status config_refuse_unknown(config *c, pons_error *err)
{
    if (refuse_sections(c, true, err) != PONS_OK)
        return PONS_CONFIG;
    return config_refuse_keys(c, NULL, err);
}

/* ---- resolved -------------------------------------------------------------------------------- */

const char *config_resolve(config *c, const char *section, const char *key, const char *value,
                           const char *reason)
{
    filled *f = filled_find(c, section, key);

    if (f == NULL) {
        f = filled_add(c, section, key);
        f->origin = "resolved";
    }
    f->value = arena_string(c->arena, value);
    f->reason = reason != NULL ? arena_string(c->arena, reason) : NULL;
    return f->value;
}

void config_derive(config *c, const char *section, const char *key, const char *value,
                   const char *reason)
{
    config_resolve(c, section, key, value, reason);
    filled_find(c, section, key)->derived = true;
}

void config_add_comment(config *c, const char *text)
{
    c->remarks = arena_format(c->arena, "%s; %s\n", c->remarks != NULL ? c->remarks : "", text);
}

/* A comment per file: the name in origins and its absolute path. */
static void write_origins(const config *c, FILE *to)
{
    const char *last = "";

    for (int i = 0; i < c->entry_count; i++) {
        const config_entry *e = &c->entry[i];
        const char *name = strrchr(e->file, '/');
        if (e->line == 0 || strcmp(e->file, last) == 0)
            continue;
        fprintf(to, "; %s is %s/%s\n", e->file, strcmp(e->folder, "/") == 0 ? "" : e->folder,
                name != NULL ? name + 1 : e->file);
        last = e->file;
    }
    if (c->remarks != NULL)
        fputs(c->remarks, to);
    fputc('\n', to);
}

int config_count(const config *c)
{
    return c->filled_count;
}

void config_item(const config *c, int index, const char **section, const char **key,
                 const char **value)
{
    *section = c->filled[index].section;
    *key = c->filled[index].key;
    *value = c->filled[index].value;
}

enum { LINE_WIDTH = 500 }; /* of written values; a line that is read may have 1000 characters    */

/* The end of the part of a value that a line holds: before its last single blank that fits. */
static const char *line_end(const char *value)
{
    const char *end = value + strlen(value), *last = NULL;

    if (end - value <= LINE_WIDTH)
        return end;
    for (const char *at = value + 1; at + 1 < end && (last == NULL || at - value < LINE_WIDTH);
         at++)
        if (*at == ' ' && at[-1] != ' ' && at[-1] != '\\' && at[1] != ' ')
            last = at;
    return last != NULL ? last : end;
}

/* Write a value over several lines, each of which but the last ends in '\'. */
static void write_long_value(const char *key, const char *value, FILE *to)
{
    const char *end = line_end(value);

    fprintf(to, "%s = %.*s", key, (int)(end - value), value);
    while (*end != '\0') {
        value = end + 1;
        end = line_end(value);
        fprintf(to, " \\\n    %.*s", (int)(end - value), value);
    }
    /* an empty comment keeps a '\' at the end of the value from joining the next line */
    fputs(end[-1] == '\\' ? " ;\n" : "\n", to);
}

/* Two tables may fill a section at different times. All its keys are printed together. */
static void write_section(config *c, const char *section, FILE *to)
{
    fprintf(to, "[%s]\n", section);
    for (int i = 0; i < c->filled_count; i++) {
        const filled *f = &c->filled[i];
        if (strcmp(f->section, section) != 0)
            continue;
        const char *value = f->path ? list_single(c->arena, f->value) : f->value;
        /* a long value gets its own lines, since a line has a maximum length */
        if (f->derived) {
            fprintf(to, "; %s = %s ; %s\n", f->key, value, f->reason);
        } else if (*value != '\0' && strlen(value) + strlen(f->origin) > LINE_WIDTH) {
            fprintf(to, "; %s%s%s\n", f->origin, f->reason != NULL ? "; " : "",
                    f->reason != NULL ? f->reason : "");
            write_long_value(f->key, value, to);
        } else {
            fprintf(to, "%s =%s%s ; %s%s%s\n", f->key, *value != '\0' ? " " : "", value,
                    f->origin, f->reason != NULL ? "; " : "", f->reason != NULL ? f->reason : "");
        }
    }
}

static bool has_section_before(const config *c, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(c->filled[i].section, c->filled[index].section) == 0)
            return true;
    return false;
}

static void write_sections(config *c, FILE *to)
{
    bool first = true;

    for (int i = 0; i < c->filled_count; i++) {
        if (has_section_before(c, i))
            continue;
        if (!first)
            fputc('\n', to);
        write_section(c, c->filled[i].section, to);
        first = false;
    }
}

void config_print(config *c, FILE *to)
{
    write_origins(c, to);
    write_sections(c, to);
}

static bool write_with_digest(config *c, text_stream *s)
{
    config_print(c, s->to);
    if (text_stream_flush(s))
        json_digest_put_line(s->to, s->text, s->size);
    return text_stream_close(s);
}

static pons_status write_text(config *c, const char *path, const char *text, size_t size,
                              pons_error *err)
{
    safe_file f;
    sha256 hash;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    if (safe_file_write(&f, text, size, err) != PONS_OK) {
        safe_file_discard(&f);
        return err->status;
    }
    sha256_init(&hash);
    sha256_add(&hash, text, size);
    sha256_finish(&hash, c->written);
    return safe_file_commit(&f, err);
}

pons_status config_write(config *c, const char *path, pons_error *err)
{
    text_stream s;

    if (!text_stream_open(&s) || !write_with_digest(c, &s))
        return pons_fail(err, PONS_DEVICE, "out of memory for '%s'", path);
    write_text(c, path, s.text, s.size, err);
    free(s.text);
    return err->status;
}

const char *config_written_hash(const config *c)
{
    return c->written;
}
