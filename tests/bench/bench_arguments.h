/*
 * bench_arguments.h - arguments of the programs that time kernels. An unexpected argument ends the
 * program with 2 and one line.
 */
#ifndef TESTS_BENCH_ARGUMENTS_H
#define TESTS_BENCH_ARGUMENTS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_THREADS_MOST = 1024 };

static inline const char *bench_program(char **argv)
{
    const char *slash = strrchr(argv[0], '/');

    return slash != NULL ? slash + 1 : argv[0];
}

/* Argument 'at', an integer from 'least' to 'most'; 'otherwise' if it is missing. */
static inline int bench_number(int argc, char **argv, int at, const char *what, int least,
                               int most, int otherwise)
{
    char *end = NULL;
    long n;

    if (at >= argc)
        return otherwise;
    errno = 0;
    n = strtol(argv[at], &end, 10);
    if (end == argv[at] || *end != '\0' || errno != 0 || n < least || n > most) {
        fprintf(stderr, "%s: %s is '%s', expected a whole number from %d to %d\n",
                bench_program(argv), what, argv[at], least, most);
        exit(2);
    }
    return (int)n;
}

/* Refuse more than 'most' arguments. */
static inline void bench_no_more(int argc, char **argv, int most)
{
    if (argc - 1 > most) {
        fprintf(stderr, "%s: '%s' is one argument too many\n", bench_program(argv), argv[most + 1]);
        exit(2);
    }
}

/* Refuse an unknown name. */
static inline void bench_refuse_name(char **argv, const char *what, const char *name)
{
    fprintf(stderr, "%s: no %s '%s'\n", bench_program(argv), what, name);
    exit(2);
}

#endif
