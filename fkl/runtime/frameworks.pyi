from typing import Any

from fkl.runtime.view import ArrayView

def allocate(like: ArrayView | None, shape: tuple[int, ...], base: str, device: int, stream: int) -> Any: ...
