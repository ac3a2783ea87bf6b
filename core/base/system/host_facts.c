/*
 * host_facts.c - see host_facts.h.
 */
#include "base/system/host_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The "model name" of /proc/cpuinfo, which not every architecture has. */
static void read_processor(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char *line = NULL, *value;
    size_t room = 0;

    while (file != NULL && out[0] == '\0' && getline(&line, &room, file) > 0)
        if (strncmp(line, "model name", 10) == 0 && (value = strchr(line, ':')) != NULL) {
            value += 1 + strspn(value + 1, " \t");
            snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        }
    free(line);
    if (file != NULL)
        fclose(file);
}

void host_facts_read(host_facts *out)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    memset(out, 0, sizeof *out);
    gethostname(out->name, sizeof out->name - 1);
    read_processor(out->processor, sizeof out->processor);
    out->processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    out->memory = pages > 0 && page > 0 ? (double)pages * (double)page : 0;
}
