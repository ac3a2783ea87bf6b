/*
 * csv_text.c - quotes around cells that need them, and numbers that are not finite.
 */
#include "base/file/csv_text.h"

#include <math.h>
#include <string.h>

#include "base/file/json.h"

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

void csv_put_number(FILE *to, double number)
{
    if (isinf(number))
        fputs(number < 0 ? "-inf" : "inf", to);
    else if (!isnan(number))
        json_put_number(to, number);
}
