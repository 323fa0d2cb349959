"""A plan -> source text: a straight-line body that calls one device function an operation.

The text holds types only. It is the same for bound and unbound chains, for all sizes and all values, and is what
signatures and cache keys are made of. Knows nothing of compilers or devices. Called by `fkl.variant`.
"""

from __future__ import annotations

from typing import Any

from fkl.plan import PARAMETER_LIMIT, Plan

__all__ = ["generate", "generate_divergent"]


def generate(plan: Plan) -> str:
    """The chain's source text, for NVRTC and for the host compiler.

    Parameters
    ----------
    plan : Plan
        What to spell.

    Returns
    -------
    str
        C++17 that includes headers of ``src_cuda/fkl`` only.
    """
    headers = dict.fromkeys(["fkl/kernel.h", *(h for op in plan.ops for h in op.headers)])
    lines = [*_large(plan.size), *(f'#include "{h}"' for h in headers)]
    lines += ["using namespace fkl;", ""]
    if plan.plane_slots:
        lines.append("struct alignas(16) Plane {")
        lines += [f"  {slot.field.ctype} {slot.name};" for slot in plan.plane_slots]
        lines += ["};", f'static_assert(sizeof(Plane) == {plan.plane_size}, "plane record");', ""]
    lines += ["struct alignas(16) Params {", "  Extents out;"]
    lines += [f"  {slot.field.ctype} {slot.name};" for slot in plan.slots]
    if plan.plane_slots:
        lines += ["  alignas(16) const Plane* table;", f"  Plane inline_table[{plan.inline_planes}];"]
    lines += ["};", f'static_assert(sizeof(Params) == {plan.size}, "parameter block");', ""]
    lines += _scope(bool(plan.plane_slots))
    lines += _chain(plan)
    kind = "FKL_KERNEL" if plan.elementwise else "FKL_SAMPLED_KERNEL"
    kernel = f"{kind}(Params, Chain, {plan.pixels})"
    lines += ["", kernel]
    return "\n".join(lines) + "\n"


def generate_divergent(layout: Any) -> str:
    """The source text of several chains, one of which makes each plane.

    Parameters
    ----------
    layout : DivergentLayout
        Their plans, and where their fields lie; see `fkl.divergent`.
    """
    plans = {i: plan for i, plan in enumerate(layout.plans) if plan is not None}
    headers = dict.fromkeys(["fkl/kernel.h", *(h for plan in plans.values() for op in plan.ops for h in op.headers)])
    lines = [*_large(layout.size), *(f'#include "{h}"' for h in headers)]
    lines += ["using namespace fkl;", "", "struct alignas(16) Plane {", "  i32 which;", "  i32 unused;"]
    lines += [f"  {slot.field.ctype} {slot.name};" for slot in layout.plane_slots]
    lines += ["};", f'static_assert(sizeof(Plane) == {layout.plane_size}, "plane record");', ""]
    lines += ["struct alignas(16) Params {", "  Extents out;"]
    lines += [f"  {slot.field.ctype} {slot.name};" for slot in layout.slots]
    lines += ["  alignas(16) const Plane* table;", f"  Plane inline_table[{layout.inline_planes}];"]
    lines += ["};", f'static_assert(sizeof(Params) == {layout.size}, "parameter block");', ""]
    lines += _scope(True)
    for i, plan in plans.items():
        lines += [f"namespace chain{i} {{", *_chain(plan, f"c{i}_"), "}", ""]
    first, *others = plans
    lines += ["struct Chain {", f"  typedef chain{first}::Chain::Target Target;", "  typedef Exact Math;"]
    lines += [f"  FKL_FN Target::Pixel gather({_ARGUMENTS}) {{"]
    lines += ["    switch (p.plane.which) {"]
    lines += [f"      case {i}: return chain{i}::Chain::at(p, x, y, z);" for i in others]
    lines += [f"      default: return chain{first}::Chain::at(p, x, y, z);", "    }", "  }"]
    lines += [f"  FKL_FN Target::Pixel body({_ARGUMENTS}, const Target::Pixel& a, Exact&) {{ return a; }}"]
    lines += [f"  FKL_FN Target::Pixel at({_ARGUMENTS}) {{ return gather(p, x, y, z); }}", "};", ""]
    return "\n".join([*lines, "FKL_SAMPLED_KERNEL(Params, Chain, 1)"]) + "\n"


def _large(size: int) -> list[str]:
    return ["#define FKL_LARGE_PARAMETERS"] if size > PARAMETER_LIMIT else []


