/*
 * layout_globs.c - 'image' (one pattern per channel) and 'label', paired by the text that '*'
 * matches.
 *
 * '*' matches one or more characters of one file or folder name; no other character is special.
 * The matched text is the case id: A_B for two stars, or A if both matched the same text. A name
 * with a leading dot matches only a pattern with a leading dot (archives contain "._" files).
 * Patterns without '*' name the files of a single case.
 */
#include "data/dataset/layout.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "data/volume/volume_files.h"

#define STARS_MAX 4

typedef struct star_text {
    const char *text;
    size_t size;
} star_text;

typedef struct found_file {
    const char *key, *path;
} found_file;

typedef struct glob_search {
    arena *memory;
    const char *key, *pattern; /* the option's name and value                                     */
    found_file *file;          /* malloc'ed, sorted by key */
    int count, room;
    star_text star[STARS_MAX];
} glob_search;

/* ---- matching a name ------------------------------------------------------------------------- */

/* Match 'name' against 'pattern' up to its end or '/'; star[0] and up receive the matched texts. */
static bool name_matches(const char *pattern, const char *name, star_text *star)
{
    for (; *pattern != '*'; pattern++, name++) {
        if (*pattern == '\0' || *pattern == '/')
            return *name == '\0';
        if (*pattern != *name)
            return false;
    }
    for (size_t size = 1; size <= strlen(name); size++) {
        *star = (star_text){ name, size };
        if (name_matches(pattern + 1, name + size, star + 1))
            return true;
    }
    return false;
}

static const char *key_of(arena *memory, const star_text *star, int count)
{
    char *key = arena_format(memory, "%.*s", (int)star[0].size, star[0].text);
    bool same = true;

    for (int i = 1; i < count; i++)
        same = same && star[i].size == star[0].size &&
               memcmp(star[i].text, star[0].text, star[0].size) == 0;
    for (int i = 1; i < count && !same; i++)
        key = arena_format(memory, "%s_%.*s", key, (int)star[i].size, star[i].text);
    return key;
}

static int count_stars(const char *text, const char *end)
{
    int count = 0;

    for (; text < end; text++)
        count += *text == '*';
    return count;
}

/* ---- folders --------------------------------------------------------------------------------- */

static pons_status add_found_file(glob_search *s, int stars, const char *path, pons_error *err)
{
    if (s->count == s->room) {
        int room = s->room == 0 ? 64 : 2 * s->room;
        found_file *more = realloc(s->file, (size_t)room * sizeof *more);
        if (more == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        s->file = more;
        s->room = room;
    }
    s->file[s->count++] = (found_file){ key_of(s->memory, s->star, stars), path };
    return PONS_OK;
}

/* Match 'rest' below 'prefix', which ends with '/' or is empty. */
static pons_status match_path(glob_search *s, const char *prefix, const char *rest, int stars,
                              pons_error *err);

static pons_status match_folder(glob_search *s, DIR *folder, const char *prefix, const char *part,
                                const char *rest, int stars, pons_error *err)
{
    size_t part_size = strcspn(part, "/");
    int more = count_stars(part, part + part_size);
    struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.' && part[0] != '.')
            continue;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const char *name = arena_string(s->memory, entry->d_name);
        if (!name_matches(part, name, s->star + stars))
            continue;
        const char *path = arena_format(s->memory, "%s%s", prefix, name);
        if (folder_is_there(path) != (*rest == '/'))
            continue;
        if (*rest != '/') {
            if (add_found_file(s, stars + more, path, err) != PONS_OK)
                return err->status;
        } else if (match_path(s, arena_format(s->memory, "%s/", path), rest + 1, stars + more,
                              err) !=
                   PONS_OK) {
            return err->status;
        }
    }
    return PONS_OK;
}

