"""Files that are never opened: reading them runs what is in them."""

from __future__ import annotations

_PICKLE = "a pickle runs code when it is opened, so that it never is; give the text it holds"
_ARCHIVE = "an archive of this kind is not opened; pack the files as ZIP"
_REASONS = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth", ".ckpt"), _PICKLE),
    **dict.fromkeys((".npy", ".npz"), "a NumPy array may hold a pickle; give a CSV"),
    **dict.fromkeys((".rar", ".7z", ".tar", ".tgz", ".tar.gz", ".tbz2", ".txz"), _ARCHIVE),
}


def refused(suffix: str) -> str:
    """Return why files with this extension are never opened, or ""."""
    return _REASONS.get(suffix, "")
