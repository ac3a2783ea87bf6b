/*
 * json.c - jansson's refusals as one line of ours, and number and string output.
 *
 * Output is not jansson's: records hold nine digits a number, and escape what a terminal obeys.
 */
#include "base/file/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

pons_status json_parse(const char *text, size_t size, const char *where, pons_status kind,
                       json_t **out, pons_error *err)
{
    json_error_t cause;
    json_t *root;

    errno = 0;
    root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &cause);
    if (root != NULL) {
        *out = root;
        return PONS_OK;
    }
    /* jansson calls a token invalid for which it lacked memory; malloc has set errno. */
    if (errno == ENOMEM || cause.text[0] == '\0'
        || json_error_code(&cause) == json_error_out_of_memory)
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", where);
    return pons_fail(err, kind, "'%s': %s at line %d, column %d", where, cause.text, cause.line,
                     cause.column);
}

bool json_whole(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* 'out' has at least 32 bytes. */
static void json_format_number(char *out, double number)
{
    if (!isfinite(number)) {
        strcpy(out, "null");
        return;
    }
    snprintf(out, 32, "%.9g", number);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == ',' ? '.' : *c; /* the decimal point of a host program's locale */
}

void json_put_number(FILE *file, double number)
{
    char text[32];

    json_format_number(text, number);
    fputs(text, file);
}

/* U+0080 to U+009F in UTF-8, whose second byte is the number: a terminal obeys U+009B as ESC [. */
static bool is_wide_control(const char *c)
{
    return (unsigned char)c[0] == 0xc2 && (unsigned char)c[1] >= 0x80
           && (unsigned char)c[1] <= 0x9f;
}

void json_put_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            fprintf(file, "\\u%04x", (unsigned)*c);
        else if (is_wide_control(c))
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*++c);
        else
            fputc(*c, file);
    }
    fputc('"', file);
}
