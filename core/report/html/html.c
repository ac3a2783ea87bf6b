/*
 * html.c - escape texts, and write numbers and bytes as text.
 */
#include "report/html/html.h"

#include <math.h>
#include <stdint.h>

void html_put_text(FILE *to, const char *text)
{
    static const char *const reference[256] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;"
    };

    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (reference[*c] != NULL)
            fputs(reference[*c], to);
        else if ((*c < 32 && *c != '\t' && *c != '\n') || *c == 127)
            fputs("&#xFFFD;", to);
        else
            putc(*c, to);
}

void html_put_number(FILE *to, double value, int digits)
{
    if (isnan(value))
        fputc('-', to);
    else
        fprintf(to, "%.*g", digits, value);
}

void html_put_base64(FILE *to, const void *data, size_t size)
{
    static const char letter[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *byte = data;

    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t bits = (uint32_t)byte[i] << 16 | (left > 1 ? (uint32_t)byte[i + 1] << 8 : 0)
                      | (left > 2 ? byte[i + 2] : 0);

        putc(letter[bits >> 18], to);
        putc(letter[bits >> 12 & 63], to);
        putc(left > 1 ? letter[bits >> 6 & 63] : '=', to);
        putc(left > 2 ? letter[bits & 63] : '=', to);
    }
}
