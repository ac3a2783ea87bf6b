/*
 * config_read.c - parse a file into entries. inih splits a line into section, key and value. It
 * would silently cut, join or skip some lines: long lines, indented lines, text after a section.
 * These lines are refused before inih sees them. The value of a line that ends in '\' goes on in
 * the next line, which may be indented.
 */
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "config/config_internal.h"
#include "config/list.h"

enum { FILE_LIMIT = 1 << 20, LINE_LIMIT = 1000, SECTION_LIMIT = 49, DEPTH_LIMIT = 16 };

typedef struct reading {
    config *config;
    const char *file, *folder;
    const char *next;     /* rest of the text                                                     */
    int line;             /* line number of the line that inih has                                */
    int continued;        /* lines that were joined to it                                         */
    name_index lines;     /* line numbers of this file's keys                                     */
    const char *value;    /* value of a line that was shortened, else NULL                        */
    const char *include;  /* path, NULL: none                                                     */
    int include_line;
    bool section_seen;
    pons_error *err;
} reading;

/* The open files, innermost first, for finding a cycle of includes. */
typedef struct open_file {
    dev_t device;
    ino_t inode;
    int depth;
    const struct open_file *outer;
} open_file;

/* ---- lines ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static pons_status check_section(reading *r, const char *line, size_t size)
{
    const char *end = memchr(line, ']', size);
    const char *rest;
    section_line *s;

    if (end == NULL)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: section has no ']'", r->file, r->line);
    if (end == line + 1)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: section has no name", r->file, r->line);
    if (end - line - 1 > SECTION_LIMIT)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: section name has %d characters, at most %d "
                         "are expected", r->file, r->line, (int)(end - line - 1), SECTION_LIMIT);
    rest = end + 1;
    while (rest < line + size && (is_blank(*rest) || *rest == '\r'))
        rest++;
    if (rest < line + size && *rest != ';' && *rest != '#')
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: text after ']': '%.*s'", r->file, r->line,
                         (int)(line + size - rest), rest);
    s = arena_alloc(r->config->arena, sizeof *s);
    s->name = arena_format(r->config->arena, "%.*s", (int)(end - line - 1), line + 1);
    s->file = r->file;
    s->line = r->line;
    s->next = r->config->section;
    r->config->section = s;
    r->section_seen = true;
    return PONS_OK;
}

/* Length and characters. 'number' is that of the line. */
static pons_status check_text(const reading *r, int number, const char *line, size_t size)
{
    if (size > LINE_LIMIT)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: line has %zu characters, at most %d are "
                         "expected", r->file, number, size, LINE_LIMIT);
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)line[i] < 0x20 && line[i] != '\t' &&
             !(line[i] == '\r' && i + 1 == size)) ||
            line[i] == 0x7f)
            return pons_fail(r->err, PONS_CONFIG, "%s:%d: control character 0x%02x at column %zu",
                             r->file, number, (unsigned char)line[i], i + 1);
    return PONS_OK;
}

static pons_status check_line(reading *r, const char *line, size_t size)
{
    size_t blanks = 0;

    if (check_text(r, r->line, line, size) != PONS_OK)
        return r->err->status;
    if (size > 0 && line[size - 1] == '\r')
        size--;
    while (blanks < size && is_blank(line[blanks]))
        blanks++;
    if (blanks == size)
        return PONS_OK;
    if (blanks > 0)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: line is indented: '%.*s', expected no blank "
                         "before a key or section", r->file, r->line, (int)(size - blanks),
                         line + blanks);
    if (line[0] == '[')
        return check_section(r, line, size);
    if (line[0] != ';' && line[0] != '#' && strcspn(line, "=:") >= size)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: no '=' in line, expected 'key = value'",
                         r->file, r->line);
    return PONS_OK;
}

