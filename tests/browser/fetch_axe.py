"""Download axe-core from the npm registry: `python tests/browser/fetch_axe.py`.

The accessibility tests run this library in each page. The library is licensed under the Mozilla Public Licence 2.0, and is not part of the
tcptrace-lab package. The downloaded file must have the hash that the registry publishes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from pathlib import Path
from urllib.request import urlopen

VERSION = "4.14.1"
ADDRESS = f"https://registry.npmjs.org/axe-core/-/axe-core-{VERSION}.tgz"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""The hash of this version, which the registry publishes as `dist.integrity`."""

MAX_BYTES = 20_000_000
"""Maximum size of the download in bytes. The tarball has 3 MB."""

PLACE = Path(__file__).parents[2] / ".ci" / "cache" / f"axe-core-{VERSION}.min.js"
"""The script is stored inside the checkout, and git ignores it."""


def fetch() -> Path:
    """Return the path of the axe-core script.

    Download the script if it is missing.

    Raises: OSError: the registry could not be reached. ValueError: the download does not match the registry's hash.
    """
    if PLACE.is_file():
        return PLACE
    with urlopen(ADDRESS, timeout=60) as answer:
        tarball = answer.read(MAX_BYTES)
    if base64.b64encode(hashlib.sha512(tarball).digest()).decode() != SHA512:
        raise ValueError(f"{ADDRESS} is not what its hash says")
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        script = archive.extractfile("package/axe.min.js")
        if script is None:
            raise ValueError(f"{ADDRESS} holds no axe.min.js")
        content = script.read()
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    part = PLACE.with_suffix(".part")
    part.write_bytes(content)
    part.replace(PLACE)
    return PLACE


if __name__ == "__main__":
    fetch()
