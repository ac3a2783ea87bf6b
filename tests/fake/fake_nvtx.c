/*
 * fake_nvtx.c - a profiler that writes the names of begun ranges, their colours behind a tab, and
 * '.' for each end, into the file FAKE_NVTX. A table that is not NVTX's ends the process.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
/* The constants of NVTX's header. */
enum { NVTX_ETID_CALLBACKS = 1, NVTX_ETID_VERSIONINFO = 3, NVTX_CB_MODULE_CORE = 1,
       NVTX_CBID_CORE_RangePushEx = 8, NVTX_CBID_CORE_RangePushA = 9, NVTX_CBID_CORE_RangePop = 11,
       NVTX_CBID_CORE_SIZE = 16 };
enum { NVTX_VERSION = 3, NVTX_COLOR_ARGB = 1, NVTX_MESSAGE_TYPE_ASCII = 1 };
typedef struct nvtxEventAttributes_v2 {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union { uint64_t ullValue; double dValue; } payload;
    int32_t messageType;
    union { const char *ascii; const void *registered; } message;
} nvtxEventAttributes_t;
typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable;
typedef const void *(*NvtxGetExportTableFunc_t)(uint32_t which);
typedef struct NvtxExportTableCallbacks {
    size_t struct_size;
    int (*GetModuleFunctionTable)(int module, NvtxFunctionTable *table, unsigned *size);
} NvtxExportTableCallbacks;
typedef struct NvtxExportTableVersionInfo {
    size_t struct_size;
    uint32_t version, reserved0;
    void (*SetInjectionNvtxVersion)(uint32_t version);
} NvtxExportTableVersionInfo;
#endif

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

static FILE *file;

static int push(const char *name)
{
    fprintf(file, "%s\n", name);
    fflush(file);
    return 0;
}

/* The colour goes behind the name, after a tab. */
static int push_event(const nvtxEventAttributes_t *e)
{
    if (e->version != NVTX_VERSION || e->size != sizeof *e || e->colorType != NVTX_COLOR_ARGB
        || e->messageType != NVTX_MESSAGE_TYPE_ASCII)
        abort();
    fprintf(file, "%s\t#%08x\n", e->message.ascii, (unsigned)e->color);
    fflush(file);
    return 0;
}

static int pop(void)
{
    fputs(".\n", file);
    fflush(file);
    return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    const NvtxExportTableVersionInfo *version = get(NVTX_ETID_VERSIONINFO);
    NvtxFunctionTable table;
    unsigned size = 0;

    if (callbacks == NULL || callbacks->struct_size < sizeof *callbacks || version == NULL
        || version->struct_size < sizeof *version || version->version != 3
        || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)
        || size < NVTX_CBID_CORE_SIZE || table[0] != NULL || table[size] != NULL)
        abort();
    version->SetInjectionNvtxVersion(3);
    file = fopen(getenv("FAKE_NVTX"), "a");
    if (file == NULL)
        abort();
    *table[NVTX_CBID_CORE_RangePushEx] = (NvtxFunctionPointer)push_event;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
