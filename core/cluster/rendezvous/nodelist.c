/*
 * nodelist.c - parse SLURM's short lists, as far as the rendezvous of a run needs them.
 */
#include "cluster/rendezvous/nodelist.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/*
 * Append the first number of a range: "003" of "[003-006,9]". Returns the end of the range, or
 * NULL.
 */
static const char *first_of_range(const char *at, char **out, const char *end)
{
    const char *close = strchr(at, ']');
    size_t digits = strspn(at + 1, "0123456789");

    if (close == NULL || digits == 0 || strspn(at + 1, "0123456789-,") != (size_t)(close - at - 1)
        || digits >= (size_t)(end - *out))
        return NULL;
    memcpy(*out, at + 1, digits);
    *out += digits;
    return close + 1;
}

bool nodelist_first(const char *list, char *out, size_t size)
{
    const char *at = list;
    char *to = out;

    while (*at != '\0' && *at != ',') {
        if (*at == '[') {
            at = first_of_range(at, &to, out + size);
            if (at == NULL)
                return false;
        } else if (is_of_name(*at) && to < out + size - 1) {
            *to++ = *at++;
        } else {
            return false;
        }
    }
    *to = '\0';
    return to > out;
}

/* Read a number of 1 .. 65536; 0 if there is none. */
static int number_at(const char **at)
{
    char *end;
    long n = isdigit((unsigned char)**at) ? strtol(*at, &end, 10) : 0;

    if (n < 1 || n > 65536)
        return 0;
    *at = end;
    return (int)n;
}

int nodelist_tasks(const char *list, int node)
{
    for (const char *at = list; ; at++) {
        int tasks = number_at(&at), nodes = 1;
        if (tasks == 0)
            return 0;
        if (strncmp(at, "(x", 2) == 0) {
            at += 2;
            nodes = number_at(&at);
            if (nodes == 0 || *at++ != ')')
                return 0;
        }
        if (node < nodes)
            return tasks;
        node -= nodes;
        if (*at != ',')
            return 0;
    }
}
