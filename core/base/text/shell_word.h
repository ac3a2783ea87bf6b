/*
 * shell_word.h - quote a text as one word of a POSIX shell command, for commands in hints: "it's"
 * becomes 'it'\''s'.
 *
 * A word that does not fit is cut and lacks its closing quote, so that a shell runs nothing.
 * Messages escape control characters, so a path with such a character cannot be pasted.
 */
#ifndef CORE_BASE_TEXT_SHELL_WORD_H
#define CORE_BASE_TEXT_SHELL_WORD_H

#include <stddef.h>

/* The text in quotes. Returns 'out', of 'size' >= 1 bytes. */
const char *shell_word(char *out, size_t size, const char *text);
/* The same, but without quotes where a shell needs none. */
const char *shell_word_bare(char *out, size_t size, const char *text);

#endif
