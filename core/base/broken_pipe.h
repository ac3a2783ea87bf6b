/*
 * broken_pipe.h - survive a pipe or connection whose reader has gone.
 */
#ifndef CORE_BASE_BROKEN_PIPE_H
#define CORE_BASE_BROKEN_PIPE_H

/*
 * Make writes to a closed pipe or connection fail with EPIPE; by default SIGPIPE ends the process.
 * An existing handler stays. Programs that this process starts inherit the setting.
 */
void broken_pipe_ignore(void);

#endif