/* The value at 'begin': up to ' ;' outside quotes, without outer blanks, as inih reads it. */
static const char *value_at(config *c, const char *begin, const char *end)
{
    end = list_comment(begin, end);
    while (begin < end && is_blank(*begin))
        begin++;
    while (end > begin && (is_blank(end[-1]) || end[-1] == '\r'))
        end--;
    return arena_format(c->arena, "%.*s", (int)(end - begin), begin);
}

/*
 * The bytes of a line that inih gets. Its buffer has a compiled-in size, often 200 bytes, and it
 * does not know quotes. Of a longer or quoted line inih gets only the key, and r->value keeps the
 * value.
 */
static size_t shorten_line(reading *r, const char *line, size_t size, size_t room)
{
    const char *end = line + size, *stop = line;

    if (size <= room && memchr(line, '"', size) == NULL)
        return size;
    if (*line == ';' || *line == '#')
        return 1;
    if (*line == '[')
        return (size_t)((const char *)memchr(line, ']', size) - line) + 1;
    while (stop < end && *stop != '=' && *stop != ':')
        stop++;
    if (stop == end)
        return 1;
    r->value = value_at(r->config, stop + 1, end);
    return (size_t)(stop - line) + 1;
}

/* Take the next line of the text; false: there is none. */
static bool take_line(reading *r, const char **line, size_t *size)
{
    const char *end = strchr(r->next, '\n');

    *line = r->next;
    *size = end != NULL ? (size_t)(end - r->next) : strlen(r->next);
    r->next += *size + (end != NULL);
    return **line != '\0';
}

/* Whether a key's line ends in '\', but for blanks; *size becomes that of the text before it. */
static bool goes_on(const char *line, size_t *size)
{
    size_t end = *size;

    while (end > 0 && (is_blank(line[end - 1]) || line[end - 1] == '\r'))
        end--;
    if (end == 0 || line[end - 1] != '\\' || strchr(";#[", line[0]) != NULL
        || list_comment(line, line + end) < line + end)
        return false;
    for (end--; end > 0 && is_blank(line[end - 1]); end--)
        continue;
    *size = end;
    return true;
}

/* Join the lines in which a value goes on, with a blank between them. */
static pons_status join_lines(reading *r, const char **line, size_t *size)
{
    const char *joined = arena_format(r->config->arena, "%.*s", (int)*size, *line), *more;
    bool open = true;
    size_t left;

    while (open && take_line(r, &more, &left)) {
        r->continued++;
        if (check_text(r, r->line + r->continued, more, left) != PONS_OK)
            return r->err->status;
        while (left > 0 && is_blank(*more)) {
            more++;
            left--;
        }
        open = left > 0 && goes_on(more, &left);
        joined = arena_format(r->config->arena, "%s %.*s", joined, (int)left, more);
    }
    if (open)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: line ends in '\\', but no line follows",
                         r->file, r->line + r->continued);
    *line = joined;
    *size = strlen(joined);
    return PONS_OK;
}

/* A reader for inih: returns one checked line, as fgets would. */
static char *next_line(char *to, int room, void *stream)
{
    reading *r = stream;
    const char *line;
    size_t size;

    if (r->err->status != PONS_OK || !take_line(r, &line, &size))
        return NULL;
    r->line += 1 + r->continued;
    r->continued = 0;
    if (r->line == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        size -= 3;
    }
    if (check_line(r, line, size) != PONS_OK
        || (size > 0 && goes_on(line, &size) && join_lines(r, &line, &size) != PONS_OK))
        return NULL;
    r->value = NULL;
    size = shorten_line(r, line, size, (size_t)room - 2);
    if (size > (size_t)room - 2) {
        pons_fail(r->err, PONS_CONFIG, "%s:%d: key has %zu characters, at most %d are expected",
                  r->file, r->line, size - 1, room - 3);
        return NULL;
    }
    memcpy(to, line, size);
    to[size] = '\n';
    to[size + 1] = '\0';
    return to;
}

/* ---- entries --------------------------------------------------------------------------------- */

