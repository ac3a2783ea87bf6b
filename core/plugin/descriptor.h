/*
 * descriptor.h - load a verified file and check its descriptor against its note.
 */
#ifndef CORE_PLUGIN_DESCRIPTOR_H
#define CORE_PLUGIN_DESCRIPTOR_H

#include "plugin/plugin_file.h"

/* Load the library, call its entry function and check the descriptor. */
pons_status descriptor_load(const verified *v, void **handle, const pons_plugin **out,
                            pons_error *err);
/*
 * The same in a child process, which a bad file may end and whose output is dropped. Constructors
 * run there too. No other thread of this process may be inside the dynamic loader, because the
 * child inherits its locks.
 */
pons_status descriptor_try(const verified *v, pons_error *err);

#endif
