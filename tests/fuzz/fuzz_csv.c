/*
 * fuzz_csv.c - arbitrary bytes as a table of cases. The reader refuses them with one line, or
 * returns sorted cases that have their images.
 */
#include "fuzz/fuzz_file.h"

#include "data/dataset/dataset.h"

static void require_sound(const dataset *d)
{
    require(d->channels > 0, "there are channels");
    require(d->case_count > 0 || d->problem_count > 0, "there are cases or problems");
    for (int i = 0; i < d->case_count; i++) {
        require(d->cases[i].rank == i, "ranks count up");
        require(i == 0 || strcmp(d->cases[i - 1].id, d->cases[i].id) < 0, "cases are sorted");
        require(d->cases[i].image_count > 0, "a case has an image");
        require(d->cases[i].image[0][0] != '\0', "an image has a path");
    }
    for (int i = 0; i < d->problem_count; i++)
        require(d->problem[i].text[0] != '\0', "a problem says something");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const labels[] = { "background:0", "spleen:1" };
    char path[96];

    snprintf(path, sizeof path, "/tmp/pons-fuzz-%d.csv", (int)getpid());
    fuzz_write(path, data, size);
    for (int keep = 0; keep < 2; keep++) {
        pons_error err = PONS_ERROR_INIT;
        dataset *d = NULL;
        const dataset_settings settings = { .source = path, .layout = "csv",
                                            .labels = { 2, labels }, .keep_problems = keep };
        if (dataset_open(&settings, &d, &err) == PONS_OK) {
            if (d->case_count > 0)
                require_sound(d);
            dataset_close(d);
        } else {
            require(err.status == PONS_DATA || err.status == PONS_CONFIG, "a refusal has its code");
            require(err.text[0] != '\0', "a refusal says something");
        }
    }
    unlink(path);
    return 0;
}
