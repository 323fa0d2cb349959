"""What fkl itself costs a call: launches go to a driver that does nothing, so only fkl's and Python's own work is left.

    python benchmarks/overhead.py

Needs no GPU: the driver is the double of the tests, built by the host's C compiler. The loop around the calls is measured
and taken off; the figure is the least of seven rounds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from common import arguments, save, table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

#: Nanoseconds to stay below.
LIMITS = {"k()": 60, "k(stream=s)": 70, "k(x, out=y)": 150}

SCRIPT = """
import json, time
D.double_idle(1)

def cost(code, **names):
    # The loop is compiled with the call in it, so that nothing but the call is added to it.
    text = "def run(n, time):\\n  t = time()\\n  for _ in range(n):\\n    {}\\n  return (time() - t) / n\\n"
    rounds = []
    for body in ("pass", code):
        exec(text.format(body), names)
        rounds.append(min(names["run"](200_000, time.perf_counter_ns) for _ in range(7)))
    return rounds[1] - rounds[0]

x, y, s, mul = dev(np.ones(64, np.float32)), fkl.empty((64,)), fkl.Stream(), fkl.Mul(2.0)
k = fkl.compose(fkl.TensorRead(x), mul, fkl.TensorWrite(y))
unbound = fkl.compose(fkl.TensorRead(), mul, fkl.TensorWrite())
unbound(x, out=y)
x2 = dev(np.ones(64, np.float32))
print(json.dumps({
    "k()": cost("k()", k=k),
    "k(stream=s)": cost("k(stream=s)", k=k, s=s),
    "k(x, out=y)": cost("k(x, out=y); k(x2, out=y)", k=unbound, x=x, x2=x2, y=y) / 2,
    "k.update(op, v)": cost("k.update(op, 3.0)", k=k, op=mul),
}))
"""


def main() -> None:
    args = arguments(__doc__)
    from double import MORE, check

    found = json.loads(check(MORE + SCRIPT))
    rows = [("Python-side cost, a driver that does nothing", "ns", "at most")]
    rows += [(name, f"{value:.0f}", str(LIMITS.get(name, ""))) for name, value in found.items()]
    table(rows)
    if args.out:
        save(args.out, "overhead", {"nanoseconds": found, "limits": LIMITS})


if __name__ == "__main__":
    main()
