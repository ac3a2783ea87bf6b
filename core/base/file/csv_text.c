/*
 * csv_text.c - quotes around cells that need them.
 */
#include "base/file/csv_text.h"

#include <string.h>

void csv_put_text(FILE *to, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"" : "", to);
        fputc(*text, to);
    }
    fputc('"', to);
}
