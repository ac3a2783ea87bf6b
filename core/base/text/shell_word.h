/*
 * shell_word.h - a text as one word of a command that is pasted into a POSIX shell, as hints have
 * them: "it's" becomes 'it'\''s'.
 *
 * A word that does not fit is cut and has no closing quote, so that a shell runs nothing of it. A
 * message escapes control characters, so a path that holds one cannot be pasted.
 */
#ifndef CORE_BASE_TEXT_SHELL_WORD_H
#define CORE_BASE_TEXT_SHELL_WORD_H

#include <stddef.h>

/* The word in quotes; returns 'out', of 'size' >= 1 bytes. */
const char *shell_word(char *out, size_t size, const char *text);
/* Likewise, without quotes where a shell needs none. */
const char *shell_word_bare(char *out, size_t size, const char *text);

#endif
