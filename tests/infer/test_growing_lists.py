

def test_a_list_of_an_array_of_another_length_compiles_nothing() -> None:
    @pyrelay.jit
    def weighted(x, groups):
        return sum(v * k for v, k in zip(x, groups.tolist(), strict=True))

    for n in (6, 7, 90):
        x, groups = np.arange(float(n)), np.arange(n) % 3
        assert weighted(x, groups) == weighted.py(x, groups)
    assert weighted.cache_info().compilations == 1