static pons_status take_include(reading *r, const char *value)
{
    if (r->include != NULL)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: duplicate key 'include', first on line %d",
                         r->file, r->line, r->include_line);
    if (*value == '\0')
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: include names no file", r->file, r->line);
    r->include = arena_string(r->config->arena, value);
    r->include_line = r->line;
    return PONS_OK;
}

static pons_status take_entry(reading *r, const char *section, const char *key, const char *value)
{
    config *c = r->config;

    if (*key == '\0')
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: no key before '='", r->file, r->line);
    if (!r->section_seen && strcmp(key, "include") == 0)
        return take_include(r, value);
    if (!r->section_seen)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: key '%s' stands before any section", r->file,
                         r->line, key);
    if (strcmp(key, "include") == 0)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: unknown key 'include' in [%s]\nhint: it "
                         "stands on top of a file, before any section", r->file, r->line, section);
    config_entry e = { arena_string(c->arena, section), arena_string(c->arena, key),
                       arena_string(c->arena, value), r->file, r->folder, r->line, false, NULL };
    int line = name_index_add(&r->lines, e.section, e.key, e.line);
    if (line < 0)
        return pons_fail(r->err, PONS_DEVICE, "out of memory reading '%s'", r->file);
    if (line != e.line)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: duplicate key '%s' in [%s], first on "
                         "line %d", r->file, r->line, key, section, line);
    if (config_entry_find(c, e.section, e.key) != NULL) /* an including file has the key */
        return PONS_OK;
    return config_entry_add(c, e, r->err);
}

static int handle_entry(void *user, const char *section, const char *name, const char *value)
{
    reading *r = user;
    return take_entry(r, section, name, r->value != NULL ? r->value : value) == PONS_OK;
}

static pons_status parse_file(reading *r, const char *text, size_t size)
{
    const char *zero = memchr(text, '\0', size);
    int result;

    if (zero != NULL) {
        int line = 1;
        for (const char *p = text; p < zero; p++)
            line += *p == '\n';
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: NUL byte: not a text file", r->file, line);
    }
    r->next = text;
    result = ini_parse_stream(next_line, r, handle_entry, r);
    if (r->err->status != PONS_OK)
        return r->err->status;
    if (result < 0)
        return pons_fail(r->err, PONS_DEVICE, "out of memory reading '%s'", r->file);
    if (result > 0)
        return pons_fail(r->err, PONS_CONFIG, "%s:%d: line cannot be read, expected 'key = value'",
                         r->file, result);
    return PONS_OK;
}

static const char *folder_of(config *c, const char *file)
{
    char *path = realpath(file, NULL), *slash;
    const char *folder;

    if (path == NULL)
        return NULL;
    slash = strrchr(path, '/');
    slash[slash == path] = '\0';
    folder = arena_string(c->arena, path);
    free(path);
    return folder;
}

static pons_status read_one(config *c, const char *file, const char *folder, const open_file *outer,
                            const char *where, pons_error *err);

static pons_status read_included(reading *r, const open_file *self)
{
    config *c = r->config;
    const char *path = r->include[0] == '/' ? r->include :
                       arena_format(c->arena, "%s/%s", r->folder, r->include);
    const char *where = arena_format(c->arena, "%s:%d: ", r->file, r->include_line);

    return read_one(c, path, NULL, self, where, r->err);
}

