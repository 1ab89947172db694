"""A profile is a file of values, `profiles/<name>.yaml`; no code asks which one it is.

A file has one section for each notebook; one that says `like: micro` has micro's values where it states none of its own. A value stands by itself (`rounds: 1`) or with where it is from:
`rounds: {value: 1, source: "AutoEnvScaling, Table 3"}`. A published setting that no paper states has the source
`unpublished` and the value null: nothing is invented, and whoever runs that profile must give it as a parameter.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROFILE_ENV = "WORKBENCH_PROFILE"
FOLDER = Path(__file__).parent / "profiles"


class ProfileError(ValueError):
    """No such profile, notebook or value; the message names what there is."""


class Profile(Mapping[str, Any]):
    """The values of one profile for one notebook, as a mapping and as attributes; `table()` shows them."""

    def __init__(self, name: str, notebook: str, values: Mapping[str, Any], sources: Mapping[str, str]):
        self.name, self.notebook = name, notebook
        self.values_by_name, self.sources = dict(values), dict(sources)

    def __getitem__(self, key: str) -> Any:
        if key not in self.values_by_name:
            raise ProfileError(f"profile {self.name} has no value {key!r} for {self.notebook}{_close(key, self)}")
        if self.values_by_name[key] is None and self.sources.get(key) == "unpublished":
            raise ProfileError(f"{key} is unpublished, so profile {self.name} has no value: give it as a parameter")
        return self.values_by_name[key]

    def __contains__(self, key: object) -> bool:
        return key in self.values_by_name

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or `default` for a name that the profile does not have; an unpublished value is still refused."""
        return self[key] if key in self.values_by_name else default

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_") or key in ("values_by_name", "sources"):
            raise AttributeError(key)
        try:
            return self[key]
        except ProfileError as error:
            raise AttributeError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def table(self) -> list[dict[str, Any]]:
        """Rows `name`, `value`, `source`."""
        return [{"name": k, "value": v, "source": self.sources.get(k, "")} for k, v in self.values_by_name.items()]

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {self.notebook!r}, {self.values_by_name})"


def profile_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def profile_name(default: str) -> str:
    """$WORKBENCH_PROFILE when it is set (tests of notebooks set it), else the notebook's own."""
    return os.environ.get(PROFILE_ENV) or default


def load_profile(notebook: str, profile: str, **overrides: Any) -> Profile:
    """The values of `profile` (or of $WORKBENCH_PROFILE) for a notebook.

    overrides: the notebook's own parameters; those that are None or "" leave the profile's value as it is. A name
    that the profile does not have raises ProfileError: it would have had no effect.
    """
    name = profile_name(profile)
    section = _section(name, notebook)
    values, sources = {}, {}
    for key, entry in section.items():
        stated = isinstance(entry, dict) and entry.keys() == {"value", "source"}
        values[key] = entry["value"] if stated else entry
        sources[key] = str(entry["source"]) if stated else ""
    for key, value in overrides.items():
        if key not in values:
            raise ProfileError(f"profile {name} has no value {key!r} for {notebook}{_close(key, values)}")
        if value is not None and value != "":
            values[key], sources[key] = value, "parameter"
    return Profile(name, notebook, values, sources)


def _section(name: str, notebook: str) -> dict[str, Any]:
    """The file's section for the notebook, laid over that of the profile that it says it is `like`."""
    import yaml

    if name not in profile_names():
        raise ProfileError(f"no profile {name!r}: there are {', '.join(profile_names())}")
    sections = yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) or {}
    base = _section(sections["like"], notebook) if "like" in sections else {}
    if notebook not in sections and "like" not in sections:
        raise ProfileError(f"{name}.yaml has no section for the notebook {notebook!r}: add `{notebook}: {{}}`")
    own = sections.get(notebook) or {}
    if strange := sorted(own.keys() - base.keys()) if base else []:
        raise ProfileError(
            f"{name}.yaml: {strange[0]!r} is no value of profile {sections['like']}{_close(strange[0], base)}"
        )
    return {**base, **own}


def _close(key: str, known: Mapping[str, Any]) -> str:
    match = difflib.get_close_matches(key, list(known), 1)
    return f"; did you mean {match[0]!r}?" if match else f"; it has {', '.join(known) or 'none'}"
