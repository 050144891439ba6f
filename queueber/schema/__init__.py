"""The schema files, loaded once: `wire` is what is said, `storage` is what is kept, `original` is
what the original Queueber keeps.

The only place that loads a Cap'n Proto schema.
"""

from pathlib import Path
from typing import Any

import capnp

_HERE = Path(__file__).parent
# The import path holds pycapnp's own schemas: without it a schema that uses streaming aborts the
# process.
_IMPORTS = [str(Path(capnp.__file__).parent)]

wire: Any = capnp.load(str(_HERE / "queueber.capnp"), imports=_IMPORTS)
storage: Any = capnp.load(str(_HERE / "storage.capnp"), imports=_IMPORTS)
original: Any = capnp.load(str(_HERE / "original.capnp"), imports=_IMPORTS)
