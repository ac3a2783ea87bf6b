/*
 * sink_file.c - open files of the run folder for sink plugins, with the core's checks.
 */
#include <pons/sink.h>

#include "base/file/file.h"

pons_status pons_sink_file(const char *path, const char *mode, FILE **file, pons_error *err)
{
    return file_open_stream(path, mode, file, err);
}
