/*
 * file_kind.c - the table of file formats. Only files that a reader has refused are looked up here,
 * so the shortest magic number of a format is enough.
 */
#include "base/file/file_kind.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "base/text/shell_word.h"
#include "base/text/text.h"

enum { MARK_SIZE_MAX = 16, SOUGHT_SIZE = 200, HEAD_SIZE = 512 };

/* Conversion commands; put_paths appends the two paths. */
#define FROM_PYTORCH "pons import WEIGHTS -o OUT.safetensors --config FILE.ini converts it"
#define FROM_NUMPY "python3 -c 'import sys, numpy, safetensors.numpy as s; " \
    "s.save_file(dict(numpy.load(sys.argv[1])), sys.argv[2])'"
#define FROM_ONNX "python3 -c 'import sys, onnx.numpy_helper as n, safetensors.numpy as s; " \
    "s.save_file({t.name: n.to_array(t) for t in n.onnx.load(sys.argv[1]).graph.initializer}, " \
    "sys.argv[2])'"
#define FROM_ITK "python3 -c 'import sys, SimpleITK as s; " \
    "s.WriteImage(s.ReadImage(sys.argv[1]), sys.argv[2])'"
#define WEB_PAGE "a web page was saved in place of the file; it may need a login to be downloaded"
#define MINC "a MINC volume is converted by: mnc2nii"
#define NAMED "the name of a picture ends in .png, .jpg, .jpeg, .tif or .tiff"
#define DICOM { "a DICOM file", \
    VOLUME("all slices of a folder are converted by: dcm2niix -z y", "/") }
#define WEIGHTS(...) .advice[FILE_WEIGHTS] = { __VA_ARGS__ }
#define VOLUME(...) .advice[FILE_VOLUME] = { __VA_ARGS__ }
#define PIXELS(...) .advice[FILE_PICTURE] = { __VA_ARGS__ }

