/*
 * file_system.c - the numbers of file systems on which locks and mappings of several machines do
 * not agree (statfs(2)). FUSE is one of them: most of its users are network file systems.
 */
#include "base/file/file_system.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

static const struct { uint32_t type; const char *name; } shared[] = {
    { 0x00006969, "NFS" }, { 0x0000517B, "SMB" }, { 0xFE534D42, "SMB2" }, { 0xFF534D42, "CIFS" },
    { 0x5346414F, "AFS" }, { 0x6B414653, "AFS" }, { 0x00C36400, "Ceph" }, { 0x0BD00BD0, "Lustre" },
    { 0x47504653, "GPFS" }, { 0x01161970, "GFS2" }, { 0x7461636F, "OCFS2" },
    { 0x19830326, "BeeGFS" }, { 0xAAD7AAEA, "PanFS" }, { 0x20030528, "OrangeFS" },
    { 0x01021997, "9P" }, { 0x73757245, "Coda" }, { 0x65735546, "FUSE" },
};

const char *file_system_shared(long type)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (shared[i].type == (uint32_t)type)
            return shared[i].name;
    return NULL;
}

const char *file_system_shared_at(const char *path)
{
    struct statfs s;

    return statfs(path, &s) == 0 ? file_system_shared((long)s.f_type) : NULL;
}
