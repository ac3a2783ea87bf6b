/*
 * fuzz_replay.c - run a fuzz target on its files in tests/corpus, without a fuzzer. The program's
 * name, replay_TARGET, selects the folder.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    uint8_t *copy;
    size_t size;

    if (!f)
        return 0;
    size = fread(data, 1, sizeof data, f);
    fclose(f);
    copy = malloc(size + 1); /* a sanitizer sees a read behind the end */
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 1;
}

int main(void)
{
    const char *source = getenv("srcdir");
    const char *target = strstr(program_invocation_short_name, "replay_");
    char folder[1024], path[2048];
    struct dirent *entry;
    int count = 0;
    DIR *files;

    if (target == NULL)
        return EXIT_FAILURE;
    snprintf(folder, sizeof folder, "%s/tests/corpus/%s", source ? source : ".",
             target + strlen("replay_"));
    files = opendir(folder);
    while (files && (entry = readdir(files)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            count += replay(path);
    }
    if (files)
        closedir(files);
    printf("%d files of %s\n", count, folder);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