static pons_status read_one(config *c, const char *file, const char *folder, const open_file *outer,
                            const char *where, pons_error *err)
{
    open_file self = { 0, 0, outer != NULL ? outer->depth + 1 : 0, outer };
    reading r = { .config = c, .err = err };
    pons_error problem = PONS_ERROR_INIT;
    struct stat facts;
    char *text;
    size_t size;
    pons_status status;

    if (file_read(file, FILE_LIMIT, &text, &size, PONS_CONFIG, &problem) != PONS_OK)
        return pons_fail(err, problem.status, "%s%s", where, problem.text);
    if (stat(file, &facts) == 0) {
        self.device = facts.st_dev;
        self.inode = facts.st_ino;
    }
    status = PONS_OK;
    for (const open_file *o = outer; o != NULL; o = o->outer)
        if (o->device == self.device && o->inode == self.inode)
            status = pons_fail(err, PONS_CONFIG, "%sinclude of '%s' is a cycle", where, file);
    if (status == PONS_OK && self.depth > DEPTH_LIMIT)
        status = pons_fail(err, PONS_CONFIG, "%sinclude is deeper than %d files", where,
                           DEPTH_LIMIT);
    r.file = arena_string(c->arena, file);
    r.folder = folder != NULL ? folder : folder_of(c, file);
    if (status == PONS_OK)
        status = parse_file(&r, text, size);
    free(text);
    name_index_clear(&r.lines);
    if (status == PONS_OK && r.include != NULL)
        status = read_included(&r, &self);
    return status;
}

pons_status config_read_file(config *c, const char *file, pons_error *err)
{
    const char *folder = folder_of(c, file);

    if (folder != NULL)
        c->folder = folder;
    return read_one(c, file, folder, NULL, "", err);
}

/* ---- --set ----------------------------------------------------------------------------------- */

static const char *trimmed_text(arena *memory, const char *begin, const char *end)
{
    while (begin < end && is_blank(*begin))
        begin++;
    while (end > begin && is_blank(end[-1]))
        end--;
    return arena_format(memory, "%.*s", (int)(end - begin), begin);
}

/* The last dot before '=' divides section and key. */
bool config_divide_set(arena *memory, const char *set, config_line *out)
{
    const char *equal = strchr(set, '='), *dot = NULL;

    for (const char *p = set; equal != NULL && p < equal; p++)
        if (*p == '.')
            dot = p;
    if (dot == NULL)
        return false;
    *out = (config_line){ trimmed_text(memory, set, dot), trimmed_text(memory, dot + 1, equal),
                          trimmed_text(memory, equal + 1, set + strlen(set)) };
    return out->section[0] != '\0' && out->key[0] != '\0';
}

const char *config_set_value(arena *memory, int set_count, const char *const *set,
                             const char *section, const char *key)
{
    const char *found = NULL;
    config_line line;

    for (int i = 0; i < set_count; i++)
        if (config_divide_set(memory, set[i], &line) && strcmp(line.section, section) == 0
            && strcmp(line.key, key) == 0)
            found = line.value;
    return found;
}

/* Refuse a value that a line of resolved.ini could not hold. */
static pons_status check_set_value(const char *set, const char *value, pons_error *err)
{
    if (strlen(set) > LINE_LIMIT)
        return pons_fail(err, PONS_USAGE, "--set '%.40s...' has %zu characters, at most %d are "
                         "expected", set, strlen(set), LINE_LIMIT);
    for (const char *p = set; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return pons_fail(err, PONS_USAGE, "--set holds the control character 0x%02x",
                             (unsigned char)*p);
    if (value[0] == ';' || *list_comment(value, value + strlen(value)) != '\0')
        return pons_fail(err, PONS_USAGE, "--set '%s' holds a comment (' ;')\nhint: a path that "
                         "has it stands in double quotes", set);
    return PONS_OK;
}

pons_status config_read_set(config *c, const char *set, pons_error *err)
{
    config_entry e = { .file = "--set", .folder = c->folder };
    config_entry *old;
    config_line line;

    if (!config_divide_set(c->arena, set, &line))
        return pons_fail(err, PONS_USAGE, "--set '%s': expected section.key=value", set);
    e.section = line.section;
    e.key = line.key;
    e.value = line.value;
    if (check_set_value(set, e.value, err) != PONS_OK)
        return PONS_USAGE;
    old = config_entry_find(c, e.section, e.key);
    if (old == NULL)
        return config_entry_add(c, e, err);
    e.replaced = old->line > 0 ? old->value : old->replaced;
    *old = e;
    return PONS_OK;
}
