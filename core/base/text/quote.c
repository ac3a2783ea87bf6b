/*
 * quote.c - escape the control characters of a formatted text that come from an argument.
 *
 * A line break comes from the format if the format's text before it formats to as many bytes.
 */
#include "base/text/quote.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT_MAX = 1024, BREAKS_MAX = 16, LINE_MAX_SIZE = 8192 };

/* Offsets in the formatted text. */
typedef struct own_breaks {
    int count;
    size_t at[BREAKS_MAX];
    size_t message; /* begin of a final '%s'; SIZE_MAX: none                                      */
} own_breaks;

/* Size of the formatted first 'size' bytes of 'format'. */
static size_t formatted_size(const char *format, size_t size, va_list list)
{
    char part[FORMAT_MAX];
    va_list copy;
    int length;

    if (size >= sizeof part)
        return SIZE_MAX;
    memcpy(part, format, size);
    part[size] = '\0';
    va_copy(copy, list);
    length = vsnprintf(NULL, 0, part, copy);
    va_end(copy);
    return length < 0 ? SIZE_MAX : (size_t)length;
}

static own_breaks find_breaks(const char *format, va_list list)
{
    own_breaks b = { .message = SIZE_MAX };
    size_t size = strlen(format);

    for (const char *at = strchr(format, '\n'); at != NULL && b.count < BREAKS_MAX;
         at = strchr(at + 1, '\n'))
        b.at[b.count++] = formatted_size(format, (size_t)(at - format), list);
    if (size >= 2 && strcmp(format + size - 2, "%s") == 0)
        b.message = formatted_size(format, size - 2, list);
    return b;
}

static bool is_own_break(const own_breaks *b, size_t place)
{
    if (place >= b->message)
        return true;
    for (int i = 0; i < b->count; i++)
        if (b->at[i] == place)
            return true;
    return false;
}

/* Bytes of the control character at 'text'; 0: it is none. U+0080 to U+009F have two in UTF-8. */
static int control_size(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    if (c[0] < 0x20 || c[0] == 0x7f)
        return 1;
    return c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f ? 2 : 0;
}

/* Write the escape sequence of the control character at 'text' and return its size. */
static size_t put_escape(char out[16], const char *text, int size)
{
    static const char names[] = "\n\t\r", letters[] = "ntr";
    const char *name = memchr(names, text[0], sizeof names - 1);

    if (name != NULL)
        return (size_t)snprintf(out, 16, "\\%c", letters[name - names]);
    if (size == 1)
        return (size_t)snprintf(out, 16, "\\x%02x", (unsigned char)text[0]);
    return (size_t)snprintf(out, 16, "\\x%02x\\x%02x", (unsigned char)text[0],
                            (unsigned char)text[1]);
}

static void escape_text(char *out, size_t size, const char *text, const own_breaks *own)
{
    size_t used = 0;

    for (const char *at = text; *at != '\0';) {
        char piece[16] = { *at };
        int control = *at == '\n' && is_own_break(own, (size_t)(at - text)) ? 0 : control_size(at);
        size_t piece_size = control > 0 ? put_escape(piece, at, control) : 1;
        if (used + piece_size >= size)
            break;
        memcpy(out + used, piece, piece_size);
        used += piece_size;
        at += control > 0 ? control : 1;
    }
    out[used] = '\0';
}

void quote_format(char *out, size_t size, const char *format, va_list list)
{
    own_breaks own = find_breaks(format, list);
    char text[LINE_MAX_SIZE];

    vsnprintf(text, sizeof text, format, list);
    escape_text(out, size, text, &own);
}

void quote_message(char *out, size_t size, const char *text)
{
    const own_breaks own = { .message = 0 };

    escape_text(out, size, text, &own);
}

void quote_print(FILE *to, const char *format, ...)
{
    own_breaks own;
    char *text = NULL, *quoted;
    size_t room;
    va_list list;
    int size;

    va_start(list, format);
    own = find_breaks(format, list);
    size = vasprintf(&text, format, list);
    va_end(list);
    if (size < 0) {
        fputs("(out of memory)\n", to);
        return;
    }
    room = 4 * (size_t)size + 1; /* an escape has at most four characters a byte */
    quoted = malloc(room);
    if (quoted != NULL)
        escape_text(quoted, room, text, &own);
    fputs(quoted != NULL ? quoted : "(out of memory)\n", to);
    free(quoted);
    free(text);
}
