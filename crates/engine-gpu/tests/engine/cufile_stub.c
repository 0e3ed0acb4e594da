/* A library with cuFile's interface, for tests: a "GPU's" addresses are the host's. HOW says what it does: reads that are
   short or fail, a driver that does not open, files that are not taken. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct { int err; int cu_err; } Answer;
typedef struct { int type; union { int fd; void *handle; } handle; const void *fs_ops; } Descr;
typedef struct { int fd; int reads; } File;

static int how(const char *name) { return !strcmp(HOW, name); }
static int files;

Answer cuFileDriverOpen(void) {
    Answer answer = { how("closed") ? 5010 : how("open") ? 5026 : how("cuda") ? 5011 : 0, how("cuda") ? 201 : 0 };
    return answer;
}
Answer cuFileDriverClose(void) { Answer answer = { files ? 5030 : 0, 0 }; return answer; }
Answer cuFileHandleRegister(void **out, Descr *descr) {
    Answer answer = { 0, 0 };
    if (how("refuses") || descr->type != 1 || descr->fs_ops) { answer.err = 5008; return answer; }
    File *file = malloc(sizeof *file);
    file->fd = descr->handle.fd, file->reads = 0;
    files++;
    *out = file;
    return answer;
}
void cuFileHandleDeregister(void *file) { files--; free(file); }
ssize_t cuFileRead(void *of, void *base, size_t size, off_t at, off_t offset) {
    File *file = of;
    file->reads++;
    if (how("short") && size > 1) size = size / 2;
    if (how("fails") && file->reads > 1) return -5030;
    if (how("system") && file->reads > 0) { errno = EIO; return -1; }
    if (how("more")) return (ssize_t)size + 1;
    if (how("fails")) size = size / 2;
    return pread(file->fd, (char *)base + offset, size, at);
}
