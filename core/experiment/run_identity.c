/*
 * run_identity.c - draw and compare the identity of a run, 32 random hexadecimal digits.
 *
 * It is a member of the manifest and a comment at the top of resolved.ini.
 */
#include "experiment/run_identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/file/file.h"
#include "checkpoint/checkpoint.h"

/* Without random numbers the run has no identity, which is allowed. */
void run_identity_draw(char out[RUN_IDENTITY_SIZE])
{
    unsigned char byte[RUN_IDENTITY_SIZE / 2];

    out[0] = '\0';
    if (getrandom(byte, sizeof byte, 0) != (ssize_t)sizeof byte)
        return;
    for (size_t i = 0; i < sizeof byte; i++)
        snprintf(out + 2 * i, 3, "%02x", byte[i]);
}

pons_status run_identity_read(const char *checkpoint, char out[RUN_IDENTITY_SIZE],
                              pons_error *err)
{
    json_t *manifest;
    const json_t *run;

    out[0] = '\0';
    if (checkpoint_manifest(checkpoint, &manifest, err) != PONS_OK)
        return err->status;
    run = json_object_get(manifest, CHECKPOINT_RUN);
    if (run != NULL && (!json_is_string(run) || json_string_length(run) >= RUN_IDENTITY_SIZE))
        pons_fail(err, PONS_DATA, "'%s/manifest.json': '" CHECKPOINT_RUN "' is no run's identity",
                  checkpoint);
    else if (run != NULL)
        strcpy(out, json_string_value(run));
    json_decref(manifest);
    return err->status;
}

/* Read the identity from the comments before the first section. */
static void find_in_file(const char *path, char out[RUN_IDENTITY_SIZE])
{
    FILE *file = file_open_reader(path);
    char *line = NULL;
    size_t room = 0;

    out[0] = '\0';
    while (file != NULL && out[0] == '\0' && getline(&line, &room, file) > 0 && line[0] != '[')
        sscanf(line, "; run %32[0-9a-f]\n", out);
    free(line);
    if (file != NULL)
        fclose(file);
}

pons_status run_identity_check(const char *checkpoint, const char *path, pons_error *err)
{
    char expected[RUN_IDENTITY_SIZE], found[RUN_IDENTITY_SIZE];

    if (run_identity_read(checkpoint, expected, err) != PONS_OK)
        return err->status;
    find_in_file(path, found);
    if (expected[0] != '\0' && found[0] != '\0' && strcmp(expected, found) != 0)
        return pons_fail(err, PONS_DATA, "'%s' is another run's file: run %.8s..., expected "
                         "%.8s...", path, found, expected);
    return PONS_OK;
}
