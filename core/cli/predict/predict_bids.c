/*
 * predict_bids.c - a derivative of BIDS 1.8: paths, dataset_description.json, sidecars.
 *
 * Entities of an image's name are kept in their order; words that are no entity, as its suffix, are
 * left out.
 */
#include "cli/predict/predict_bids.h"

#include <config.h>
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "data/volume/volume_files.h"

#define DESCRIPTION "dataset_description.json"
enum { DESCRIPTION_LIMIT = 1 << 20 };

/* ---- names ----------------------------------------------------------------------------------- */

/* A word "key-label" of letters and digits; a label may join several by '+'. */
static bool is_entity(const char *word)
{
    size_t key = 0, label = 0;

    while (isalnum((unsigned char)word[key]))
        key++;
    if (key == 0 || word[key] != '-')
        return false;
    while (isalnum((unsigned char)word[key + 1 + label]) || word[key + 1 + label] == '+')
        label++;
    return label > 0 && word[key + 1 + label] == '\0';
}

/* The folder of an image if it is a data type of BIDS. */
static const char *data_type_of(arena *memory, const char *image)
{
    static const char *const types[] = { "anat", "dwi", "fmap", "func", "micr", "perf", "pet" };
    char *folder = arena_string(memory, image), *slash = strrchr(folder, '/');

    if (slash != NULL) {
        *slash = '\0';
        slash = strrchr(folder, '/');
        folder = slash != NULL ? slash + 1 : folder;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strcmp(folder, types[i]) == 0)
                return types[i];
    }
    return "anat";
}

pons_status predict_bids_stem(arena *memory, const char *image, const char **out, pons_error *err)
{
    const char *stem = volume_file_stem(memory, image), *visit = "", *entities = "";
    const char *subject = "";
    char *rest = NULL;

    for (char *word = strtok_r(arena_string(memory, stem), "_", &rest); word != NULL;
         word = strtok_r(NULL, "_", &rest)) {
        if (!is_entity(word))
            continue;
        if (entities[0] == '\0')
            subject = word;
        else if (visit[0] == '\0' && strncmp(word, "ses-", 4) == 0)
            visit = arena_format(memory, "/%s", word);
        entities = arena_format(memory, "%s%s%s", entities, entities[0] != '\0' ? "_" : "", word);
    }
    if (strncmp(stem, "sub-", 4) != 0 || strncmp(subject, "sub-", 4) != 0)
        return pons_fail(err, PONS_USAGE, "--bids: '%s' begins with no subject, expected a name "
                         "such as sub-01_T1w.nii.gz", image);
    *out = arena_format(memory, "%s%s/%s/%s", subject, visit, data_type_of(memory, image),
                        entities);
    return PONS_OK;
}

/* ---- description ----------------------------------------------------------------------------- */

pons_status predict_bids_check(arena *memory, const char *folder, pons_error *err)
{
    const char *path = arena_format(memory, "%s/" DESCRIPTION, folder), *type = NULL;
    json_t *root = NULL;
    char *text;
    size_t size;

    if (access(path, F_OK) != 0)
        return PONS_OK;
    if (file_read(path, DESCRIPTION_LIMIT, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    if (json_parse(text, size, path, PONS_DATA, &root, err) == PONS_OK) {
        type = json_string_value(json_object_get(root, "DatasetType"));
        if (type == NULL || strcmp(type, "derivative") != 0)
            pons_fail(err, PONS_USAGE, "--bids: '%s' is no derivative, expected its DatasetType to "
                      "be so, or another folder -o", path);
    }
    json_decref(root);
    free(text);
    return err->status;
}

static pons_status write_absent(const char *path, const char *text, pons_error *err)
{
    safe_file file;

    if (access(path, F_OK) == 0 || safe_file_open(&file, path, err) != PONS_OK)
        return err->status;
    fputs(text, file.file);
    return safe_file_commit(&file, err);
}

pons_status predict_bids_describe(arena *memory, const char *folder, pons_error *err)
{
    static const char text[] =
        "{\n    \"Name\": \"Segmentations by pons\",\n    \"BIDSVersion\": \"1.8.0\",\n"
        "    \"DatasetType\": \"derivative\",\n    \"GeneratedBy\": [\n"
        "        {\"Name\": \"pons\", \"Version\": \"" PACKAGE_VERSION "\"}\n    ]\n}\n";

    if (write_absent(arena_format(memory, "%s/" DESCRIPTION, folder), text, err) != PONS_OK)
        return err->status;
    return write_absent(arena_format(memory, "%s/.bidsignore", folder), "labels.*\n", err);
}

/* "orig" is the space of the image itself. */
pons_status predict_bids_sidecar(const char *path, int count, const label_entry *entry,
                                 pons_error *err)
{
    safe_file file;

    if (safe_file_open(&file, path, err) != PONS_OK)
        return err->status;
    fputs("{\n    \"Manual\": false,\n    \"SpatialReference\": \"orig\"", file.file);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : ",\n    \"LabelMap\": [", file.file);
        json_put_text(file.file, entry[i].name);
    }
    fputs(count > 0 ? "]\n}\n" : "\n}\n", file.file);
    return safe_file_commit(&file, err);
}
