/*
 * file_system.h - tell file systems that several machines share.
 */
#ifndef CORE_BASE_FILE_FILE_SYSTEM_H
#define CORE_BASE_FILE_FILE_SYSTEM_H

/* The name of a shared file system by its number in statfs, "NFS"; NULL: it is none. */
const char *file_system_shared(long type);
/* The name of the shared file system that 'path' lies on; NULL: on none, or it is not known. */
const char *file_system_shared_at(const char *path);

#endif
