// Makes fsync(2) and fdatasync(2) take five milliseconds longer, as on a disk that is far away.
// Preloaded into a database server by BenchmarkSlowCommit.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static int late(const char *name, int fd) {
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	usleep(5000);
	return real(fd);
}

int fsync(int fd) { return late("fsync", fd); }
int fdatasync(int fd) { return late("fdatasync", fd); }
