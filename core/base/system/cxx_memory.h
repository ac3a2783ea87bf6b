/*
 * cxx_memory.h - a lack of memory in libraries of C++, which throw an exception that no code in C
 * can catch: oneDNN does within its kernels.
 */
#ifndef CORE_BASE_SYSTEM_CXX_MEMORY_H
#define CORE_BASE_SYSTEM_CXX_MEMORY_H

/* The process is that of a command, which a lack of memory may end. Called by its main thread. */
void cxx_memory_own_process(void);
/*
 * Called after a library was loaded. In the process of a command 'operator new' that gets no memory
 * ends it as arena_alloc does, with PONS_DEVICE and one line. Other processes are left alone.
 */
void cxx_memory_watch(void);

#endif
