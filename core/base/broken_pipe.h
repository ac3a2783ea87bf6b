/*
 * broken_pipe.h - a process that goes on where nobody reads what it writes.
 */
#ifndef CORE_BASE_BROKEN_PIPE_H
#define CORE_BASE_BROKEN_PIPE_H

/*
 * A write to a pipe or a connection that is closed at the other end fails with EPIPE from here on;
 * by default SIGPIPE ends the process. A handler that is set stays. Inherited by programs that are
 * started.
 */
void broken_pipe_ignore(void);

#endif
