class Library:
    def __init__(self, image: bytes) -> None: ...
    def load(self, device: int) -> None: ...

MOST_GRAPHS: int

def unload_retired() -> None: ...
def retired() -> int: ...
def graph_count() -> int: ...
def launch_trial() -> tuple[int, int, int, str]: ...
def graphs_wanted() -> bool: ...

class LaunchGraph: ...

class Launch:
    library: Library
    device: int
    def __init__(
        self,
        library: Library,
        device: int,
        block: bytes | bytearray,
        table: bytes,
        table_offset: int,
        large: bool,
        grid: tuple[int, ...],
        wide: tuple[int, ...] | None,
        grid_offset: int,
        source_offset: int,
        source_align: int,
        source: int,
        target_offset: int,
        target_align: int,
        target: int,
    ) -> None: ...
    def launch(self, stream: int = 0) -> None: ...
    @property
    def uses_wide(self) -> bool: ...
