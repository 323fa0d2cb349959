/* A CUDA driver for tests: two devices, memory from malloc, streams that run at once, a log of calls, faults to order.
 *
 * It refuses what the real driver refuses: double frees, unknown handles, launches without a context, what a stream
 * capture forbids. The image "FKLDOUBLE <path>" names a shared object of the host with the function
 *
 *     void fkl_double_launch(const void *parameters, const unsigned *grid, const unsigned *block)
 *     unsigned fkl_double_size    (bytes of the parameters)
 *
 * and launching its kernel calls that: generated chains, compiled by the host compiler, then really run. Any other
 * image is accepted, and a launch of it is only logged. Tests talk to the double through the functions double_*.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fkl_cuda.h"

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
       CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_IMPLICIT = 906 };

#define MOST 4096
#define DEVICES 2

struct CUctx_st { int device; };
struct CUstream_st { int live, device, nonblocking, capturing; };
struct CUevent_st { int live, device, recorded; };
struct CUlib_st { void *handle; char path[64]; int live; };
struct CUkern_st { struct CUlib_st *library; };
struct CUfunc_st { struct CUlib_st *library; int device; };
struct CUgraphNode_st { int index; };
struct CUgraph_st { fkl_kernel_node nodes[16]; int count; };
struct CUgraphExec_st { fkl_kernel_node nodes[16]; int count; };
struct CUmemPoolHandle_st { int device; unsigned long long used, threshold; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st contexts[DEVICES] = {{0}, {1}};
static struct CUctx_st foreign = {0};
static __thread fkl_CUcontext current;
static __thread int capture_mode;
static int initialised, spoiled, capturing_blocking;
static struct { unsigned long long at; size_t bytes; int device, freed, host; } blocks[MOST];
static int block_count;
static struct { const char *call; int nth, status; } faults[64];
static int fault_count;
static char *journal;
static size_t journal_length, journal_room;
static int driver_version = 13000, device_count = DEVICES;
static const char *withheld = "";
static unsigned last_grid[3], last_block[3];
static int launches, never_ready, idle;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
#include <stdarg.h>
static void note(const char *format, ...) {
    char line[256];
    va_list list;
    if (idle) return;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (n > (int)sizeof line - 2) n = sizeof line - 2;
    line[n++] = '\n';
    pthread_mutex_lock(&lock);
    if (journal_length + n + 1 > journal_room) {
        journal_room = journal_room ? 2 * journal_room : 1 << 16;
        journal = realloc(journal, journal_room);
    }
    memcpy(journal + journal_length, line, n);
    journal_length += n;
    journal[journal_length] = 0;
    pthread_mutex_unlock(&lock);
}

static int fault(const char *call) {
    for (int i = 0; i < fault_count; ++i)
        if (!strcmp(faults[i].call, call) && faults[i].nth > 0 && --faults[i].nth == 0) return faults[i].status;
    return OK;
}

#define ENTER(name)                                  \
    do {                                             \
        if (!initialised) return NOT_INITIALIZED;    \
        int ordered = fault(#name);                  \
        if (ordered) { note(#name " -> %d", ordered); return ordered; } \
    } while (0)
#define IN_CONTEXT(name)                             \
    do {                                             \
        ENTER(name);                                 \
        if (!current) return INVALID_CONTEXT;        \
    } while (0)

/* What a capture forbids, unless this thread has said that it knows better. */
static int forbidden(const char *call) {
    if (capturing_blocking == 0 || capture_mode == 2) return OK;
    note("%s spoils the capture", call);
    spoiled = 1;
    return CAPTURE_UNSUPPORTED;
}

static int stream_ok(fkl_CUstream s) { return (unsigned long)s <= 2 || s->live == 0x57AE; }

/* -- memory ---------------------------------------------------------------------------------------------------- */

static int find_block(unsigned long long at) {
    for (int i = 0; i < block_count; ++i)
        if (!blocks[i].freed && at >= blocks[i].at && at < blocks[i].at + blocks[i].bytes) return i;
    return -1;
}

