"""Writes that fail as those of a broken disk do (EIO), by a library loaded before libc."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

# Writes and syncs of files below $FAILING fail while the file $FAILING_NOW exists.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int fails(int file) {
    const char *below = getenv("FAILING"), *now = getenv("FAILING_NOW");
    char link[64], path[PATH_MAX + 1];
    if (!below || !now || access(now, F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX);
    return length > 0 && strncmp(path, below, strlen(below)) == 0;
}
#define FAIL_OR(name, type, file, given, ...) \
    static type (*real) given; \
    if (!real) real = dlsym(RTLD_NEXT, name); \
    if (fails(file)) { errno = EIO; return -1; } \
    return real(__VA_ARGS__);
ssize_t write(int file, const void *bytes, size_t count) {
    FAIL_OR("write", ssize_t, file, (int, const void *, size_t), file, bytes, count)
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    FAIL_OR("pwrite", ssize_t, file, (int, const void *, size_t, off_t), file, bytes, count, at)
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off_t at) {
    FAIL_OR("pwrite64", ssize_t, file, (int, const void *, size_t, off_t), file, bytes, count, at)
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    FAIL_OR("writev", ssize_t, file, (int, const struct iovec *, int), file, parts, count)
}
int fsync(int file) {
    FAIL_OR("fsync", int, file, (int), file)
}
"""


@dataclass(frozen=True)
class FailingDisk:
    """Files below `folder`, whose writes fail after `fail()` until `mend()`, in processes with the
    `variables`.
    """

    library: Path
    folder: Path
    switch: Path

    @property
    def variables(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.library),
            "FAILING": f"{self.folder}/",
            "FAILING_NOW": str(self.switch),
        }

    def fail(self) -> None:
        self.switch.touch()

    def mend(self) -> None:
        self.switch.unlink()


def failing_disk(folder: Path, place: Path) -> FailingDisk:
    """Compile the library into `place`; skip the test where that is not possible."""
    compiler = shutil.which("gcc")
    if compiler is None or not Path("/proc/self/fd").exists():
        pytest.skip("no gcc, or not Linux: the library that makes writes fail cannot be compiled")
    source, library = place / "failing.c", place / "failing.so"
    source.write_text(SOURCE)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return FailingDisk(library, folder, place / "fails-now")