static pons_status match_path(glob_search *s, const char *prefix, const char *rest, int stars,
                              pons_error *err)
{
    const char *part = rest, *end;
    DIR *folder;

    for (end = part + strcspn(part, "/"); count_stars(part, end) == 0; ) {
        if (*end == '\0') { /* a plain name below a folder that a star matched */
            const char *path = arena_format(s->memory, "%s%s", prefix, rest);
            struct stat facts;
            return stat(path, &facts) == 0 ? add_found_file(s, stars, path, err) : PONS_OK;
        }
        part = end + 1;
        end = part + strcspn(part, "/");
    }
    const char *below = arena_format(s->memory, "%s%.*s", prefix, (int)(part - rest), rest);
    folder = opendir(*below == '\0' ? "." : below);
    if (folder == NULL) {
        /* another matched folder may hold the file */
        if (stars > 0 && errno_status(errno, PONS_OK) == PONS_OK)
            return PONS_OK;
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read folder '%s' of '%s': %s",
                         below, s->pattern, strerror(errno));
    }
    pons_status status = match_folder(s, folder, below, part, end, stars, err);
    closedir(folder);
    return status;
}

/* ---- matching files -------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    const found_file *left = a, *right = b;
    int order = strcmp(left->key, right->key);

    return order != 0 ? order : strcmp(left->path, right->path);
}

/* Keep files with a usable and unique case id; report the others. */
static void keep_usable_files(glob_search *s, layout_result *out)
{
    int kept = 0;

    qsort(s->file, (size_t)s->count, sizeof *s->file, compare_keys);
    for (int i = 0; i < s->count; i++) {
        const found_file *f = &s->file[i];
        pons_error cause = PONS_ERROR_INIT;
        if (layout_check_id(f->key, f->path, &cause) != PONS_OK)
            layout_problem(out, NULL, f->path, "%s", cause.text);
        else if (kept > 0 && strcmp(f->key, s->file[kept - 1].key) == 0)
            layout_problem(out, f->key, f->path, "'%s' and '%s' are both this case of '%s', "
                           "expected one", s->file[kept - 1].path, f->path, s->pattern);
        else
            s->file[kept++] = *f;
    }
    s->count = kept;
}

static pons_status search_pattern(glob_search *s, layout_result *out, pons_error *err)
{
    size_t size = strlen(s->pattern);

    if (strstr(s->pattern, "**") != NULL)
        return pons_fail(err, PONS_CONFIG, "'%s' is '%s', which holds '**', expected single '*'",
                         s->key, s->pattern);
    if (count_stars(s->pattern, s->pattern + size) > STARS_MAX)
        return pons_fail(err, PONS_CONFIG, "'%s' is '%s', which has more than %d '*'", s->key,
                         s->pattern, STARS_MAX);
    if (match_path(s, "", s->pattern, 0, err) != PONS_OK)
        return err->status;
    if (s->count == 0)
        return pons_fail(err, PONS_DATA, "[data] %s: no file matches '%s'", s->key,
                         s->pattern);
    keep_usable_files(s, out);
    return PONS_OK;
}

