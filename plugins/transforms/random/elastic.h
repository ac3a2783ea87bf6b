/*
 * elastic.h - the record of elastic.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_ELASTIC_H
#define PLUGINS_TRANSFORMS_RANDOM_ELASTIC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct elastic_record {
    bool wanted;
    uint64_t key;             /* key of the offsets                                               */
    double sigma, magnitude;
    double linear[3][3];      /* the maps of the steps before                                     */
} elastic_record;

#endif
