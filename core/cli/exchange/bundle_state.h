/*
 * bundle_state.h - tensors of MONAI's state dictionaries beside those of a network in pons.
 */
#ifndef CORE_CLI_EXCHANGE_BUNDLE_STATE_H
#define CORE_CLI_EXCHANGE_BUNDLE_STATE_H

#include "base/arena.h"
#include "base/file/json.h"
#include "checkpoint/torch/torch_value.h"

/*
 * Append what load_state_dict of the class in 'network' (its name and arguments) asks for: second
 * names of tensors, which share their elements, and constants.
 */
void bundle_state_complete(torch_value *state, const json_t *network, arena *memory);

#endif
