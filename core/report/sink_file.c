/*
 * sink_file.c - files of the run folder for plugins, opened as the core opens its own.
 */
#include <pons/sink.h>

#include "base/file/file.h"

pons_status pons_sink_file(const char *path, const char *mode, FILE **file, pons_error *err)
{
    return file_open_stream(path, mode, file, err);
}
