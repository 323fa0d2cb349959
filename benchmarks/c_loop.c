/* The floor: loops of bare driver calls in C, for benchmarks/launch.py. Nanoseconds per call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

#include "../fkl/runtime/abi/fkl_cuda.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *entry(const char *name, int version) {
    static int (*find)(const char *, void **, int, uint64_t, int *);
    void *address = NULL;
    int status;
    if (!find) find = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    find(name, &address, version, 1, &status);
    return address;
}

typedef int (*launch_t)(fkl_CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, fkl_CUstream, void **,
                        void **);

/* Load a cubin and return the function "fkl_kernel" in the current context. */
void *load(const void *image) {
    fkl_CUlibrary library;
    fkl_CUkernel kernel;
    fkl_CUfunction function;
    int (*load_data)(fkl_CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned) = entry("cuLibraryLoadData", 12000);
    int (*get)(fkl_CUkernel *, fkl_CUlibrary, const char *) = entry("cuLibraryGetKernel", 12000);
    int (*resolve)(fkl_CUfunction *, fkl_CUkernel) = entry("cuKernelGetFunction", 12000);
    if (load_data(&library, image, 0, 0, 0, 0, 0, 0) || get(&kernel, library, "fkl_kernel") || resolve(&function, kernel)) return 0;
    return function;
}

double loop_kernel(void *function, void *block, const unsigned *grid, void *stream, int count) {
    launch_t launch = entry("cuLaunchKernel", 4000);
    void *parameters[1] = {block};
    double start = now();
    for (int i = 0; i < count; ++i)
        if (launch(function, grid[0], grid[1], grid[2], grid[3], grid[4], 1, 0, stream, parameters, 0)) return -1;
    return (now() - start) / count;
}

static fkl_CUgraphExec make_graph(void *function, void *block, const unsigned *grid) {
    int (*create)(fkl_CUgraph *, unsigned) = entry("cuGraphCreate", 10000);
    int (*add)(fkl_CUgraphNode *, fkl_CUgraph, const fkl_CUgraphNode *, size_t, const fkl_kernel_node *) = entry("cuGraphAddKernelNode", 12000);
    int (*instantiate)(fkl_CUgraphExec *, fkl_CUgraph, unsigned long long) = entry("cuGraphInstantiateWithFlags", 11040);
    int (*upload)(fkl_CUgraphExec, fkl_CUstream) = entry("cuGraphUpload", 11010);
    void *parameters[1] = {block};
    fkl_kernel_node node = {function, grid[0], grid[1], grid[2], grid[3], grid[4], 1, 0, parameters, 0, 0, 0};
    fkl_CUgraph graph;
    fkl_CUgraphNode made;
    fkl_CUgraphExec exec;
    if (create(&graph, 0) || add(&made, graph, 0, 0, &node) || instantiate(&exec, graph, 0) || upload(exec, 0)) return 0;
    return exec;
}

void *graph(void *function, void *block, const unsigned *grid) { return make_graph(function, block, grid); }

double loop_graph(void *exec, void *stream, int count) {
    int (*launch)(fkl_CUgraphExec, fkl_CUstream) = entry("cuGraphLaunch", 10000);
    double start = now();
    for (int i = 0; i < count; ++i)
        if (launch(exec, stream)) return -1;
    return (now() - start) / count;
}

/* Registers (code 4), bytes of local memory a thread (code 3). */
int attribute(void *function, int code) {
    int (*get)(int *, int, fkl_CUfunction) = entry("cuFuncGetAttribute", 2020);
    int value = -1;
    return get(&value, code, function) ? -1 : value;
}

/* One chain of nodes that run in order. */
void *graph_of(void **functions, void **blocks, const unsigned *grids, int count) {
    int (*create)(fkl_CUgraph *, unsigned) = entry("cuGraphCreate", 10000);
    int (*add)(fkl_CUgraphNode *, fkl_CUgraph, const fkl_CUgraphNode *, size_t, const fkl_kernel_node *) = entry("cuGraphAddKernelNode", 12000);
    int (*instantiate)(fkl_CUgraphExec *, fkl_CUgraph, unsigned long long) = entry("cuGraphInstantiateWithFlags", 11040);
    fkl_CUgraph graph;
    fkl_CUgraphNode last = 0, made;
    fkl_CUgraphExec exec;
    if (create(&graph, 0)) return 0;
    for (int i = 0; i < count; ++i) {
        const unsigned *grid = grids + 5 * i;
        void *parameters[1] = {blocks[i]};
        fkl_kernel_node node = {functions[i], grid[0], grid[1], grid[2], grid[3], grid[4], 1, 0, parameters, 0, 0, 0};
        if (add(&made, graph, i ? &last : 0, i ? 1 : 0, &node)) return 0;
        last = made;
    }
    return instantiate(&exec, graph, 0) ? 0 : exec;
}

/* Launch and wait, `count` times, nanoseconds each into `out`. How: 0 kernel + synchronise, 1 graph + synchronise,
 * 2 graph + a flag that the stream writes and the host watches. */
int latencies(int how, void *function, void *block, const unsigned *grid, void *exec, void *stream, double *out, int count) {
    launch_t launch = entry("cuLaunchKernel", 4000);
    int (*launch_graph)(fkl_CUgraphExec, fkl_CUstream) = entry("cuGraphLaunch", 10000);
    int (*synchronise)(fkl_CUstream) = entry("cuStreamSynchronize", 2000);
    int (*allocate)(void **, size_t, unsigned) = entry("cuMemHostAlloc", 2020);
    int (*mapped)(unsigned long long *, void *, unsigned) = entry("cuMemHostGetDevicePointer", 3020);
    int (*write)(fkl_CUstream, unsigned long long, unsigned, unsigned) = entry("cuStreamWriteValue32", 12000);
    static volatile unsigned *flag;
    static unsigned turn;
    unsigned long long address = 0;
    void *parameters[1] = {block}, *page = 0;
    if (!flag) {
        if (allocate(&page, 4096, 2)) return 1;
        flag = page;
        *flag = 0;
    }
    if (mapped(&address, (void *)flag, 0)) return 2;
    for (int i = 0; i < count; ++i) {
        double start = now();
        if (how == 0 ? launch(function, grid[0], grid[1], grid[2], grid[3], grid[4], 1, 0, stream, parameters, 0) : launch_graph(exec, stream))
            return 3;
        if (how == 2) {
            if (write(stream, address, ++turn, 0)) return 4;
            while (*flag != turn) {}
        } else if (synchronise(stream)) {
            return 5;
        }
        out[i] = now() - start;
    }
    return 0;
}
