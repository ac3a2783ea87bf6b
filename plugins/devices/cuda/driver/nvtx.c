/*
 * nvtx.c - named ranges for profilers, by version 3 of NVIDIA's Tools Extension.
 *
 * The extension has no library. A profiler (nsys, ncu) names its own library in the environment.
 * The program passes that library a table of slots, into which it writes its functions. The
 * functions used are declared here as in version 3 of the protocol. Without a profiler nothing is
 * loaded, and a range costs one test of a pointer.
 */
#include "cuda/driver/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define NVTX_VARIABLE (sizeof(void *) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH")

enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3, MODULE_CORE = 1, VERSION = 3 };
enum { FUNCTION_PUSH_EVENT = 8, FUNCTION_PUSH = 9, FUNCTION_POP = 11, FUNCTIONS = 16 };

typedef void (*function)(void);

typedef struct callback_table {
    size_t size;
    int (*functions)(int module, function ***table, unsigned *size);
} callback_table;

typedef struct version_table {
    size_t size;
    uint32_t version, reserved;
    void (*profilers)(uint32_t version);
} version_table;

/* nvtxEventAttributes_t of version 3, with a colour and an ASCII message. */
typedef struct event_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} event_attributes;

enum { COLOR_ARGB = 1, MESSAGE_ASCII = 1 };

typedef const void *export_table(uint32_t which);

/*
 * The protocol has one table for a process and no context argument. A profiler writes its functions
 * here once, for all devices. NULL: it records no ranges.
 */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static function given[FUNCTIONS];
static function *slots[FUNCTIONS + 1];

static int give_slots(int module, function ***table, unsigned *size)
{
    if (module != MODULE_CORE)
        return 0;
    for (int i = 1; i < FUNCTIONS; i++)
        slots[i] = &given[i];
    *table = slots;
    *size = FUNCTIONS;
    return 1;
}

static void take_version(uint32_t version) { (void)version; }

static const void *give_table(uint32_t which)
{
    static const callback_table callbacks = { sizeof callbacks, give_slots };
    static const version_table version = { sizeof version, VERSION, 0, take_version };

    return which == TABLE_CALLBACKS ? (const void *)&callbacks
         : which == TABLE_VERSION ? (const void *)&version : NULL;
}

/* A profiler is not unloaded: it writes its results at the end of the process. */
static void find_profiler(void)
{
    const char *path = getenv(NVTX_VARIABLE);
    void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    int (*begin)(export_table *tables) = NULL;

    if (library != NULL)
        *(void **)&begin = dlsym(library, "InitializeInjectionNvtx2");
    if (begin != NULL)
        begin(give_table);
}

void nvtx_range_begin(void *device, const char *name)
{
    pthread_once(&once, find_profiler);
    if (given[FUNCTION_PUSH] != NULL)
        ((int (*)(const char *))given[FUNCTION_PUSH])(name);
}

void nvtx_colored_range_begin(void *device, const char *name, uint32_t color)
{
    const event_attributes event = { .version = VERSION, .size = sizeof event,
                                     .color_type = COLOR_ARGB, .color = color,
                                     .message_type = MESSAGE_ASCII, .message = name };

    pthread_once(&once, find_profiler);
    if (given[FUNCTION_PUSH_EVENT] != NULL)
        ((int (*)(const event_attributes *))given[FUNCTION_PUSH_EVENT])(&event);
    else
        nvtx_range_begin(device, name);
}

void nvtx_range_end(void *device)
{
    if (given[FUNCTION_POP] != NULL)
        ((int (*)(void))given[FUNCTION_POP])();
}