static int take(fkl_CUdeviceptr *memory, size_t bytes, int device) {
    void *p = NULL;
    if (bytes == 0 || block_count == MOST) return INVALID_VALUE;
    if (bytes > (size_t)1 << 36 || posix_memalign(&p, 512, bytes)) return OUT_OF_MEMORY;
    memset(p, 0xCD, bytes);
    pthread_mutex_lock(&lock);
    blocks[block_count].at = (unsigned long long)p;
    blocks[block_count].bytes = bytes;
    blocks[block_count].device = device;
    blocks[block_count].freed = 0;
    ++block_count;
    pthread_mutex_unlock(&lock);
    *memory = (fkl_CUdeviceptr)p;
    return OK;
}

static int give(fkl_CUdeviceptr memory) {
    int i = find_block(memory);
    if (i < 0 || blocks[i].at != memory) {
        note("bad free 0x%llx", memory);
        return INVALID_VALUE;
    }
    blocks[i].freed = 1; /* never handed back to malloc, so that a stale pointer is told from a new one */
    return OK;
}

static fkl_CUresult f_MemAlloc(fkl_CUdeviceptr *memory, size_t bytes) {
    IN_CONTEXT(MemAlloc);
    int status = forbidden("MemAlloc");
    if (!status) status = take(memory, bytes, current->device);
    note("MemAlloc %zu -> %d", bytes, status);
    return status;
}
static fkl_CUresult f_MemFree(fkl_CUdeviceptr memory) {
    IN_CONTEXT(MemFree);
    int status = forbidden("MemFree");
    if (!status) status = give(memory);
    note("MemFree 0x%llx -> %d", memory, status);
    return status;
}
static fkl_CUresult f_MemAllocAsync(fkl_CUdeviceptr *memory, size_t bytes, fkl_CUstream stream) {
    IN_CONTEXT(MemAllocAsync);
    if (!stream_ok(stream)) return INVALID_HANDLE;
    note("MemAllocAsync %zu", bytes);
    return take(memory, bytes, current->device);
}
static fkl_CUresult f_MemFreeAsync(fkl_CUdeviceptr memory, fkl_CUstream stream) {
    IN_CONTEXT(MemFreeAsync);
    if (!stream_ok(stream)) return INVALID_HANDLE;
    note("MemFreeAsync 0x%llx", memory);
    return give(memory);
}

