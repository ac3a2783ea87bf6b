/*
 * monai_classes.c - the table of classes. The first name of a plugin is the one that is written.
 */
#include "cli/exchange/monai_classes.h"

#include <stddef.h>
#include <string.h>

#define NETWORKS "monai.networks.nets."

static const struct { const char *target, *plugin; } classes[] = {
    { "UNet", "unet" }, { "Unet", "unet" }, { "SegResNet", "segresnet" }, { "DynUNet", "dynunet" },
    { "DynUnet", "dynunet" }, { "BasicUNet", "basicunet" }, { "BasicUnet", "basicunet" },
    { "VNet", "vnet" }, { "AttentionUnet", "attention_unet" }, { "SwinUNETR", "swin_unetr" }
};

enum { CLASSES = sizeof classes / sizeof classes[0] };

const char *monai_class_plugin(const char *target)
{
    const char *dot = strrchr(target, '.'), *name = dot != NULL ? dot + 1 : target;

    if (dot != NULL && strncmp(target, NETWORKS, strlen(NETWORKS)) != 0)
        return NULL;
    for (size_t i = 0; i < CLASSES; i++)
        if (strcmp(classes[i].target, name) == 0)
            return classes[i].plugin;
    return NULL;
}

const char *monai_class_of(const char *plugin)
{
    for (size_t i = 0; i < CLASSES; i++)
        if (strcmp(classes[i].plugin, plugin) == 0)
            return classes[i].target;
    return NULL;
}
