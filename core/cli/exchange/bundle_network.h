/*
 * bundle_network.h - weights and network of a MONAI bundle: a folder with models/model.pt and
 * configs/inference.json.
 */
#ifndef CORE_CLI_EXCHANGE_BUNDLE_NETWORK_H
#define CORE_CLI_EXCHANGE_BUNDLE_NETWORK_H

#include <pons/plugin.h>

#include "base/arena.h"

enum { BUNDLE_CHANNELS_MAX = 4096 };

/* All memory is of the arena. */
typedef struct bundle_network {
    const char *described;    /* the class that the bundle names; NULL: it names none             */
    int set_count;            /* 0: the class is none of pons', so the INI file decides           */
    const char **set;         /* "model.plugin=unet", "model.channels=16 32", ...                 */
    int channels;             /* the class's in_channels; 0: it has none                          */
} bundle_network;

/* Whether the folder has models/model.pt. */
bool bundle_network_is_there(const char *folder);
/*
 * The network is the entry 'network_def' or 'network' of the JSON file; values '@id' are looked up
 * in the file. PONS_CONFIG: an argument is an expression ('$...'), or is no option of the network's
 * plugin; PONS_DATA: the file is no JSON.
 */
pons_status bundle_network_read(const char *folder, arena *a, bundle_network *out,
                                pons_error *err);

#endif
