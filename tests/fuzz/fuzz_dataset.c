/*
 * fuzz_dataset.c - arbitrary bytes as a dataset.json. The reader refuses them with one line, or
 * returns a sorted manifest whose classes and cases satisfy the assumptions of the rest of the
 * program.
 */
#include "fuzz/fuzz_file.h"

#include "data/dataset/dataset.h"

static void require_sound(const dataset *d)
{
    require(d->case_count > 0, "there are cases");
    require(d->training_count + d->validation_count <= d->case_count, "a split has no more cases");
    require(d->class_count >= 2 || d->region_count > 0, "there are classes");
    for (int i = 0; i < d->case_count; i++) {
        require(d->cases[i].rank == i, "ranks count up");
        require(i == 0 || strcmp(d->cases[i - 1].id, d->cases[i].id) < 0, "cases are sorted");
        require(d->cases[i].image_count > 0, "a case has an image");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    dataset *d = NULL;
    char folder[64], path[96];
    dataset_settings settings = { .source = folder, .validation = "last:1" };

    snprintf(folder, sizeof folder, "/tmp/pons-fuzz-%d", (int)getpid());
    snprintf(path, sizeof path, "%s/dataset.json", folder);
    mkdir(folder, 0755);
    fuzz_write(path, data, size);
    if (dataset_open(&settings, &d, &err) == PONS_OK) {
        require_sound(d);
        dataset_close(d);
    } else {
        require(err.status == PONS_DATA || err.status == PONS_CONFIG, "a refusal has its code");
        require(err.text[0] != '\0', "a refusal says something");
    }
    unlink(path);
    rmdir(folder);
    return 0;
}
