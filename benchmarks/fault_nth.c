/* Make the n-th change of a file below a folder fail, in the process that called fault_arm().
 *
 * gcc -shared -fPIC -O2 -o fault_nth.so fault_nth.c -ldl, then LD_PRELOAD. Counted are writes, syncs,
 * cuts, renames, removals and the making of files and folders. `kind`: 0 fails once with `code`,
 * 1 fails from then on (a full or dead disk), 2 writes half of the bytes once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long number = -1, seen;
static int code, kind;
static char last[PATH_MAX + 32];

void fault_arm(const char *below, long n, int error, int how) {
    snprintf(folder, sizeof folder, "%s", below);
    code = error, kind = how;
    __atomic_store_n(&seen, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&number, n, __ATOMIC_SEQ_CST);
}
void fault_disarm(void) { __atomic_store_n(&number, -1, __ATOMIC_SEQ_CST); }
long fault_seen(void) { return __atomic_load_n(&seen, __ATOMIC_SEQ_CST); }
const char *fault_last(void) { return last; }

static int below(const char *path) {
    return path && !strncmp(path, folder, strlen(folder));
}

/* 0: go on, 1: fail, 2: write half */
static int due(const char *name, const char *path) {
    long n = __atomic_load_n(&number, __ATOMIC_SEQ_CST);
    if (n < 0 || !below(path)) return 0;
    long mine = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (n == 0 || (kind == 1 ? mine < n : mine != n)) return 0;
    if (mine == n) snprintf(last, sizeof last, "%s %s", name, path);
    if (kind == 2) return strstr(name, "write") ? 2 : 0;
    return 1;
}
static int due_at(const char *name, int file) {
    char link[64], path[PATH_MAX];
    if (__atomic_load_n(&number, __ATOMIC_SEQ_CST) < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return due(name, path);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL do { errno = code; return -1; } while (0)

ssize_t write(int f, const void *b, size_t n) {
    REAL(write);
    switch (due_at("write", f)) { case 1: FAIL; case 2: n = n > 1 ? n / 2 : n; }
    return real(f, b, n);
}
ssize_t pwrite(int f, const void *b, size_t n, off_t at) {
    REAL(pwrite);
    switch (due_at("pwrite", f)) { case 1: FAIL; case 2: n = n > 1 ? n / 2 : n; }
    return real(f, b, n, at);
}
ssize_t pwrite64(int f, const void *b, size_t n, off64_t at) {
    REAL(pwrite64);
    switch (due_at("pwrite", f)) { case 1: FAIL; case 2: n = n > 1 ? n / 2 : n; }
    return real(f, b, n, at);
}
ssize_t writev(int f, const struct iovec *v, int n) {
    REAL(writev);
    switch (due_at("writev", f)) { case 1: FAIL; case 2: n = n > 1 ? n / 2 : n; }
    return real(f, v, n);
}
int fsync(int f) { REAL(fsync); if (due_at("fsync", f) == 1) FAIL; return real(f); }
int fdatasync(int f) { REAL(fdatasync); if (due_at("fdatasync", f) == 1) FAIL; return real(f); }
int ftruncate(int f, off_t n) { REAL(ftruncate); if (due_at("ftruncate", f) == 1) FAIL; return real(f, n); }
int ftruncate64(int f, off64_t n) { REAL(ftruncate64); if (due_at("ftruncate", f) == 1) FAIL; return real(f, n); }
int rename(const char *a, const char *b) { REAL(rename); if (due("rename", b) == 1) FAIL; return real(a, b); }
int unlink(const char *p) { REAL(unlink); if (due("unlink", p) == 1) FAIL; return real(p); }
int mkdir(const char *p, mode_t m) { REAL(mkdir); if (due("mkdir", p) == 1) FAIL; return real(p, m); }

#define OPEN(name) \
    int name(const char *p, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if ((flags & O_CREAT) && access(p, F_OK) && due("create", p) == 1) FAIL; \
        return real(p, flags, mode); \
    }
OPEN(open)
OPEN(open64)
