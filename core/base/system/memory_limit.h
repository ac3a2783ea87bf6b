/*
 * memory_limit.h - the most memory that the system would ever give this process, and what it has.
 */
#ifndef CORE_BASE_SYSTEM_MEMORY_LIMIT_H
#define CORE_BASE_SYSTEM_MEMORY_LIMIT_H

/*
 * Bytes: the machine's memory, or the limit of a control group (container, batch job) below it,
 * plus swap. 0: unknown.
 */
double memory_limit_bytes(void);
/* Resident bytes of this process; 0: unknown. */
double memory_resident_bytes(void);
/* The most resident bytes that this process has had; 0: unknown. */
double memory_peak_bytes(void);

#endif
