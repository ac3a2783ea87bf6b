/*
 * export_folder.h - the parts that exported folders of all programs have: a network's state
 * dictionary, JSON, and files that are written once all of them are made.
 */
#ifndef CORE_CLI_EXCHANGE_EXPORT_FOLDER_H
#define CORE_CLI_EXCHANGE_EXPORT_FOLDER_H

#include "base/arena.h"
#include "base/file/json.h"
#include "checkpoint/torch/torch_value.h"
#include "infer/predict.h"

/* A file of the folder; one of json, torch and text is given. */
typedef struct export_file {
    const char *name;           /* "configs/metadata.json"                                        */
    const json_t *json;
    const torch_value *torch;
    const char *text;
} export_file;

/* PONS_USAGE: there is something at 'folder', which would be overwritten. */
pons_status export_folder_check(const char *folder, pons_error *err);
/* Write all files; after an error none is left. 'l' shows the progress of large ones. */
pons_status export_folder_write(const char *folder, int count, const export_file *file, logger *l,
                                pons_error *err);

/* Parameters and states of a network as a dictionary of tensors, in the arena; NULL: failed. */
torch_value *export_state(const predictor *p, arena *memory, pons_error *err);
/* The same value, in the arena. */
torch_value *export_value(const json_t *json, arena *memory);
/* A tensor of float32 or int64 in C order with a copy of its elements, in the arena. */
torch_value *export_tensor(const safetensor *t, const void *data, arena *memory);
/* Append a pair to a dictionary. */
void export_put(torch_value *dictionary, const char *key, torch_value *value, arena *memory);

/*
 * Refuse an option that the other program cannot have, naming its section, key and value.
 * PONS_CONFIG.
 */
pons_status export_refuse(const char *section, const char *key, const json_t *found,
                          const char *expected, pons_error *err);
/* Compare an option with the only value that the other program has; NULL: its default, in text. */
pons_status export_expect(const char *section, const json_t *options, const char *key,
                          const char *expected, const char *program, pons_error *err);

#endif
