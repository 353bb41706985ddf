"""The bare runner: a static program that holds the candidate's functions and calls them when it is asked.

There is no Python in it and no dynamic linker. Arguments lie in memory that it shares with the candidate's
process; before the first call it gives up every system call but those for its own memory, for the one
socket it is asked through, and for ending. The time-stamp counter is switched off.
"""

from __future__ import annotations

from torchstone.kernels.c.source import CSource

CPP_SUPPORT = {
    "_Znwm": "void *_Znwm(unsigned long n) { return needed(n); }",
    "_Znam": "void *_Znam(unsigned long n) { return needed(n); }",
    "_ZdlPv": "void _ZdlPv(void *p) { free(p); }",
    "_ZdaPv": "void _ZdaPv(void *p) { free(p); }",
    "_ZdlPvm": "void _ZdlPvm(void *p, unsigned long n) { free(p); }",
    "_ZdaPvm": "void _ZdaPvm(void *p, unsigned long n) { free(p); }",
    "_ZSt17__throw_bad_allocv": "void _ZSt17__throw_bad_allocv(void) { abort(); }",
    "_ZSt28__throw_bad_array_new_lengthv": "void _ZSt28__throw_bad_array_new_lengthv(void) { abort(); }",
    "_ZSt20__throw_length_errorPKc": "void _ZSt20__throw_length_errorPKc(const char *s) { abort(); }",
    "_ZSt20__throw_out_of_rangePKc": "void _ZSt20__throw_out_of_rangePKc(const char *s) { abort(); }",
    "_ZSt24__throw_out_of_range_fmtPKcz": "void _ZSt24__throw_out_of_range_fmtPKcz(const char *s, ...) { abort(); }",
    "_ZSt25__throw_bad_function_callv": "void _ZSt25__throw_bad_function_callv(void) { abort(); }",
}
"""What C++ asks of its library: memory, and an end where a container or a function object is used wrongly."""
MOST_ARGUMENTS = 48
"""Arguments of one function: a message has room for so many."""
_MAIN = r"""#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

DECLARATIONS

enum { LINK = 3, HEAP = 4, INPUTS = 5, MOST = MOST_ARGUMENTS };
struct argument { int64_t kind; union { int64_t whole; double real; } value; };
struct message { int64_t function, count; struct argument given[MOST]; };

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#else
#error "no filter of system calls for this machine"
#endif
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define IS(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (then), (otherwise))
#define HAS(bits, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (then), (otherwise))
#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) offsetof(struct seccomp_data, args[n])

static int close_in(void) {
  struct sock_filter lines[] = {
    LOAD(offsetof(struct seccomp_data, arch)), IS(MACHINE, 1, 0), ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(NUMBER),
    IS(__NR_exit, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_exit_group, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_futex, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_brk, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_munmap, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_mremap, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_madvise, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_rt_sigreturn, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_mmap, 0, 4), LOAD(ARGUMENT(2)), HAS(PROT_EXEC, 0, 1), ANSWER(SECCOMP_RET_KILL_PROCESS),
    ANSWER(SECCOMP_RET_ALLOW),
    IS(__NR_fstat, 0, 4), LOAD(ARGUMENT(0)), IS(INPUTS, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
#ifdef __NR_newfstatat
    IS(__NR_newfstatat, 0, 4), LOAD(ARGUMENT(0)), IS(INPUTS, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
#endif
    IS(__NR_read, 1, 0), IS(__NR_write, 0, 3),
    LOAD(ARGUMENT(0)), IS(LINK, 0, 1), ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog filter = { sizeof lines / sizeof lines[0], lines };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
#ifdef PR_SET_TSC
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
#endif
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

static char *mapped(int handle, int sharing, int64_t *size) {
  struct stat about;
  if (fstat(handle, &about) || !about.st_size) return 0;
  *size = about.st_size;
  void *found = mmap(0, about.st_size, PROT_READ | PROT_WRITE, sharing, handle, 0);
  return found == MAP_FAILED ? 0 : found;
}

static int whole(int writes, void *data, int64_t size) {
  for (int64_t done = 0; done < size;) {
    int64_t count = writes ? write(LINK, (char *)data + done, size - done)
                           : read(LINK, (char *)data + done, size - done);
    if (count <= 0) return 0;
    done += count;
  }
  return 1;
}

int main(void) {
  static struct message asked;
  int64_t heap_bytes = 0, input_bytes = 0;
  char *heap = mapped(HEAP, MAP_SHARED, &heap_bytes), *inputs = 0, *p[MOST];
  mallopt(M_PERTURB, 0x80);
  if (!heap || close_in()) return 71;
  while (whole(0, &asked, 16) && asked.count >= 0 && asked.count <= MOST) {
    if (!whole(0, asked.given, asked.count * (int64_t)sizeof asked.given[0])) return 72;
    for (int64_t i = 0; i < asked.count; i++) {
      if (asked.given[i].kind == 3 && !inputs) inputs = mapped(INPUTS, MAP_PRIVATE, &input_bytes);
      p[i] = (asked.given[i].kind == 2 ? heap : inputs) + asked.given[i].value.whole;
    }
    switch (asked.function) {
CASES
      default: break;
    }
    int64_t done = asked.function;
    if (!whole(1, &done, sizeof done)) return 73;
  }
  return 0;
}
"""


_NEEDED = """#include <stdlib.h>
static void *needed(unsigned long n) {
  void *found = malloc(n ? n : 1);
  if (!found) abort();
  return found;
}"""


def exported_name(number: int) -> str:
    """What a function of the candidate is called in the runner: no name of any C library."""
    return f"torchstone_candidate_function_{number}"


def runner_source(source: CSource) -> str:
    """The program around the candidate's functions."""
    declared, cases = [], []
    for number, types in enumerate(source.prototypes.values()):
        name = exported_name(number)
        kinds = ", ".join(kind.replace("*", " *") for kind in types) or "void"
        declared.append(f"void {name}({kinds});")
        given = ", ".join(_argument(kind, i) for i, kind in enumerate(types))
        cases.append(f"      case {number}: {name}({given}); break;")
    text = _MAIN.replace("MOST = MOST_ARGUMENTS", f"MOST = {MOST_ARGUMENTS}")
    if source.is_cpp:
        declared += [_NEEDED, *CPP_SUPPORT.values()]
    return text.replace("DECLARATIONS", "\n".join(declared)).replace("CASES", "\n".join(cases))


def _argument(kind: str, number: int) -> str:
    if kind.endswith("*"):
        return f"(void *)p[{number}]"
    value = f"asked.given[{number}]"
    return f"({kind})({value}.kind == 1 ? {value}.value.real : {value}.value.whole)"