static const char *search_find(const glob_search *s, const char *key)
{
    found_file wanted = { key, "" };
    int low = 0, high = s->count;

    while (low < high) {
        int middle = (low + high) / 2;
        if (compare_keys(&s->file[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && strcmp(s->file[low].key, key) == 0 ? s->file[low].path : NULL;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* The number of patterns: one for each channel, and one for the label. */
static int pattern_count(const dataset_settings *settings)
{
    return settings->image.count + (settings->label != NULL);
}

/* The file that a pattern expects for a key; a pattern with several stars stands for itself. */
static const char *expected_path(arena *memory, const char *pattern, const char *key)
{
    const char *star = strchr(pattern, '*');

    if (strchr(star + 1, '*') != NULL)
        return pattern;
    return arena_format(memory, "%.*s%s%s", (int)(star - pattern), pattern, key, star + 1);
}

/* The case of a key; pattern 'from' has a file for it. */
static data_case make_case(const dataset_settings *settings, const glob_search *s, int from,
                           const char *key, layout_result *out)
{
    int images = settings->image.count;
    const char **image = arena_alloc(out->memory, (size_t)images * sizeof *image);
    const char *there = search_find(&s[from], key);
    data_case c = { .id = key, .image = image };

    for (int p = 0; p < pattern_count(settings); p++) {
        const char *path = search_find(&s[p], key);
        bool complete = p < images ? layout_add_channel(settings, path, image, &c) : path != NULL;
        if (!complete)
            layout_problem(out, key, there, "found '%s', expected '%s' beside it", there,
                           expected_path(out->memory, s[p].pattern, key));
        c.incomplete = c.incomplete || !complete;
        c.label = p == images ? path : c.label;
    }
    return c;
}

static bool has_earlier_file(const glob_search *s, int pattern, const char *key)
{
    for (int p = 0; p < pattern; p++) {
        if (search_find(&s[p], key) != NULL)
            return true;
    }
    return false;
}

/* Make a case for every key of any pattern. */
static void make_cases(const dataset_settings *settings, const glob_search *s, layout_result *out)
{
    size_t room = 0;

    for (int p = 0; p < pattern_count(settings); p++)
        room += (size_t)s[p].count;
    out->cases = arena_alloc(out->memory, room * sizeof *out->cases);
    for (int p = 0; p < pattern_count(settings); p++) {
        for (int i = 0; i < s[p].count; i++) {
            const char *key = s[p].file[i].key;
            if (!has_earlier_file(s, p, key))
                out->cases[out->case_count++].info = make_case(settings, s, p, key, out);
        }
    }
}

static pons_status make_single_case(const dataset_settings *settings, layout_result *out,
                                    pons_error *err)
{
    const char **image = arena_alloc(out->memory, (size_t)settings->image.count * sizeof *image);

    for (int c = 0; c < settings->image.count; c++)
        image[c] = arena_string(out->memory, settings->image.item[c]);
    out->cases = arena_alloc(out->memory, sizeof *out->cases);
    out->cases[0].info = (data_case){
        .id = volume_file_stem(out->memory, image[0]), .image_count = settings->image.count,
        .image = image,
        .label = settings->label != NULL ? arena_string(out->memory, settings->label) : NULL
    };
    out->case_count = 1;
    return layout_check_id(out->cases[0].info.id, image[0], err);
}

/* The number of patterns with a star. */
static int count_globs(int count, const char *const *pattern)
{
    int globs = 0;

    for (int i = 0; i < count; i++)
        globs += strchr(pattern[i], '*') != NULL;
    return globs;
}

pons_status layout_globs_read(const dataset_settings *settings, layout_result *out,
                              pons_error *err)
{
    int images = settings->image.count, count = pattern_count(settings);
    const char **pattern = arena_alloc(out->memory, (size_t)count * sizeof *pattern);
    glob_search *s = arena_alloc(out->memory, (size_t)count * sizeof *s);
    int globs;

    for (int i = 0; i < count; i++)
        pattern[i] = i < images ? settings->image.item[i] : settings->label;
    out->origin = arena_string(out->memory, pattern[0]);
    out->channels = images;
    globs = count_globs(count, pattern);
    if (globs == 0)
        return make_single_case(settings, out, err);
    for (int i = 0; i < count && globs != count; i++) {
        if (strchr(pattern[i], '*') == NULL)
            return pons_fail(err, PONS_CONFIG, "'%s' is '%s', which has no '*' but another pattern "
                             "has one%s", i < images ? "image" : "label", pattern[i],
                             i < images ? "\nhint: a pattern with blanks stands in \"double "
                                          "quotes\"" : "");
    }
    pons_status status = PONS_OK;
    for (int i = 0; i < count && status == PONS_OK; i++) {
        s[i] = (glob_search){ .memory = out->memory, .key = i < images ? "image" : "label",
                              .pattern = pattern[i] };
        status = search_pattern(&s[i], out, err);
    }
    if (status == PONS_OK)
        make_cases(settings, s, out);
    for (int i = 0; i < count; i++)
        free(s[i].file);
    return status;
}
