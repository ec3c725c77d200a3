"""A clock of the day that is set forward and back while a process runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.preload import compile_library

DAY_S = 86_400
# The clock of the day is ahead by as many seconds as the file $CLOCK_AHEAD says; the others run on.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void) {
    const char *name = getenv("CLOCK_AHEAD");
    long seconds = 0;
    FILE *file = name ? fopen(name, "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
        fclose(file);
    }
    return seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && clock == CLOCK_REALTIME) now->tv_sec += ahead();
    return status;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    int status = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return status;
}
time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""


@dataclass(frozen=True)
class JumpingClock:
    """The clock of the day of processes with the `variables`, set by `jump`."""

    library: Path
    setting: Path

    @property
    def variables(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "CLOCK_AHEAD": str(self.setting)}

    def jump(self, seconds: int) -> None:
        """Set the clock `seconds` ahead of the true time; behind it, if they are below 0."""
        fresh = self.setting.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.rename(self.setting)


def jumping_clock(place: Path) -> JumpingClock:
    """Compile the library into `place`; skip the test where that is not possible."""
    return JumpingClock(compile_library(SOURCE, place), place / "ahead")
