/*
 * layout.c - recognise how a dataset lies on disk.
 *
 * A value of 'layout' wins; 'auto' looks at what 'source' names. Layouts that a later build will
 * read are recognised, so that their users are told and not misread.
 */
#include "data/dataset/layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/errno_status.h"
#include "base/file/file_kind.h"
#include "base/text/quote.h"
#include "base/text/text.h"

static const struct layout {
    const char *name;
    layout_read *reader;       /* NULL: not in this build                                         */
} layouts[] = {
    { "globs", layout_globs_read },
    { "decathlon", layout_decathlon_read },
    { "nnunet", NULL },
    { "datalist", NULL },
    { "csv", NULL },
    { "brats", NULL },
    { "bids", NULL },
};

static bool has_file(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    struct stat facts;
    bool found;

    if (path == NULL)
        return false;
    snprintf(path, size, "%s/%s", folder, name);
    found = stat(path, &facts) == 0;
    free(path);
    return found;
}

/* The layout of 'source', or NULL and the reason in 'err'. */
static const char *source_layout(const char *source, pons_error *err)
{
    struct stat facts;

    if (stat(source, &facts) != 0) {
        pons_fail(err, errno_status(errno, PONS_DATA), "cannot find the dataset '%s' of [data] "
                  "source: %s", source, strerror(errno));
        return NULL;
    }
    if (!S_ISDIR(facts.st_mode)) {
        if (text_ends_with(source, ".json"))
            return "decathlon";
        if (text_ends_with(source, ".csv") || text_ends_with(source, ".tsv"))
            return "csv";
        pons_fail(err, PONS_DATA, "'%s' is no dataset, expected a folder with a dataset.json or a "
                  ".json file", source);
        return NULL;
    }
    if (has_file(source, "dataset.json"))
        return "decathlon";
    if (has_file(source, "dataset_description.json"))
        return "bids";
    if (file_kind_refuse_folder(source, FILE_VOLUME, err) != PONS_OK)
        return NULL;
    pons_fail(err, PONS_DATA, "folder '%s' has no dataset.json\n"
              "hint: 'image' and 'label' with * in them name files without one", source);
    return NULL;
}

static const char *settings_layout(const dataset_settings *s, pons_error *err)
{
    if (s->layout != NULL && strcmp(s->layout, "auto") != 0)
        return s->layout;
    return s->source != NULL ? source_layout(s->source, err) : "globs";
}

static pons_status check_names(const dataset_settings *s, pons_error *err)
{
    if (s->source != NULL && s->image.count > 0)
        return pons_fail(err, PONS_CONFIG,
                         "'source' and 'image' are both given, expected one of them");
    if (s->source != NULL && s->label != NULL)
        return pons_fail(err, PONS_CONFIG,
                         "'source' and 'label' are both given, expected one of them");
    if (s->source == NULL && s->image.count == 0)
        return pons_fail(err, PONS_CONFIG, "neither 'source' nor 'image' is given");
    return PONS_OK;
}

pons_status layout_choose(const dataset_settings *s, const char **name, layout_read **reader,
                          pons_error *err)
{
    const char *wanted;

    if (check_names(s, err) != PONS_OK)
        return err->status;
    wanted = settings_layout(s, err);
    if (wanted == NULL)
        return err->status;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (strcmp(layouts[i].name, wanted) != 0)
            continue;
        if (layouts[i].reader == NULL)
            return pons_fail(err, PONS_CONFIG, "'%s' is not in this build", wanted);
        if ((s->source == NULL) != (layouts[i].reader == layout_globs_read))
            return pons_fail(err, PONS_CONFIG, "layout '%s' needs '%s'", wanted,
                             s->source == NULL ? "source" : "image");
        *name = layouts[i].name;
        *reader = layouts[i].reader;
        return PONS_OK;
    }
    return pons_fail(err, PONS_CONFIG,
                     "'layout' is '%s', expected auto, globs or decathlon", wanted);
}

void layout_problem(layout_result *out, const char *id, const char *file, const char *format, ...)
{
    char text[sizeof ((pons_error *)NULL)->text];
    va_list list;

    if (out->problem_count == out->problem_room) {
        size_t count = (size_t)out->problem_count;
        dataset_problem *more = arena_alloc(out->memory, (2 * count + 16) * sizeof *more);
        if (count > 0)
            memcpy(more, out->problem, count * sizeof *more);
        out->problem = more;
        out->problem_room = 2 * out->problem_count + 16;
    }
    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    out->problem[out->problem_count++] = (dataset_problem){
        id, file, arena_string(out->memory, text), false
    };
}

pons_status layout_check_id(const char *id, const char *file, pons_error *err)
{
    bool plain = id[0] != '\0' && strcmp(id, ".") != 0 && strcmp(id, "..") != 0;

    for (const char *c = id; *c != '\0'; c++)
        plain = plain && (unsigned char)*c >= 32 && *c != 127 && *c != '/';
    if (!plain)
        return pons_fail(err, PONS_DATA, "'%s' gives no usable case id", file);
    return PONS_OK;
}