static int copied(const char *name, fkl_CUstream stream, unsigned long long device_side, void *to, const void *from,
                  size_t bytes) {
    if (!stream_ok(stream)) return INVALID_HANDLE;
    if (stream == NULL && capturing_blocking) return CAPTURE_IMPLICIT;
    if (find_block(device_side) < 0 || find_block(device_side + bytes - 1) < 0) {
        note("%s outside of memory", name);
        return INVALID_VALUE;
    }
    memmove(to, from, bytes);
    note("%s %zu", name, bytes);
    return OK;
}
static fkl_CUresult f_MemcpyHtoD(fkl_CUdeviceptr to, const void *from, size_t bytes) {
    IN_CONTEXT(MemcpyHtoD);
    int status = forbidden("MemcpyHtoD");
    return status ? status : copied("MemcpyHtoD", (fkl_CUstream)1, to, (void *)to, from, bytes);
}
static fkl_CUresult f_MemcpyDtoH(void *to, fkl_CUdeviceptr from, size_t bytes) {
    IN_CONTEXT(MemcpyDtoH);
    return copied("MemcpyDtoH", NULL, from, to, (void *)from, bytes);
}
static fkl_CUresult f_MemcpyHtoDAsync(fkl_CUdeviceptr to, const void *from, size_t bytes, fkl_CUstream stream) {
    IN_CONTEXT(MemcpyHtoDAsync);
    return copied("MemcpyHtoDAsync", stream, to, (void *)to, from, bytes);
}
static fkl_CUresult f_MemcpyDtoHAsync(void *to, fkl_CUdeviceptr from, size_t bytes, fkl_CUstream stream) {
    IN_CONTEXT(MemcpyDtoHAsync);
    return copied("MemcpyDtoHAsync", stream, from, to, (void *)from, bytes);
}
static fkl_CUresult f_MemcpyDtoDAsync(fkl_CUdeviceptr to, fkl_CUdeviceptr from, size_t bytes, fkl_CUstream stream) {
    IN_CONTEXT(MemcpyDtoDAsync);
    return copied("MemcpyDtoDAsync", stream, to, (void *)to, (void *)from, bytes);
}
static fkl_CUresult f_Memcpy2DAsync(const fkl_copy2d *c, fkl_CUstream stream) {
    IN_CONTEXT(Memcpy2DAsync);
    const char *from = c->srcMemoryType == 1 ? c->srcHost : (const char *)c->srcDevice;
    char *to = c->dstMemoryType == 1 ? c->dstHost : (char *)c->dstDevice;
    unsigned long long side = c->srcMemoryType == 2 ? c->srcDevice : c->dstDevice;
    size_t pitch = c->srcMemoryType == 2 ? c->srcPitch : c->dstPitch;
    if (!stream_ok(stream)) return INVALID_HANDLE;
    if (c->WidthInBytes > c->srcPitch || c->WidthInBytes > c->dstPitch) return INVALID_VALUE;
    if (find_block(side) < 0 || find_block(side + pitch * (c->Height - 1) + c->WidthInBytes - 1) < 0) return INVALID_VALUE;
    for (size_t y = 0; y < c->Height; ++y) memmove(to + y * c->dstPitch, from + y * c->srcPitch, c->WidthInBytes);
    note("Memcpy2DAsync %zux%zu", c->WidthInBytes, c->Height);
    return OK;
}
#define FILL(NAME, TYPE)                                                                                     \
    static fkl_CUresult f_##NAME(fkl_CUdeviceptr to, TYPE value, size_t count, fkl_CUstream stream) {        \
        IN_CONTEXT(NAME);                                                                                    \
        if (!stream_ok(stream)) return INVALID_HANDLE;                                                       \
        if (find_block(to) < 0 || find_block(to + count * sizeof(TYPE) - 1) < 0) return INVALID_VALUE;       \
        for (size_t i = 0; i < count; ++i) ((TYPE *)to)[i] = value;                                          \
        note(#NAME " %zu", count);                                                                           \
        return OK;                                                                                           \
    }
FILL(MemsetD8Async, unsigned char)
FILL(MemsetD16Async, unsigned short)
FILL(MemsetD32Async, unsigned int)

static fkl_CUresult f_PointerGetAttribute(void *value, int attribute, fkl_CUdeviceptr pointer) {
    ENTER(PointerGetAttribute);
    int i = find_block(pointer);
    if (i < 0) return INVALID_VALUE;
    if (attribute == 2) *(int *)value = blocks[i].host ? 1 : 2;
    else if (attribute == 9) *(int *)value = blocks[i].device;
    else return INVALID_VALUE;
    return OK;
}
static fkl_CUresult f_MemGetInfo(size_t *available, size_t *total) {
    IN_CONTEXT(MemGetInfo);
    *total = (size_t)1 << 36;
    *available = *total;
    for (int i = 0; i < block_count; ++i)
        if (!blocks[i].freed) *available -= blocks[i].bytes;
    return OK;
}

/* -- devices and contexts -------------------------------------------------------------------------------------- */

