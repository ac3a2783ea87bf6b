/*
 * host_facts.h - the machine that a process runs on, for people who read about it later.
 */
#ifndef CORE_BASE_SYSTEM_HOST_FACTS_H
#define CORE_BASE_SYSTEM_HOST_FACTS_H

typedef struct host_facts {
    char name[65];            /* the network name                                                 */
    char processor[128];      /* "INTEL(R) XEON(R) PLATINUM 8581C"; "": the kernel does not tell  */
    int processors;           /* that are online                                                  */
    double memory;            /* bytes that are installed                                         */
} host_facts;

void host_facts_read(host_facts *out);

#endif
