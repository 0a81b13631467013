/* A wall clock that is moved by the seconds in a shared file. The calls go to
 * the kernel by syscall(): the program's allocator may ask for the time before
 * anything else is ready. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void) {
	const char *path = getenv("CLOCK_OFFSET_FILE");
	int file = path ? open(path, O_RDONLY) : -1;
	if (file < 0)
		return;
	void *page = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (page != MAP_FAILED)
		offset = page;
}

int gettimeofday(struct timeval *now, void *zone) {
	int failed = syscall(SYS_gettimeofday, now, zone);
	if (!failed && offset)
		now->tv_sec += *offset;
	return failed;
}

int clock_gettime(clockid_t id, struct timespec *now) {
	int failed = syscall(SYS_clock_gettime, id, now);
	if (!failed && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		now->tv_sec += *offset;
	return failed;
}

time_t time(time_t *out) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