static const struct row {
    size_t offset, size;
    char mark[MARK_SIZE_MAX];
    const char *sought;                     /* text among the first bytes; NULL: any              */
    file_kind kind;
} rows[] = {
    { 0, 4, "PK\3\4", "data.pkl",
      { "a PyTorch file", WEIGHTS(FROM_PYTORCH) } },
    { 0, 4, "PK\3\4", ".npy", { "an .npz file of NumPy", WEIGHTS(FROM_NUMPY, ".safetensors") } },
    { 0, 4, "PK\3\4", NULL, { .name = "a zip archive" } },
    { 0, 14, "\x80\2\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", NULL,
      { "a PyTorch file (of a version before 1.6)", WEIGHTS(FROM_PYTORCH) } },
    { 0, 2, "\x80\2", NULL, { .name = "a Python pickle" } },
    { 0, 2, "\x80\3", NULL, { .name = "a Python pickle" } },
    { 0, 2, "\x80\4", NULL, { .name = "a Python pickle" } },
    { 0, 2, "\x80\5", NULL, { .name = "a Python pickle" } },
    { 0, 6, "\x93NUMPY", NULL, { .name = "a NumPy array" } },
    { 0, 8, "\x89HDF\r\n\x1a\n", NULL,
      { "an HDF5 file", WEIGHTS("h5py reads it, safetensors.numpy.save_file writes its arrays"),
        VOLUME(MINC, ".nii") } },
    { 0, 4, "CDF\1", NULL, { "a NetCDF file, as MINC 1 is", VOLUME(MINC, ".nii") } },
    { 0, 4, "CDF\2", NULL, { "a NetCDF file, as MINC 1 is", VOLUME(MINC, ".nii") } },
    { 0, 4, "NRRD", NULL, { "an NRRD volume", VOLUME(FROM_ITK, ".nii.gz") } },
    { 0, 10, "ObjectType", NULL, { "a MetaImage (.mha, .mhd)", VOLUME(FROM_ITK, ".nii.gz") } },
    { 0, 5, "NDims", NULL, { "a MetaImage (.mha, .mhd)", VOLUME(FROM_ITK, ".nii.gz") } },
    { 0, 9, "Comment =", NULL, { "a MetaImage (.mha, .mhd)", VOLUME(FROM_ITK, ".nii.gz") } },
    { 128, 4, "DICM", NULL, DICOM },
    { 0, 5, "\0\0\0\1\0", NULL, { "an MGH volume (.mgh, .mgz)",
                                  VOLUME("mri_convert", ".nii.gz"), .packable = true } },
    { 0, 8, "\x89PNG\r\n\x1a\n", NULL, { "a PNG picture", VOLUME(NAMED) } },
    { 0, 3, "\xff\xd8\xff", NULL, { "a JPEG picture", VOLUME(NAMED) } },
    { 0, 4, "II*\0", NULL, { "a TIFF picture", VOLUME(NAMED) } },
    { 0, 4, "MM\0*", NULL, { "a TIFF picture", VOLUME(NAMED) } },
    { 257, 5, "ustar", NULL, { .name = "a tar archive" } },
    { 0, 4, "\x5c\1\0\0", NULL, { .name = "a NIfTI volume" } },
    { 0, 4, "\0\0\1\x5c", NULL, { .name = "a NIfTI volume" } },
    { 0, 4, "\x1c\2\0\0", NULL, { .name = "a NIfTI volume" } },
    { 8, 2, "{\"", NULL, { .name = "a safetensors file" } },
    /* DICOM without a preamble: the first element is of group 0002 or 0008. */
    { 0, 8, "\2\0\0\0UL\4\0", NULL, DICOM },
    { 0, 8, "\x08\0\0\0\4\0\0\0", NULL, DICOM },
    { 0, 8, "\x08\0\0\0UL\4\0", NULL, DICOM },
    { 0, 4, "\x08\0\1\0", NULL, DICOM },
    { 0, 4, "\x08\0\5\0", NULL, DICOM },
    { 0, 4, "\x08\0\x08\0", NULL, DICOM },
    { 0, 4, "\x08\0\x12\0", NULL, DICOM },
    { 0, 4, "\x08\0\x16\0", NULL, DICOM },
    { 0, 1, "\x08", "pytorch", { "an ONNX file", WEIGHTS(FROM_ONNX, ".safetensors") } },
    { 0, 1, "\x08", "onnx", { "an ONNX file", WEIGHTS(FROM_ONNX, ".safetensors") } },
    { 0, 1, "<", "html", { "an HTML page", WEIGHTS(WEB_PAGE), VOLUME(WEB_PAGE) } },
    { 0, 1, "<", "HTML", { "an HTML page", WEIGHTS(WEB_PAGE), VOLUME(WEB_PAGE) } },
    { 0, 0, "", "<html", { "an HTML page", WEIGHTS(WEB_PAGE), VOLUME(WEB_PAGE) } },
    { 0, 5, "<?xml", NULL, { .name = "an XML file" } },
    { 0, 8, "version ", "git-lfs",
      { "a pointer of Git LFS", WEIGHTS("git lfs pull"), VOLUME("git lfs pull"),
        PIXELS("git lfs pull") } },
    { 0, 1, "{", NULL, { .name = "a JSON file" } },
    { 0, 2, "\x1f\x8b", NULL, { "gzip", WEIGHTS("what it holds is unpacked by gzip -d") } },
};

size_t file_kind_ending(const char *name, file_use use)
{
    static const char *const endings[FILE_USE_COUNT][12] = {
        [FILE_WEIGHTS] = { ".safetensors" }, [FILE_VOLUME] = { ".nii", ".nii.gz" },
        [FILE_PICTURE] = { ".png", ".jpg", ".jpeg", ".tif", ".tiff" },
        [FILE_SLIDE] = { ".tif", ".tiff", ".svs", ".ndpi", ".vms", ".vmu", ".scn", ".mrxs",
                         ".svslide", ".bif" }
    };
    bool folds = use == FILE_PICTURE || use == FILE_SLIDE;
    size_t size = strlen(name);

    for (const char *const *ending = endings[use]; *ending != NULL; ending++) {
        size_t count = strlen(*ending);
        const char *end = name + size - count;
        if (size > count && (folds ? strcasecmp(end, *ending) : strcmp(end, *ending)) == 0)
            return count;
    }
    return 0;
}

static bool has_mark(const struct row *r, const char *bytes, size_t size)
{
    if (size < r->offset + r->size || memcmp(bytes + r->offset, r->mark, r->size) != 0)
        return false;
    return r->sought == NULL || memmem(bytes, min_size(size, SOUGHT_SIZE), r->sought,
                                       strlen(r->sought)) != NULL;
}

const file_kind *file_kind_find(const void *bytes, size_t size)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has_mark(&rows[i], bytes, size))
            return &rows[i].kind;
    return NULL;
}

