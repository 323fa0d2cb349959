"""A plan -> source text: a straight-line body that calls one device function an operation.

The text holds types only. It is the same for bound and unbound chains, for all sizes and all values, and is what
signatures and cache keys are made of. Knows nothing of compilers or devices. Called by `fkl.variant`.
"""

from __future__ import annotations

from fkl.plan import Plan

__all__ = ["generate"]


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
    lines = [f'#include "{h}"' for h in headers]
    lines += ["using namespace fkl;", ""]
    if plan.plane_slots:
        lines.append("struct Plane {")
        lines += [f"  {slot.field.ctype} {slot.name};" for slot in plan.plane_slots]
        lines += ["};", f'static_assert(sizeof(Plane) == {plan.plane_size}, "plane record");', ""]
    lines += ["struct alignas(8) Params {", "  Extents out;"]
    lines += [f"  {slot.field.ctype} {slot.name};" for slot in plan.slots]
    if plan.plane_slots:
        lines += ["  alignas(8) const Plane* table;", f"  Plane inline_table[{plan.inline_planes}];"]
        lines += ["  FKL_MEMBER const Plane& plane(i64 z) const { return (table ? table : inline_table)[z]; }"]
    lines += ["};", f'static_assert(sizeof(Params) == {plan.size}, "parameter block");', ""]
    lines += _chain(plan)
    lines += ["", f"FKL_KERNEL(Params, Chain, {plan.pixels})"]
    return "\n".join(lines) + "\n"


def _chain(plan: Plan) -> list[str]:
    source = plan.read.format(plan.in_dtype)  # type: ignore[attr-defined]
    target = plan.write.format(plan.out_dtype)  # type: ignore[attr-defined]
    read = "p.plane(z).src" if plan.source.field.per_plane else "p.src"
    lines = [
        "struct Chain {",
        f"  typedef {source} Source;",
        f"  typedef {target} Target;",
        f"  FKL_FN const Source::Record& source(const Params& p, [[maybe_unused]] i64 z) {{ return {read}; }}",
        "  FKL_FN Target::Pixel body([[maybe_unused]] const Params& p, [[maybe_unused]] i64 x, [[maybe_unused]] i64 y,",
        "                            [[maybe_unused]] i64 z, const Source::Pixel& a0) {",
    ]
    names = {(slot.op, slot.name): f"p.{slot.name}" for slot in plan.slots}
    names |= {(slot.op, slot.name): f"p.plane(z).{slot.name}" for slot in plan.plane_slots}
    current = "a0"
    for i, low in enumerate(plan.lowered[1:-1], 1):
        fields = [names[i, f"v{i}_{k}"] for k in range(len(low.fields))]
        lines.append("    " + low.code.format(*fields, x=current, y=f"a{i}"))
        current = f"a{i}"
    lines += [
        f"    return {current};",
        "  }",
        "  FKL_FN Target::Pixel at(const Params& p, i64 x, i64 y, i64 z) {",
        "    return body(p, x, y, z, Source::load(source(p, z), x, y, z));",
        "  }",
        "};",
    ]
    return lines