static fkl_CUresult f_Init(unsigned int flags) {
    (void)flags;
    int ordered = fault("Init");
    note("Init -> %d", ordered);
    if (ordered) return ordered;
    initialised = 1;
    return OK;
}
static fkl_CUresult f_DriverGetVersion(int *version) { *version = driver_version; return OK; }
static fkl_CUresult f_GetErrorName(fkl_CUresult error, const char **text) {
    static __thread char name[48];
    snprintf(name, sizeof name, "CUDA_ERROR_OF_THE_DOUBLE_%d", error);
    *text = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : name;
    return OK;
}
static fkl_CUresult f_GetErrorString(fkl_CUresult error, const char **text) {
    *text = error == OUT_OF_MEMORY ? "out of memory" : "as ordered";
    return OK;
}
static fkl_CUresult f_DeviceGet(fkl_CUdevice *device, int ordinal) {
    ENTER(DeviceGet);
    if (ordinal < 0 || ordinal >= device_count) return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}
static fkl_CUresult f_DeviceGetCount(int *count) { ENTER(DeviceGetCount); *count = device_count; return OK; }
static fkl_CUresult f_DeviceGetName(char *name, int length, fkl_CUdevice device) {
    ENTER(DeviceGetName);
    snprintf(name, length, "double %d", device);
    return OK;
}
static fkl_CUresult f_DeviceGetAttribute(int *value, int attribute, fkl_CUdevice device) {
    ENTER(DeviceGetAttribute);
    *value = attribute == 75 ? (device ? 8 : 9) : attribute == 76 ? (device ? 6 : 0) : 0;
    return OK;
}
static fkl_CUresult f_DevicePrimaryCtxRetain(fkl_CUcontext *context, fkl_CUdevice device) {
    ENTER(DevicePrimaryCtxRetain);
    note("DevicePrimaryCtxRetain %d", device);
    *context = &contexts[device];
    return OK;
}
static fkl_CUresult f_CtxGetCurrent(fkl_CUcontext *context) { ENTER(CtxGetCurrent); *context = current; return OK; }
static fkl_CUresult f_CtxSetCurrent(fkl_CUcontext context) { ENTER(CtxSetCurrent); current = context; return OK; }
static fkl_CUresult f_CtxGetDevice(fkl_CUdevice *device) { IN_CONTEXT(CtxGetDevice); *device = current->device; return OK; }
static fkl_CUresult f_CtxSynchronize(void) {
    IN_CONTEXT(CtxSynchronize);
    if (capturing_blocking) { spoiled = 1; return CAPTURE_UNSUPPORTED; }
    note("CtxSynchronize");
    return OK;
}

/* -- pools and mapped host memory ------------------------------------------------------------------------------- */

static fkl_CUresult f_MemPoolCreate(fkl_CUmemoryPool *pool, const fkl_pool_properties *properties) {
    ENTER(MemPoolCreate);
    if (properties->allocType != 1 || properties->locationType != 1 || properties->locationId >= DEVICES) return INVALID_VALUE;
    *pool = calloc(1, sizeof **pool);
    (*pool)->device = properties->locationId;
    note("MemPoolCreate %d", properties->locationId);
    return OK;
}
static fkl_CUresult f_MemPoolSetAttribute(fkl_CUmemoryPool pool, int attribute, void *value) {
    ENTER(MemPoolSetAttribute);
    if (attribute != 4) return INVALID_VALUE;
    pool->threshold = *(unsigned long long *)value;
    return OK;
}
static fkl_CUresult f_MemPoolGetAttribute(fkl_CUmemoryPool pool, int attribute, void *value) {
    ENTER(MemPoolGetAttribute);
    if (attribute != 5 && attribute != 7) return INVALID_VALUE;
    *(unsigned long long *)value = pool->used;
    return OK;
}
static fkl_CUresult f_MemAllocFromPoolAsync(fkl_CUdeviceptr *memory, size_t bytes, fkl_CUmemoryPool pool, fkl_CUstream stream) {
    IN_CONTEXT(MemAllocFromPoolAsync);
    if (!stream_ok(stream)) return INVALID_HANDLE;
    if ((unsigned long)stream > 2 && stream->capturing) { spoiled = 1; return CAPTURE_UNSUPPORTED; }
    int status = take(memory, bytes, pool->device);
    if (status) return status;
    pool->used += bytes;
    note("MemAllocFromPoolAsync 0x%llx", *memory);
    return OK;
}
static fkl_CUresult f_MemHostAlloc(void **memory, size_t bytes, unsigned int flags) {
    IN_CONTEXT(MemHostAlloc);
    if (flags != 3) return INVALID_VALUE;
    *memory = calloc(1, bytes);
    note("MemHostAlloc");
    return OK;
}
static fkl_CUresult f_MemHostGetDevicePointer(fkl_CUdeviceptr *address, void *memory, unsigned int flags) {
    (void)flags;
    ENTER(MemHostGetDevicePointer);
    *address = (fkl_CUdeviceptr)memory;
    return OK;
}
static fkl_CUresult f_StreamWriteValue32(fkl_CUstream stream, fkl_CUdeviceptr to, unsigned int value, unsigned int flags) {
    (void)flags;
    IN_CONTEXT(StreamWriteValue32);
    if (!stream_ok(stream)) return INVALID_HANDLE;
    note("StreamWriteValue32");
    if (!never_ready) *(volatile unsigned int *)to = value;
    return OK;
}

