/*
 * csv_header.c - compare the header line of a table, and set a table with other columns aside.
 */
#include "report/csv_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/aside.h"
#include "base/file/file.h"

/* A link or a FIFO is refused by the writer. */
static bool is_table(const char *path)
{
    struct stat facts;

    return lstat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0;
}

static bool begins_with(const char *path, const char *header)
{
    FILE *file = file_open_reader(path);
    char *line = NULL;
    size_t room = 0;
    bool same;

    if (file == NULL)
        return true; /* the writer reports the error */
    same = getline(&line, &room, file) > 0 ? strcmp(line, header) == 0 : ferror(file) != 0;
    free(line);
    fclose(file);
    return same;
}

pons_status csv_header_check(const char *path, const char *header, logger *l, pons_error *err)
{
    char *aside = NULL;

    if (!is_table(path) || begins_with(path, header)
        || aside_move(path, path, ".damaged", &aside, err) != PONS_OK)
        return err->status;
    log_warning(l, "'%s' does not begin with the line '%.*s': it is now '%s', and a new one begins",
                path, (int)strcspn(header, "\n"), header, aside);
    free(aside);
    return PONS_OK;
}
