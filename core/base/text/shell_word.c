/*
 * shell_word.c - quote a word. Single quotes keep every other character, and ' becomes '\''.
 */
#include "base/text/shell_word.h"

#include <stdio.h>
#include <string.h>

/* Characters that have no meaning to a shell at any position of a word. */
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
