"""The words of the world: names, phrasings of answers and the public contract."""

from __future__ import annotations

from workbench.worlds import Prompt

BENCHMARKS = "OpenRubric ClinQA-Lite TriageBench LexEval FieldNotes SafeRoute CiteCheck PolicyBench".split()
MODELS = "cassini-7b cassini-34b orison-9b orison-70b tern-3b tern-12b palisade-8b palisade-32b quarry-14b vesper-27b".split()
TASKS = {
    "entailment": ("entailed", "neutral", "contradicted"),
    "toxicity": ("safe", "borderline", "unsafe"),
    "grounding": ("supported", "partial", "unsupported", "irrelevant"),
    "triage": ("routine", "urgent", "emergency", "refer"),
    "stance": ("favour", "against", "neither"),
    "quiz": ("A", "B", "C", "D"),
    "intent": ("refund", "cancel", "upgrade", "complain", "other"),
    "citation": ("exact", "paraphrase", "missing"),
}
PHRASES = (
    "Answer: {x}",
    "answer: ({x})",
    "The evidence points one way. ANSWER: {x}.",
    "Answer: {y}. On reflection, answer: {x}",
    "  Answer:   {x}  ",
    "Step 1 weighs {y}; step 2 weighs {x}. Answer: {x}",
)
INVALID = ("Answer: none of these", "I can't decide between {x} and {y}.", "Answer: {x} or {y}", "")
RUNS = ["run_id", "model", "task", "seed", "prompt", "shots", "temperature", "finished"]
STATUS = dict.fromkeys(("run_id", "model", "task"), "string") | {
    "seed": "integer",
    "status": "string",
    "predictions": "integer",
}
METRICS = (
    {"run_id": "string"}
    | dict.fromkeys(("items", "missing", "invalid", "correct"), "integer")
    | dict.fromkeys(("accuracy", "macro_f1", "ece"), "number")
)
PARITY = dict.fromkeys(("model", "task", "claimed", "recomputed", "difference", "verdict", "cause"), "string")


def prompt(benchmark: str) -> Prompt:
    return Prompt(
        goal=f"The published leaderboard of {benchmark} is in doubt. Recompute it from the raw prediction logs under the protocol, "
        "and say for every claimed figure whether it holds and, if not, what explains it.",
        inputs={
            "input/protocol.json": "benchmark, required settings of a run, labels of every task, aliases of models",
            "input/runs.csv": "registry of all uploaded runs",
            "input/gold/<task>.csv": "item and label as first published",
            "input/gold/errata.csv": "corrections of labels, all of them accepted",
            "input/logs/<model>__<task>.jsonl": "raw predictions: run, item, attempt, output, confidence in thousandths",
            "input/archive/<model>__<task>.csv": "a second copy of some logs",
            "input/claims.csv": "accuracy in percent as published",
        },
        requirements=(
            "Registry: map model aliases to the model's name. `finished` is YYYY-MM-DD HH:MM:SS or DD/MM/YYYY HH:MM:SS. A run whose prompt, shots or temperature "
            "differ from the protocol is off_protocol. Of the other runs of one model, task and seed the last finished is counted, the rest "
            "superseded.",
            "Predictions of a run: union of its log and the archive by run, item, attempt; of one item the highest attempt stands. "
            "Lines of runs that the registry does not know are left out.",
            "An answer is what follows the last `answer:` (any case) of an output, without blanks, parentheses and full stops at "
            "its ends, if it equals a label of the task, ignoring case; otherwise, or without `answer:`, it is invalid. Invalid and missing predictions are wrong; a "
            "missing one has confidence 0.",
            "Metrics use the labels after errata, over all items of the task. macro_f1: mean over the task's labels of 2tp/(2tp+fp+fn), 0 where "
            "that is 0/0. ece: ten bins of confidence [0,100), [100,200), … the last with 1000; the sum over bins of |correct - sum of "
            "confidences/1000|, divided by the items. All arithmetic is exact; rounding, half up, happens once, when writing: six decimals.",
            "output/staging/runs.csv and output/staging/run_metrics.csv: all registered runs, sorted by run_id; predictions counts "
            "distinct items with a prediction.",
            "leaderboard.json: models sorted by score, highest first, then name; rank counts from 1 in this order; by_task holds the means of accuracy, macro_f1 and ece "
            "over the counted runs of a task, and their number as runs; score is the mean of the tasks' accuracies. Numbers are text with six decimals.",
            "parity.csv, sorted by model, then task: claimed and recomputed accuracy in percent with two decimals, difference = "
            "claimed - recomputed (two decimals, 0.00 without sign), verdict match or mismatch. cause of a mismatch is the first whose accuracy, in "
            "percent with two decimals, equals the claim: gold_before_errata (counted runs, labels as first published); superseded_runs (of "
            "every seed the first finished run that is not off_protocol); off_protocol_runs (all runs of the pair); else unexplained. It is empty for a match.",
            "report.json: benchmark; runs by status; orphan_runs (run ids in logs or archive that the registry lacks, sorted); errata_applied; "
            "recovered_predictions (run, item, attempt of registered runs that only the archive has); mismatches, sorted `model/task`.",
        ),
        authority=(
            "Where log and archive disagree on a prediction, the log wins. A line that repeats another counts once.",
            "Tables may come with another separator, text encoding or blanks around values: the values are meant without.",
        ),
    )
