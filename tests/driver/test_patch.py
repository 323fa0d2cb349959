"""`k.update` with plain numbers: written into the bound launch, and nothing else done."""

from double import script


def test_numbers_are_written_in_place():
    script("""
    import fkl.plan, fkl.variant, pickle
    plans = []
    real = fkl.variant._planned
    fkl.variant._planned = lambda *a, **k: plans.append(1) or real(*a, **k)
    a = image(); x, o = dev(a), fkl.empty((9, 14, 3)); mul, div, sub = fkl.Mul(2.0), fkl.Div(4.0), fkl.Sub((1.0, 2.0, 3.0))
    k = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), mul, div, sub, fkl.TensorWrite(o))
    f = np.float32
    def expect(m, d, s): return a.astype(f) * f(m) / f(d) - np.asarray(s, f)
    k(); assert same(o, expect(2, 4, (1, 2, 3)))
    made, planned, patched = calls("GraphInstantiate"), len(plans), calls("GraphSetParams")
    k.update(mul, 3.1); k(); assert same(o, expect(3.1, 4, (1, 2, 3)))
    k.update(sub, (7, 8.5, -9)); k.update(div, 5); assert k.run() is o and same(o, expect(3.1, 5, (7, 8.5, -9)))
    assert (len(plans), calls("GraphInstantiate"), calls("GraphSetParams")) == (planned, made, patched + 2), (len(plans) - planned, calls("GraphInstantiate") - made, calls("GraphSetParams") - patched)
    raises(ValueError, "zero", k.update, div, 0.0); raises(ValueError, "2 numbers", k.update, sub, (1.0, 2.0))
    raises(ValueError, "beyond the range", k.update, mul, 1e39); raises(TypeError, "number", k.update, mul, "a")
    raises(ValueError, "no operation", k.update, [], 1.0); raises(ValueError, "no operation", k.update, fkl.Mul(3.1), 1.0)
    k(); assert same(o, expect(3.1, 5, (7, 8.5, -9)))
    # What asks for the operations sees the numbers.
    assert repr(k.ops[2]) == "Mul(3.1)" and "Sub((7, 8.5, -9))" in repr(k) and "Div(5)" in repr(k.clone())
    k.update(mul, -1.0); other = fkl.empty((9, 14, 3)); assert k(out=other) is other and same(other, expect(-1, 5, (7, 8.5, -9)))
    k.update(mul, 6.0); k(out=other); assert same(other, expect(6, 5, (7, 8.5, -9)))
    # By the object it has become, by index, and with values that take the long way.
    k.update(k.ops[2], 8.0); k(); assert same(o, expect(8, 5, (7, 8.5, -9)))
    k.update(2, np.float64(9.0)); k(); assert same(o, expect(9, 5, (7, 8.5, -9)))
    k.update(mul, np.float32(2)); k.update(mul, value=4); k(); assert same(o, expect(4, 5, (7, 8.5, -9)))
    k.update(mul, 5.0); k(); assert same(o, expect(5, 5, (7, 8.5, -9)))
    k.close(); raises(ValueError, "closed", k.update, mul, 1.0)
    """)


def test_every_type_and_its_limits():
    script("""
    from fkl.dtypes import BASES
    for base in BASES[1:]:
        whole = base.startswith(("int", "uint"))
        info = np.iinfo(base) if whole else None
        values = [1, 0, 100] + ([int(info.min), int(info.max)] if whole else [-2.5, float("inf"), 2**15])
        plain = fkl.empty((4, 3), base); op = fkl.Max(1); low = fkl.empty((4, 3), base)
        if whole: plain.copy_from_host(np.full((4, 3), info.min, base).tobytes())
        else: plain.copy_from_host(bytes(4 * 3 * plain.dtype.itemsize))
        k = fkl.compose(fkl.TensorRead(plain), op, fkl.TensorWrite(low))
        for value in values:
            fresh = fkl.empty((4, 3), base)
            k.update(op, value); k(); fkl.compose(fkl.TensorRead(plain), fkl.Max(value), fkl.TensorWrite(fresh))()
            assert low.copy_to_host() == fresh.copy_to_host(), (base, value)
        if whole:
            for value in (int(info.max) + 1, int(info.min) - 1, 0.5): raises(ValueError, base, k.update, op, value)
        k.update(op, True); k(); assert repr(k.ops[1]) == "Max(True)"
    """)


def test_one_object_at_several_places():
    script("""
    a = image(); x, o, add = dev(a), fkl.empty((9, 14, 3)), fkl.Add(1)
    k = fkl.compose(fkl.TensorRead(x), add, fkl.Cast("float32"), add, fkl.TensorWrite(o))
    k.update(add, 3); k(); assert (o.to_numpy() == (a + np.uint8(3)).astype(np.float32) + 3).all()
    raises(ValueError, "Cast", k.update, add, 0.5); k(); assert (o.to_numpy() == (a + np.uint8(3)).astype(np.float32) + 3).all()
    k.update(add, 7); k(); assert (o.to_numpy() == (a + np.uint8(7)).astype(np.float32) + 7).all()
    """)


def test_threads_update_and_launch():
    script("""
    a = image(); x, o, mul = dev(a), fkl.empty((9, 14, 3)), fkl.Mul(1.0)
    k = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), mul, fkl.TensorWrite(o))
    def work(v):
        for i in range(500): k.update(mul, float(v + i % 3)); k()
    threads = [threading.Thread(target=work, args=(v,)) for v in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    k.update(mul, 2.0); k(); assert same(o, a.astype(np.float32) * 2)
    """)


def test_numbers_that_quotients_cannot_take_for_moderate_go_the_long_way():
    script("""
    import fkl.variant
    plans = []
    real = fkl.variant._planned
    fkl.variant._planned = lambda *a, **k: plans.append(1) or real(*a, **k)
    a = image(); x, o = dev(a), fkl.empty((9, 14, 3)); div = fkl.Div(4.0)
    k = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), div, fkl.TensorWrite(o))
    f = np.float32
    def planned(value):
        before = len(plans); k.update(div, value); k()
        assert same(o, a.astype(f) / f(value)), value
        return len(plans) - before
    assert planned(3.0) == 0 and planned(2.0**24) == 0
    assert planned(1e-9) > 0       # the block's word has to change
    assert planned(5.0) > 0        # and to change back
    assert planned(7.0) == 0
    assert planned(-3.0) > 0       # divisors are positive, so that no quotient is -0
    assert planned(3.0) > 0
    """)


def test_a_negative_zero_goes_the_long_way():
    script("""
    a = image(); x, o = dev(a), fkl.empty((9, 14, 3)); sub = fkl.Sub(4.0)
    k = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), sub, fkl.Div(3.0), fkl.TensorWrite(o))
    f = np.float32
    for value in (0.0, -0.0, 1.0, -0.0, -5.0):
        k.update(sub, value); k(); assert same(o, (a.astype(f) - f(value)) / f(3.0)), value
    """)
