/*
 * fuzz_ini.c - arbitrary bytes as an INI file. The reader refuses them with a line that names the
 * file, or fills every section of the core, which is written and read again without an error.
 */
#include "fuzz/fuzz_file.h"

#include "config/sections.h"

static pons_status read_all(const char *path, config **c, pons_error *err)
{
    sections s;

    if (config_open(path, 0, NULL, c, err) == PONS_OK && sections_fill(*c, &s, err) == PONS_OK)
        config_refuse_unknown(*c, err);
    return err->status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = NULL;
    char path[64];

    if (memmem(data, size, "include", 7) != NULL)
        return 0; /* included files are not part of the input */
    snprintf(path, sizeof path, "/tmp/pons-fuzz-%d.ini", (int)getpid());
    fuzz_write(path, data, size);
    if (read_all(path, &c, &err) == PONS_OK) {
        config *again = NULL;

        require(config_write(c, path, &err) == PONS_OK, "a configuration can be written");
        if (read_all(path, &again, &err) != PONS_OK)
            fprintf(stderr, "%s\n", err.text);
        require(err.status == PONS_OK, "what was written is read again");
        require(config_count(c) == config_count(again), "nothing is lost");
        config_close(again);
    } else {
        require(err.status == PONS_CONFIG, "a refusal has its code");
        require(strstr(err.text, "pons-fuzz") != NULL, "a refusal names the file");
    }
    config_close(c);
    unlink(path);
    return 0;
}