bool file_kind_is_text(const void *bytes, size_t size)
{
    const unsigned char *c = bytes;

    for (size_t i = 0; i < size; i++)
        if ((c[i] < 0x20 && memchr("\t\n\r\f", c[i], 4) == NULL) || c[i] == 0x7f)
            return false;
    return size > 0;
}

/* Size of the folder part of a path, with its slash. */
static size_t folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash + 1 - path) : 0;
}

/* Size of a path without its ending: "a/scan" of "a/scan.nii.gz". */
static size_t stem_size(const char *path)
{
    size_t size = strlen(path);

    if (text_ends_with(path, ".gz"))
        size -= 3;
    for (size_t end = size; end > folder_size(path) + 1; end--)
        if (path[end - 1] == '.')
            return end - 1;
    return size;
}

/* The path with another ending, or with '-converted' before it where that is the path itself. */
static void other_path(const char *path, const char *ending, char *out, size_t size)
{
    snprintf(out, size, "%.*s%s", (int)stem_size(path), path, ending);
    if (strcmp(out, path) == 0)
        snprintf(out, size, "%.*s-converted%s", (int)stem_size(path), path, ending);
}

/* Append arguments of the command: the folder, or the path and the path of a new file. */
static void put_paths(const char *path, const char *paths, char *out, size_t size)
{
    char other[PATH_MAX], word[2][PATH_MAX];

    if (strcmp(paths, "/") == 0) {
        snprintf(other, sizeof other, "%.*s.", (int)folder_size(path), path);
        snprintf(out, size, " %s", shell_word(word[0], sizeof word[0], other));
        return;
    }
    other_path(path, paths, other, sizeof other);
    snprintf(out, size, " %s %s", shell_word(word[0], sizeof word[0], path),
             shell_word(word[1], sizeof word[1], other));
}

pons_status file_kind_refuse(const file_kind *k, const char *path, const char *packed,
                             file_use use, pons_error *err)
{
    static const char *const expected[] = { [FILE_WEIGHTS] = FILE_WEIGHTS_NAME,
                                            [FILE_VOLUME] = "NIfTI (.nii, .nii.gz)",
                                            [FILE_PICTURE] = "a PNG, JPEG or TIFF picture",
                                            [FILE_SLIDE] = "a whole-slide image" };
    static const struct file_advice none;
    const struct file_advice *advice = *packed == '\0' || k->packable ? &k->advice[use] : &none;
    char paths[sizeof err->text / 2] = "";

    if (advice->paths != NULL)
        put_paths(path, advice->paths, paths, sizeof paths);
    if (advice->text == NULL)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is %s%s, expected %.100s", path,
                         packed, k->name, expected[use]);
    return pons_fail(err, PONS_DATA, "cannot read '%s': it is %s%s, expected %s\nhint: %s%.1000s",
                     path, packed, k->name, expected[use], advice->text, paths);
}

/* The format of a regular file; NULL if it cannot be read or is unknown. */
static const file_kind *kind_of(const char *path)
{
    FILE *f = file_open_reader(path);
    char bytes[HEAD_SIZE];
    size_t size;

    if (f == NULL)
        return NULL;
    size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return file_kind_find(bytes, size);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/*
 * The format and path of the first convertible file; NULL if there is none or one is as expected.
 */
static const file_kind *kind_in(const char *folder, struct dirent **entry, int count, file_use use,
                                char *out)
{
    const file_kind *found = NULL;
    char path[PATH_MAX];

    for (int i = 0; i < count; i++) {
        const file_kind *k = NULL;

        if (file_kind_ending(entry[i]->d_name, use) > 0)
            return NULL;
        if (found == NULL
            && snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name) < PATH_MAX)
            k = kind_of(path);
        if (k != NULL && k->advice[use].paths != NULL) {
            found = k;
            memcpy(out, path, sizeof path);
        }
    }
    return found;
}

pons_status file_kind_refuse_folder(const char *folder, file_use use, pons_error *err)
{
    struct dirent **entry = NULL;
    int count = scandir(folder, &entry, is_shown, alphasort);
    char path[PATH_MAX];
    const file_kind *k = kind_in(folder, entry, count, use, path);

    for (int i = 0; i < count; i++)
        free(entry[i]);
    free(entry);
    return k != NULL ? file_kind_refuse(k, path, "", use, err) : PONS_OK;
}
