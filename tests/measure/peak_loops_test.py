"""The loops that a machine's peaks are measured with do what they say, as compiled: nothing is timed here.

    python tests/measure/peak_loops_test.py

Compiles them as the build does, with each compiler that is installed, and reads the machine code. A loop of arithmetic has no operand in
memory, and sums enough that no instruction waits for its last result; a loop over a buffer touches nothing but the buffer. Prints
"N passed, N failed".
"""

import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests"))

import checks

COMPILERS = [compiler for compiler in ("g++", "clang++-14") if shutil.which(compiler)]

# Of each function: its instruction, and how many of it are under way at most: latency in cycles times how many a core begins in one. The
# largest product among the processors that have it, by Intel's and AMD's optimisation manuals.
ARITHMETIC = {
    "multiply_add_512": (r"vfmadd\w+ps .*zmm", 4 * 2),  # two units of 4 cycles
    "multiply_add_256": (r"vfmadd\w+ps .*ymm", 5 * 2),  # Haswell's and Zen 2's take 5
    "multiply_add_128": (r"mulps .*xmm", 8),  # a product and its addition: 5 + 3 cycles of one unit each
    "multiply_bfloat16": (r"vdpbf16ps .*zmm", 6 * 2),  # 6 cycles in two units, or more than that in one
    "multiply_int16": (r"vpdpwssd .*zmm", 5 * 2),
    "multiply_int8": (r"vpdpbusd .*zmm", 5 * 2),
    "multiply_tiles_at_rest": (r"tdpbf16ps .*tmm", 4),  # 52 cycles, one begins every 16
}
# Of each loop over a buffer: what reads or writes it, and how often in a turn at least.
OVER_MEMORY = {"read_512": (r"vpxorq .*zmm", 6), "read_256": (r"vpxor .*ymm", 6), "read_buffer": (r"\bpxor .*xmm", 6),
               "write_512": (r"vmov\w+ +%zmm", 2), "write_256": (r"vmov\w+ +%ymm", 2), "write_buffer": (r"\bmov[au]p[sd] +%xmm|\bmovdq[au] +%xmm", 2)}


def functions(folder, compiler, source):
    """{name: [(address, instruction)]} of a source file as compiled for a release."""
    made = os.path.join(folder, "made.o")
    subprocess.run([compiler, "-std=c++20", "-O2", "-fPIC", "-I", os.path.join(ROOT, "src"), "-I", os.path.join(ROOT, "include"),
                    "-c", os.path.join(ROOT, "src", source), "-o", made], check=True)
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", made], check=True, capture_output=True, text=True).stdout
    found, current = {}, []
    for line in text.splitlines():
        if begin := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            current = found.setdefault(re.sub(r"\(.*", "", begin[1].replace("(anonymous namespace)::", "")).split("::")[-1], [])
        elif instruction := re.match(r" *([0-9a-f]+):\t(.*)", line):
            current.append((int(instruction[1], 16), instruction[2]))
    return found


def innermost_loops(function):
    """The instructions of each loop that holds no other: from where a jump leads back to, to the jump."""
    spans = []
    for address, instruction in function:
        jump = re.match(r"j\w+ +([0-9a-f]+) ", instruction)
        if jump and function[0][0] <= int(jump[1], 16) <= address:
            spans.append((int(jump[1], 16), address))
    inner = [a for a in spans if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
    return [[text for at, text in function if begin <= at <= end] for begin, end in inner]


def loops_of(function, instruction):
    """Those among them that the instruction is part of."""
    loops = [loop for loop in innermost_loops(function) if any(re.search(instruction, text) for text in loop)]
    assert loops, f"no loop has {instruction}"
    return loops


def compiled(folder, compiler):
    """The functions of all files with such loops."""
    return {name: function for source in ("measure/peak_loops.cc", "backend/amx/peak.cc")
            for name, function in functions(folder, compiler, source).items()}


def check_arithmetic(folder, compiler):
    """Sums stay in registers, and there are enough of them."""
    known = compiled(folder, compiler)
    for name, (instruction, under_way) in ARITHMETIC.items():
        for loop in loops_of(known[name], instruction):
            in_memory = [text for text in loop if re.search(r"\(%", text) and not re.match(r"(data16 |cs )*nop|lea", text)]
            assert not in_memory, f"{name} goes through memory: {in_memory}"
            sums = {re.split(r"[ ,]", text)[-1] for text in loop if re.search(instruction, text)}
            assert len(sums) >= under_way, f"{name} has {len(sums)} sums, {under_way} are needed"


def check_memory(folder, compiler):
    """A pass over a buffer reads it or writes it, and nothing on the stack."""
    known = compiled(folder, compiler)
    for name, (instruction, accesses) in OVER_MEMORY.items():
        frame = "rsp|rbp" if any(re.match(r"mov +%rsp,%rbp", text) for _, text in known[name]) else "rsp"
        for loop in loops_of(known[name], instruction):
            on_stack = [text for text in loop if re.search(rf"\(%({frame})", text)]
            assert not on_stack, f"{name} touches the stack: {on_stack}"
            found = [text for text in loop if "(%" in text and re.search(instruction, text)]
            assert len(found) >= accesses, f"{name} has {len(found)} accesses a turn: {loop}"


if __name__ == "__main__":
    assert COMPILERS, "no compiler"
    sys.exit(checks.run([(f"{check.__name__}[{compiler}]", lambda folder, check=check, compiler=compiler: check(folder, compiler))
                         for check in (check_arithmetic, check_memory) for compiler in COMPILERS], sys.argv[1:]))
