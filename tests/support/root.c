/*
 * root.c - see root.h.
 */
#include "support/root.h"

#include <stdarg.h>

char root[64];

void make_root(void)
{
    const char *folder = getenv("TMPDIR");

    if (folder == NULL || strlen(folder) > 32)
        folder = "/tmp";
    snprintf(root, sizeof root, "%s/check-pons-XXXXXX", folder);
    ck_assert_ptr_nonnull(mkdtemp(root));
}

void remove_root(void)
{
    char command[160];

    snprintf(command, sizeof command, "chmod -R u+w '%s'; rm -rf '%s'", root, root);
    ck_assert_int_eq(system(command), 0);
}

void shell(const char *format, ...)
{
    char text[6000], command[6400];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    snprintf(command, sizeof command, "cd %s && %s", root, text);
    ck_assert_msg(system(command) == 0, "%s", text);
}

const char *in_root(const char *name)
{
    static char paths[16][512];
    static int count;
    char *path = paths[count++ % 16];

    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_root(name), "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}