/* -- streams and events ---------------------------------------------------------------------------------------- */

static fkl_CUresult f_StreamCreateWithPriority(fkl_CUstream *stream, unsigned int flags, int priority) {
    (void)priority;
    IN_CONTEXT(StreamCreateWithPriority);
    *stream = calloc(1, sizeof **stream);
    (*stream)->live = 0x57AE;
    (*stream)->device = current->device;
    (*stream)->nonblocking = flags & 1;
    note("StreamCreate %p", (void *)*stream);
    return OK;
}
static fkl_CUresult f_StreamDestroy(fkl_CUstream stream) {
    ENTER(StreamDestroy);
    if (!stream_ok(stream)) { note("bad StreamDestroy"); return INVALID_HANDLE; }
    stream->live = 0;
    note("StreamDestroy %p", (void *)stream);
    return OK;
}
static fkl_CUresult f_StreamSynchronize(fkl_CUstream stream) {
    IN_CONTEXT(StreamSynchronize);
    return stream_ok(stream) ? OK : INVALID_HANDLE;
}
static fkl_CUresult f_StreamQuery(fkl_CUstream stream) {
    IN_CONTEXT(StreamQuery);
    return never_ready ? NOT_READY : stream_ok(stream) ? OK : INVALID_HANDLE;
}
static fkl_CUresult f_StreamWaitEvent(fkl_CUstream stream, fkl_CUevent event, unsigned int flags) {
    (void)flags;
    IN_CONTEXT(StreamWaitEvent);
    if (!stream_ok(stream) || event->live != 0xE7E) return INVALID_HANDLE;
    note("StreamWaitEvent %p %p", (void *)stream, (void *)event);
    return OK;
}
static fkl_CUresult f_StreamGetCtx(fkl_CUstream stream, fkl_CUcontext *context) {
    IN_CONTEXT(StreamGetCtx);
    *context = (unsigned long)stream <= 2 ? current : &contexts[stream->device];
    return OK;
}
static fkl_CUresult f_StreamIsCapturing(fkl_CUstream stream, int *status) {
    IN_CONTEXT(StreamIsCapturing);
    *status = 0;
    if (!stream_ok(stream)) return INVALID_HANDLE;
    if ((unsigned long)stream <= 1) return capturing_blocking ? CAPTURE_IMPLICIT : OK;
    *status = (unsigned long)stream > 2 && stream->capturing;
    return OK;
}
static fkl_CUresult f_ThreadExchangeStreamCaptureMode(int *mode) {
    ENTER(ThreadExchangeStreamCaptureMode);
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return OK;
}
static fkl_CUresult f_EventCreate(fkl_CUevent *event, unsigned int flags) {
    (void)flags;
    IN_CONTEXT(EventCreate);
    *event = calloc(1, sizeof **event);
    (*event)->live = 0xE7E;
    return OK;
}
static fkl_CUresult f_EventDestroy(fkl_CUevent event) {
    ENTER(EventDestroy);
    if (event->live != 0xE7E) { note("bad EventDestroy"); return INVALID_HANDLE; }
    event->live = 0;
    note("EventDestroy %p", (void *)event);
    return OK;
}
static fkl_CUresult f_EventRecord(fkl_CUevent event, fkl_CUstream stream) {
    IN_CONTEXT(EventRecord);
    if (!stream_ok(stream) || event->live != 0xE7E) return INVALID_HANDLE;
    if ((unsigned long)stream <= 1 && capturing_blocking) return CAPTURE_IMPLICIT;
    note("EventRecord %p %p", (void *)event, (void *)stream);
    return OK;
}
static fkl_CUresult f_EventSynchronize(fkl_CUevent event) {
    ENTER(EventSynchronize);
    note("EventSynchronize %p", (void *)event);
    return event->live == 0xE7E ? OK : INVALID_HANDLE;
}
static fkl_CUresult f_EventQuery(fkl_CUevent event) {
    IN_CONTEXT(EventQuery);
    return never_ready ? NOT_READY : event->live == 0xE7E ? OK : INVALID_HANDLE;
}
static fkl_CUresult f_EventElapsedTime(float *milliseconds, fkl_CUevent start, fkl_CUevent end) {
    (void)start, (void)end;
    *milliseconds = 1.5f;
    return OK;
}

