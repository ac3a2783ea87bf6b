/*
 * descriptor.h - from a verified file to a descriptor that keeps to its note.
 */
#ifndef CORE_PLUGIN_DESCRIPTOR_H
#define CORE_PLUGIN_DESCRIPTOR_H

#include "plugin/plugin_file.h"

/* Load the library, ask it for its descriptor and check that. */
pons_status descriptor_load(const verified *v, void **handle, const pons_plugin **out,
                            pons_error *err);
/*
 * The same in a child, which it may end, and whose output is dropped. A constructor runs there a
 * first time. Threads of this process may not be in the dynamic loader.
 */
pons_status descriptor_try(const verified *v, pons_error *err);

#endif
