/*
 * signal_name.c - the names of signals, as signal(7) has them.
 */
#include "base/system/signal_name.h"

#include <signal.h>
#include <stddef.h>

const char *signal_name(int number)
{
    static const struct { int number; const char *name; } names[] = {
        { SIGKILL, "SIGKILL" }, { SIGSEGV, "SIGSEGV" }, { SIGABRT, "SIGABRT" },
        { SIGBUS, "SIGBUS" },   { SIGFPE, "SIGFPE" },   { SIGILL, "SIGILL" },
        { SIGTERM, "SIGTERM" }, { SIGINT, "SIGINT" },   { SIGHUP, "SIGHUP" },
        { SIGQUIT, "SIGQUIT" }, { SIGUSR1, "SIGUSR1" }, { SIGUSR2, "SIGUSR2" },
        { SIGPIPE, "SIGPIPE" }, { SIGTRAP, "SIGTRAP" }, { SIGSYS, "SIGSYS" },
        { SIGXCPU, "SIGXCPU" }, { SIGXFSZ, "SIGXFSZ" }, { SIGALRM, "SIGALRM" },
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == number)
            return names[i].name;
    return "a signal";
}