/* -- code ------------------------------------------------------------------------------------------------------ */

static fkl_CUresult f_LibraryLoadData(fkl_CUlibrary *library, const void *image, int *jit_options, void **jit_values,
                                      unsigned int jit_count, int *options, void **values, unsigned int count) {
    (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    ENTER(LibraryLoadData);
    int status = forbidden("LibraryLoadData");
    if (status) return status;
    const unsigned char *b = image;
    struct CUlib_st *made = calloc(1, sizeof *made);
    /* e_machine 190 is a cubin, anything else a shared object of the host: "FKLDOUBLE <path>" names one. */
    if (!memcmp(b, "FKLDOUBLE ", 10)) {
        made->handle = dlopen((const char *)image + 10, RTLD_NOW | RTLD_LOCAL);
        if (!made->handle) { note("LibraryLoadData: %s", dlerror()); return INVALID_IMAGE; }
    }
    made->live = 1;
    *library = made;
    note("LibraryLoadData");
    return OK;
}
static fkl_CUresult f_LibraryUnload(fkl_CUlibrary library) {
    ENTER(LibraryUnload);
    if (!library->live) { note("bad LibraryUnload"); return INVALID_HANDLE; }
    library->live = 0;
    note("LibraryUnload");
    return OK;
}
static fkl_CUresult f_LibraryGetKernel(fkl_CUkernel *kernel, fkl_CUlibrary library, const char *name) {
    ENTER(LibraryGetKernel);
    if (strcmp(name, "fkl_kernel")) return NOT_FOUND;
    *kernel = calloc(1, sizeof **kernel);
    (*kernel)->library = library;
    return OK;
}
static fkl_CUresult f_KernelGetFunction(fkl_CUfunction *function, fkl_CUkernel kernel) {
    IN_CONTEXT(KernelGetFunction);
    *function = calloc(1, sizeof **function);
    (*function)->library = kernel->library;
    (*function)->device = current->device;
    return OK;
}
static fkl_CUresult f_FuncLoad(fkl_CUfunction function) {
    (void)function;
    IN_CONTEXT(FuncLoad);
    note("FuncLoad");
    return forbidden("FuncLoad");
}
static fkl_CUresult f_LaunchKernel(fkl_CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                   fkl_CUstream stream, void **parameters, void **extra) {
    (void)shared, (void)extra;
    if (idle) return OK;
    IN_CONTEXT(LaunchKernel);
    if (!stream_ok(stream)) return INVALID_HANDLE;
    if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || bx * by * bz > 1024 || !bx || !by || !bz) return INVALID_VALUE;
    if (!function->library->live) { note("launch of unloaded code"); return INVALID_HANDLE; }
    if (function->device != current->device) { note("launch in another context"); return INVALID_CONTEXT; }
    if ((unsigned long)stream > 2 && stream->device != current->device) return INVALID_HANDLE;
    if ((unsigned long)stream <= 1 && capturing_blocking) { spoiled = 1; return CAPTURE_IMPLICIT; }
    last_grid[0] = gx, last_grid[1] = gy, last_grid[2] = gz;
    last_block[0] = bx, last_block[1] = by, last_block[2] = bz;
    ++launches;
    note("LaunchKernel on %p, grid %u %u %u, block %u %u", (void *)stream, gx, gy, gz, bx, by);
    if (function->library->handle) {
        void (*run)(const void *, const unsigned *, const unsigned *) = dlsym(function->library->handle, "fkl_double_launch");
        if (!run) return NOT_FOUND;
        run(parameters[0], last_grid, last_block);
    }
    return OK;
}
static fkl_CUresult f_GraphCreate(fkl_CUgraph *graph, unsigned int flags) {
    (void)flags;
    ENTER(GraphCreate);
    *graph = calloc(1, sizeof **graph);
    note("GraphCreate");
    return OK;
}
static fkl_CUresult f_GraphAddKernelNode(fkl_CUgraphNode *node, fkl_CUgraph graph, const fkl_CUgraphNode *after, size_t count,
                                         const fkl_kernel_node *parameters) {
    IN_CONTEXT(GraphAddKernelNode);
    if (graph->count == 16) return OUT_OF_MEMORY;
    /* Nodes run in the order they were added, which is that of a chain of dependencies: anything else is refused. */
    if (count != (graph->count > 0) || (count && after[0]->index != graph->count - 1)) return INVALID_VALUE;
    *node = calloc(1, sizeof **node);
    (*node)->index = graph->count;
    graph->nodes[graph->count++] = *parameters;
    return OK;
}
static void keep(fkl_kernel_node *kept, const fkl_kernel_node *given) {
    /* The driver copies the parameters; how many bytes they have the code says in fkl_double_size. */
    void **list = malloc(sizeof(void *));
    const unsigned *size = given->func->library->handle ? dlsym(given->func->library->handle, "fkl_double_size") : NULL;
    list[0] = malloc(32768);
    if (size) memcpy(list[0], given->kernelParams[0], *size);
    *kept = *given;
    kept->kernelParams = list;
}
static fkl_CUresult f_GraphInstantiateWithFlags(fkl_CUgraphExec *exec, fkl_CUgraph graph, unsigned long long flags) {
    (void)flags;
    IN_CONTEXT(GraphInstantiateWithFlags);
    *exec = calloc(1, sizeof **exec);
    (*exec)->count = graph->count;
    for (int i = 0; i < graph->count; ++i) keep(&(*exec)->nodes[i], &graph->nodes[i]);
    note("GraphInstantiate");
    return OK;
}
static fkl_CUresult f_GraphUpload(fkl_CUgraphExec exec, fkl_CUstream stream) {
    (void)exec, (void)stream;
    IN_CONTEXT(GraphUpload);
    note("GraphUpload");
    return OK;
}
static fkl_CUresult f_GraphExecKernelNodeSetParams(fkl_CUgraphExec exec, fkl_CUgraphNode node,
                                                   const fkl_kernel_node *parameters) {
    if (idle) return OK;
    IN_CONTEXT(GraphExecKernelNodeSetParams);
    keep(&exec->nodes[node->index], parameters);
    note("GraphSetParams");
    return OK;
}
static fkl_CUresult f_GraphLaunch(fkl_CUgraphExec exec, fkl_CUstream stream) {
    if (idle) return OK;
    IN_CONTEXT(GraphLaunch);
    if ((unsigned long)stream > 2 && stream->capturing) { spoiled = 1; return CAPTURE_UNSUPPORTED; }
    note("GraphLaunch");
    for (int i = 0; i < exec->count; ++i) {
        fkl_kernel_node *n = &exec->nodes[i];
        int status = f_LaunchKernel(n->func, n->gridDimX, n->gridDimY, n->gridDimZ, n->blockDimX, n->blockDimY, n->blockDimZ, 0,
                                    stream, n->kernelParams, NULL);
        if (status) return status;
    }
    return OK;
}
static fkl_CUresult f_GraphExecDestroy(fkl_CUgraphExec exec) { (void)exec; ENTER(GraphExecDestroy); note("GraphExecDestroy"); return OK; }
static fkl_CUresult f_GraphDestroy(fkl_CUgraph graph) { (void)graph; ENTER(GraphDestroy); note("GraphDestroy"); return OK; }

