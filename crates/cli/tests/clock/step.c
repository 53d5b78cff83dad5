/* A CLOCK_REALTIME that can be stepped for some processes alone: preloaded into them, it adds the
 * nanoseconds to every reading that the file named by STEPPED_CLOCK holds, a signed 64-bit number.
 * No other clock changes, and neither does a timer: as when the clock of a machine is stepped. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *step;
static int (*kernel_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    kernel_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int file = open(getenv("STEPPED_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *page = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, file, 0);
    if (kernel_clock == NULL || page == MAP_FAILED)
        abort();
    step = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (step == NULL)
        begin();
    int failed = kernel_clock(clock, now);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return failed;
    int64_t ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + *step;
    now->tv_sec = ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *now)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now != NULL)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
