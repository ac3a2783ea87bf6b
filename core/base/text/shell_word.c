/*
 * shell_word.c - single quotes keep every character but themselves: each of those ends the quotes,
 * stands behind a backslash and begins them again.
 */
#include "base/text/shell_word.h"

#include <stdio.h>
#include <string.h>

/* Characters that mean nothing to a shell at any place of a word. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+,./:@%="

const char *shell_word(char *out, size_t size, const char *text)
{
    size_t used = (size_t)snprintf(out, size, "'");

    for (; *text != '\0'; text++) {
        const char one[] = { *text, '\0' }, *piece = *text == '\'' ? "'\\''" : one;
        if (used + strlen(piece) >= size)
            return out;
        used += (size_t)snprintf(out + used, size - used, "%s", piece);
    }
    if (used + 1 < size)
        snprintf(out + used, size - used, "'");
    return out;
}

const char *shell_word_bare(char *out, size_t size, const char *text)
{
    size_t length = strlen(text);

    if (length == 0 || length >= size || strspn(text, PLAIN) < length)
        return shell_word(out, size, text);
    return memcpy(out, text, length + 1);
}
