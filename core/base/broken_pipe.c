/*
 * broken_pipe.c - set SIGPIPE to 'ignore' unless the process has a handler for it.
 */
#include "base/broken_pipe.h"

#include <signal.h>
#include <stddef.h>

void broken_pipe_ignore(void)
{
    struct sigaction found;

    if (sigaction(SIGPIPE, NULL, &found) == 0 && found.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}
