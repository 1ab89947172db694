"""The closed vocabulary of the micro policy: one token for each piece of shell, name and word that its episodes hold.

Word-level, and exact both ways: blanks and line ends belong to pieces or are pieces, so the ids of a known text decode to that text. Everything
outside is `<unk>`, one for each run of other characters without a blank.
"""

from __future__ import annotations

import re

UNKNOWN, PADDING, END = "<unk>", "<pad>", "<end>"
ROLES = ("<system>", "<user>", "<assistant>")
SPECIAL = (UNKNOWN, PADDING, END, *ROLES)

# Pieces that hold blanks, quotes or slashes; a longer one wins. One piece a filter and a sink: every line of a job has the same number of tokens,
# so that a name stands at a fixed distance from where it is copied to. With a token a word the same traces took far longer to learn.
FILTERS = (
    "cat input/",
    "cat input/new/",
    "uniq input/",
    "uniq input/new/",
    "grep -v void input/",
    "grep -v void input/new/",
)
SHELL = (
    *FILTERS, ".txt | ", "head -3", "sort -r", " > output/", ".txt", "mkdir -p output; ", "cat input/note.txt",
    "```bash\n", "\n```", "[exit code 0]", "[exit code ", "]", "\n", " ", "/", " | ", " > ", "; ", "'", '"', ":", ".", "-",
    "input/", "output/", "new/", "note.txt", " -v", " -r", " -3", " -p", " -1", " -u", " -n", "  -",
    "No such file or directory", "Is a directory", "command not found", "worlds compose ",
)  # fmt: skip
WORDS = (
    # programs
    "cat", "uniq", "grep", "head", "tail", "sort", "md5sum", "wc", "tac", "cut", "sed", "ls", "bash", "submit", "line",
    # titles, jobs, remarks
    "shelf", "gate", "top", "seal", "order", "clean", "stale", "double", "void",
    # lists
    "amber", "birch", "cedar", "dune", "elm", "fir", "grove", "hazel", "iris", "jade", "kelp", "lime",
    "maple", "nut", "oak", "pine", "quartz", "reed", "sage", "thyme", "umber", "vine", "willow", "yew",
    # what a proposer reads and writes
    "micro_shelf", "micro_gate", "micro", "unit", "small", "full", "stale_copy", "duplicate_records", "orphan_records",
    "simpler", "harder", "never", "rarely", "sometimes", "often", "always", "none", "other", "propose", "solve",
    # observations
    "malformed", "composed", "refused", "0", "1", "2", "126", "127", "124", "137",
)  # fmt: skip

TEMPLATE = (
    "{%- for m in messages %}{% if m.content or m.role != 'system' %}<{{ m.role }}>{{ m.content }}<end>{% endif %}{% endfor %}"
    "{%- if add_generation_prompt %}<assistant>{% endif %}"
)


def pieces() -> tuple[str, ...]:
    """Every token, in the order of its id."""
    return (*SPECIAL, *SHELL, *WORDS)


def pattern() -> str:
    """Where a text is cut: the longest known piece (words only as whole words), else a run of other characters."""
    shell = sorted(map(re.escape, SHELL), key=len, reverse=True)
    words = sorted(map(re.escape, WORDS), key=len, reverse=True)
    return "|".join([*shell, rf"\b(?:{'|'.join(words)})\b", r"[\w]+", r"[^\s\w]+", r"\s"])


def new_tokenizer():
    """The tokenizer, as transformers knows it, with its chat template."""
    from tokenizers import Regex, Tokenizer, decoders
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(WordLevel({piece: at for at, piece in enumerate(pieces())}, unk_token=UNKNOWN))
    raw.pre_tokenizer = Split(Regex(pattern()), "isolated")
    raw.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        unk_token=UNKNOWN,
        pad_token=PADDING,
        eos_token=END,
        additional_special_tokens=list(ROLES),
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer
