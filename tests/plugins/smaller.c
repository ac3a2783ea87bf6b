/*
 * smaller.c - preloaded: oneDNN sees a processor with AVX2 as its highest instruction set, and uses
 * other kernels. The answer stands here because pons clears the library's environment variables.
 */
#include <stdlib.h>
#include <string.h>

extern char **environ;

char *getenv(const char *name)
{
    static char most[] = "AVX2";
    size_t size = strlen(name);

    if (strcmp(name, "ONEDNN_MAX_CPU_ISA") == 0)
        return most;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, size) == 0 && (*entry)[size] == '=')
            return *entry + size + 1;
    return NULL;
}