def _chain(plan: Plan, prefix: str = "") -> list[str]:
    source = plan.read.format(plan.in_dtype)  # type: ignore[attr-defined]
    target = plan.write.format(plan.out_dtype)  # type: ignore[attr-defined]
    block = "p.all" if plan.plane_slots or prefix else "p"
    names = {(slot.op, slot.name): f"{block}.{prefix}{slot.name}" for slot in plan.slots}
    names |= {(slot.op, slot.name): f"p.plane.{prefix}{slot.name}" for slot in plan.plane_slots}
    read = names[0, "src"]
    types = [f"  typedef {source} Source;", f"  typedef {target} Target;"]
    load = [f"  FKL_FN Source::Record source(const Scope& p) {{ return {read}; }}"]
    cuts = [i for i, op in enumerate(plan.ops) if op.role == "geometry"]
    lines: list[str] = []
    # A level for the read and one for each geometry operation but the last, each with the elementwise operations that
    # follow. The chain itself is the last level.
    for k, cut in enumerate(cuts):
        begin = cuts[k - 1] if k else 0
        first = _geometry(plan, names, begin, k - 1) if k else "Source::load(source(p), u32(x), u32(y), z)"
        lines += [
            f"struct Level{k} {{", *([] if k else [types[0], *load]), f"  typedef {plan.dtypes[cut].cpixel} Pixel;",
            f"  FKL_FN Pixel at({_SAMPLE}) {{",
            f"    auto a{begin} = {first};",
            *_statements(plan, names, begin + 1, cut, f"a{begin}"),
            "  }",
            "};",
        ]  # fmt: skip
    last = plan.last_level
    if cuts:
        gather = [f"  FKL_FN auto gather({_SAMPLE}) {{", f"    return {_geometry(plan, names, last - 1, len(cuts) - 1)};", "  }"]
    else:
        gather = [f"  FKL_FN Source::Pixel gather({_ARGUMENTS}) {{", "    return Source::load(source(p), x, y, z);", "  }"]
    return [
        *lines, "struct Chain {", *types, f"  typedef {plan.math} Math;", *(load if not cuts else []), *gather,
        f"  template <class M> FKL_FN Target::Pixel body({_ARGUMENTS}, const {plan.dtypes[last].cpixel}& a{last - 1}, "
        "[[maybe_unused]] M& math) {",
        *_statements(plan, names, last, len(plan.ops) - 1, f"a{last - 1}", ", math"),
        "  }",
        f"  FKL_FN Target::Pixel at({_ARGUMENTS}) {{",
        "    Exact math;",
        f"    return body(p, x, y, z, gather(p, {'x, y' if not cuts else 'i32(x), i32(y)'}, z), math);",
        "  }",
        "};",
    ]  # fmt: skip


def _geometry(plan: Plan, names: dict[tuple[int, str], str], cut: int, level: int) -> str:
    """The expression of a geometry operation's pixel, asked of the level before it."""
    fields = [names[cut, f"v{cut}_{n}"] for n in range(len(plan.lowered[cut].fields))]
    return plan.lowered[cut].code.format(*fields, L=f"Level{level}")


def _scope(planes: bool) -> list[str]:
    """What a thread hands down from level to level: the parameter block, and the record of its plane if planes have any."""
    if not planes:
        return ["typedef Params Scope;", "FKL_FN const Scope& scope(const Params& p, i64) { return p; }", ""]
    return [
        "struct Scope {", "  const Params& all;", "  Plane plane;", "};",
        "FKL_FN Scope scope(const Params& p, i64 z) {",
        "  return {p, fetched(p.table, p.inline_table, z)};", "}", "",
    ]  # fmt: skip


_ARGUMENTS = "[[maybe_unused]] const Scope& p, [[maybe_unused]] i64 x, [[maybe_unused]] i64 y, [[maybe_unused]] i64 z"
# Images with geometry have no 2^31 columns or rows.
_SAMPLE = _ARGUMENTS.replace("i64 x", "i32 x").replace("i64 y", "i32 y").replace("i64 z", "u32 z")


def _statements(plan: Plan, names: dict[tuple[int, str], str], begin: int, end: int, current: str,
                math: str = "") -> list[str]:
    """The elementwise operations from ``begin`` to ``end``, one statement each, and the return of the last result.

    ``math`` is the argument that tells divisions how to make quotients.
    """
    lines = []
    for i in range(begin, end):
        low = plan.lowered[i]
        fields = [names[i, f"v{i}_{k}"] for k in range(len(low.fields))]
        lines.append("    " + low.code.format(*fields, x=current, y=f"a{i}", m=math))
        current = f"a{i}"
    return [*lines, f"    return {current};"]
