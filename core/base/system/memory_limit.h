/*
 * memory_limit.h - how much memory the system would ever give to this process.
 */
#ifndef CORE_BASE_SYSTEM_MEMORY_LIMIT_H
#define CORE_BASE_SYSTEM_MEMORY_LIMIT_H

/*
 * Bytes: the machine's memory, or less where a control group (a container, a batch job) has a
 * limit, and what can be swapped out. 0: it is not known.
 */
double room_of_process(void);

#endif
