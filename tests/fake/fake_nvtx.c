/*
 * fake_nvtx.c - a profiler that writes the names of begun ranges, and '.' for each end, into the
 * file FAKE_NVTX. A table that is not NVTX's ends the process.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
/* The constants of NVTX's header. */
enum { NVTX_ETID_CALLBACKS = 1, NVTX_ETID_VERSIONINFO = 3, NVTX_CB_MODULE_CORE = 1,
       NVTX_CBID_CORE_RangePushA = 9, NVTX_CBID_CORE_RangePop = 11, NVTX_CBID_CORE_SIZE = 16 };
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
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
