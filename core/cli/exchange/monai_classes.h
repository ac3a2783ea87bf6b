/*
 * monai_classes.h - MONAI's classes of networks and the model plugins that are the same networks.
 */
#ifndef CORE_CLI_EXCHANGE_MONAI_CLASSES_H
#define CORE_CLI_EXCHANGE_MONAI_CLASSES_H

/* The plugin of "monai.networks.nets.UNet" or "UNet"; NULL: none. */
const char *monai_class_plugin(const char *target);
/* The class of a plugin, without a module; NULL: none. */
const char *monai_class_of(const char *plugin);

#endif
