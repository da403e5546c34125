"""The page as one file: markup, style, script and data put together, and what a browser may do with it.

Owns packing and the policy. Nothing of a task's or a file's becomes markup: data is packed JSON that the script shows as text.
"""

import base64
import gzip
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
_MARK = re.compile(r"\{\{(\w+)\}\}")


def html_of(data: dict[str, Any], *, live: str | None = None) -> bytes:
    """The HTML of a page.

    Args:
        data: `content.run_content`.
        live: the version of this page, if a server has it and renews it; the script then asks that server, and nobody else, for
            the next one.
    """
    style, script = _part("page.css"), _part("page.js")
    policy = {
        "default-src": "'none'",
        "img-src": "data: blob:",
        "style-src": f"'sha256-{_digest(style)}'",
        "script-src": f"'sha256-{_digest(script)}'",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    parts = {
        "policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "title": html.escape(f"{data['name']} · evo"),
        "style": style,
        "script": script,
        "data": packed({**data, "live": live}),
    }
    return _MARK.sub(lambda mark: parts[mark[1]], _part("page.html")).encode(errors="replace")  # a folder's name may be no text


def packed(data: Any) -> str:
    """JSON, compressed and in base64, which has none of the characters that begin markup."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@cache
def _part(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