/* -- the entry point, and what tests call ---------------------------------------------------------------------- */

#define PAIR(name, version, parameters) {"cu" #name, (void *)f_##name},
static const struct { const char *name; void *function; } table[] = {FKL_DRIVER_REQUIRED(PAIR) FKL_DRIVER_OPTIONAL(PAIR)};

fkl_CUresult cuGetProcAddress_v2(const char *name, void **address, int version, unsigned long long flags, int *status) {
    (void)flags;
    *address = NULL;
    if (version > driver_version) return INVALID_VALUE;
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
        if (!strcmp(table[i].name, name) && strcmp(withheld, name)) *address = table[i].function;
    *status = *address ? 0 : 1;
    return OK;
}
fkl_CUresult cuDriverGetVersion(int *version) { return f_DriverGetVersion(version); }

const char *double_log(void) { return journal ? journal : ""; }
void double_clear_log(void) { journal_length = 0; if (journal) journal[0] = 0; }
void double_fault(const char *call, int nth, int status) {
    faults[fault_count].call = strdup(call);
    faults[fault_count].nth = nth;
    faults[fault_count++].status = status;
}
void double_set_version(int version) { driver_version = version; }
void double_set_devices(int count) { device_count = count; }
void double_withhold(const char *name) { withheld = strdup(name); }
void double_capture(fkl_CUstream stream, int on) {
    stream->capturing = on;
    if (!stream->nonblocking) capturing_blocking = on;
    spoiled = 0;
}
int double_spoiled(void) { return spoiled; }
void double_never_ready(int on) { never_ready = on; }
/* Launches return at once and nothing is logged: what is left is what the caller costs. */
void double_idle(int on) { idle = on; }
int double_launches(void) { return launches; }
int double_live_blocks(void) {
    int n = 0;
    for (int i = 0; i < block_count; ++i) n += !blocks[i].freed;
    return n;
}
unsigned long long double_alloc(size_t bytes, int device, int host) {
    fkl_CUdeviceptr p = 0;
    take(&p, bytes, device);
    blocks[block_count - 1].host = host;
    return p;
}
void double_set_current(int device) { current = device < 0 ? NULL : device > 9 ? &foreign : &contexts[device]; }
int double_current(void) { return !current ? -1 : current == &foreign ? 10 : current->device; }
const unsigned *double_last_grid(void) { return last_grid; }

/* The environment sets what is needed before the first call. */
__attribute__((constructor)) static void settings(void) {
    const char *text = getenv("FKL_DOUBLE_VERSION");
    if (text) driver_version = atoi(text);
    if ((text = getenv("FKL_DOUBLE_DEVICES"))) device_count = atoi(text);
    if ((text = getenv("FKL_DOUBLE_WITHHOLD"))) withheld = text;
    if ((text = getenv("FKL_DOUBLE_INIT"))) double_fault("Init", 1, atoi(text));
}
