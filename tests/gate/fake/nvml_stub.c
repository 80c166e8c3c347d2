/* A libnvidia-ml.so.1 with two GPUs that answers the first questions only, and fails as STUB says. What is not here
 * is a function that this driver lacks. Prototypes and codes are those of NVIDIA's nvml.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, GPU_IS_LOST = 15, MISMATCH = 18 };
static int told(const char *word) { const char *all = getenv("STUB"); return all && !strcmp(all, word); }

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (told("hang")) sleep(100);
    if (told("crash")) raise(SIGSEGV);
    return told("mismatch") ? MISMATCH : SUCCESS;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) {
    return code == MISMATCH ? "Driver/library version mismatch" : code == GPU_IS_LOST ? "GPU is lost" : "Not Supported";
}
static int text(char *to, unsigned length, const char *what) { snprintf(to, length, "%s", what); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *to, unsigned length) { return text(to, length, "580.159.04"); }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 13000; return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **to) {
    *to = (void *)(unsigned long)(index + 1);
    return index == 1 && told("lost") ? GPU_IS_LOST : SUCCESS;
}
int nvmlDeviceGetName(void *gpu, char *to, unsigned length) { (void)gpu; return text(to, length, "NVIDIA H100 80GB HBM3"); }
int nvmlDeviceGetUUID(void *gpu, char *to, unsigned length) {
    return text(to, length, gpu == (void *)1 ? "GPU-1" : "GPU-2");
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; };
int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *to) {
    memset(to, 0, sizeof *to);
    to->domain = 8;
    to->bus = (unsigned)(unsigned long)gpu;
    snprintf(to->address, sizeof to->address, "00000008:%02X:00.0", to->bus);
    return SUCCESS;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *gpu, unsigned *to) { *to = gpu == (void *)2 && told("narrow") ? 8 : 16; return SUCCESS; }
int nvmlDeviceGetMaxPcieLinkWidth(void *gpu, unsigned *to) { (void)gpu; *to = 16; return SUCCESS; }
