"""The list of AutoEnvScaling's tables and figures: what each shows, needs, and the command that gets it."""

from __future__ import annotations

from workbench.report import paper_figures_autoenvscaling as draw
from workbench.report.paper_figures import Artefact

COMPARE = "workbench run 20_compare_proposers"
ARMS = "workbench run 40_flywheel --grid arm full static-pool no-proposer-training"
EXTERNAL = "workbench run 40_flywheel --grid arm external static-pool no-feedback"
COLD = "workbench run 30_cold_start"
TRACES = "workbench run 50_label_traces"
ANSWERS = "answers of several proposers to the same assignments"
EVALUATED = "held-out evaluations of the arms during training"
NO_HIL = "HiL-Bench, its tasks and its ask_human tool are not part of this workbench"
NO_DOMAINS = "needs desktops, browsers and GPUs in sandboxes, and three commercial coding agents"
NO_TEXT = "the text at hand has none of its cells"
RATE = "valid-environment rate"

ARTEFACTS = (
    Artefact("autoenvscaling_fig_01_left", "valid environments by method, mean over models", ANSWERS, COMPARE, draw.fig_01_left,
             (("AutoEnvScaling", "largest gain over Prompt"),)),
    Artefact("autoenvscaling_fig_01_middle", "external proposer against a static pool", "arms external and static-pool, evaluated",
             EXTERNAL, draw.fig_01_middle, (("Qwen3.5-9B", "gain"), ("Qwen3.5-35B-A3B", "gain"))),
    Artefact("autoenvscaling_fig_01_right", "one policy in both roles against a static pool", "arms full and static-pool, evaluated",
             ARMS, draw.fig_01_right, (("TB 2.1", "cold start"), ("TB 2.1", "full"), ("TB 2.1", "static pool (Tmax)"))),
    Artefact("autoenvscaling_table_02", "valid environments and cost by method and model", ANSWERS, COMPARE,
             draw.table("autoenvscaling_table_02", draw.table_02), (("DeepSeek-V4-Flash | Prompt", RATE), ("DeepSeek-V4-Flash | AutoEnvScaling", RATE))),
    Artefact("autoenvscaling_fig_03_right", "where proposer runs spend their turns", "labelled episodes", TRACES, draw.fig_03),
    Artefact("autoenvscaling_fig_04", "valid environments by model and method", ANSWERS, COMPARE, draw.fig_04,
             (("DeepSeek-V4-Flash | Prompt", RATE), ("DeepSeek-V4-Flash | AutoEnvScaling", RATE))),
    Artefact("autoenvscaling_fig_05", "files, solver turns and pass rate of valid environments", ANSWERS + ", calibrated", COMPARE,
             draw.fig_05, (("AutoEnvScaling", "solver turns"), ("AutoEnvScaling", "solver pass rate"))),
    Artefact("autoenvscaling_table_03", "score of each arm at a common update", EVALUATED, EXTERNAL,
             draw.table("autoenvscaling_table_03", draw.table_03),
             (("Qwen3.5-9B | GPT-5.6-sol", "full"), ("Qwen3.5-9B | GPT-5.6-sol", "static pool (Tmax)"))),
    Artefact("autoenvscaling_fig_06", "held-out score during training", EVALUATED, ARMS, draw.fig_06,
             (("TB 2.1 | cold start", "0"), ("TB 2.1 | full", "best"))),
    Artefact("autoenvscaling_fig_07", "useful groups and collection time", "solver updates of the arms", ARMS, draw.fig_07,
             (("full against static pool (Tmax)", "useful-group rate"), ("full against static pool (Tmax)", "collection time"))),
    Artefact("autoenvscaling_fig_08", "three proposers from one failed task, first case", "labelled episodes", TRACES, draw.fig_08("chunk-recovery"),
             (("all nine paths", "labelled turns"), ("all nine paths", "classifier agrees, lowest episode"), ("all nine paths", "classifier agrees, highest episode"))),
    Artefact("autoenvscaling_table_04", "HiL-Bench, base and frontier models", "HiL-Bench", "–", draw.table("autoenvscaling_table_04"),
             (("Claude Opus 5", "full_info"), ("Claude Opus 5", "ask_human")), NO_HIL),
    Artefact("autoenvscaling_table_05", "HiL-Bench, training to ask", "HiL-Bench", "–", draw.table("autoenvscaling_table_05"),
             (("RL on generated tasks", "Ask-F1"), ("RL on official tasks", "Ask-F1")), NO_HIL),
    Artefact("autoenvscaling_table_06", "details withheld from one task", "HiL-Bench", "–", draw.table("autoenvscaling_table_06"),
             (("task of Figure 9", "withheld details"),), f"{NO_HIL}; {NO_TEXT}"),
    Artefact("autoenvscaling_table_07", "environments of seven domains", "three coding agents", "–", draw.table("autoenvscaling_table_07"),
             why=f"{NO_DOMAINS}; {NO_TEXT}"),
    Artefact("autoenvscaling_table_08", "admission in seven domains", "three coding agents", "–", draw.table("autoenvscaling_table_08"),
             (("all agents", "acceptance"),), NO_DOMAINS),
    Artefact("autoenvscaling_table_09", "times of two GPU kernels", "an NVIDIA T4", "–", draw.table("autoenvscaling_table_09"),
             (("ragged residual RMSNorm", "highest ratio to baseline"),), "needs an NVIDIA T4 and the two tasks, which are not public"),
    Artefact("autoenvscaling_table_10", "resources of sandboxes", "the paper's sandboxes", "–", draw.table("autoenvscaling_table_10"),
             (("evaluation", "CPUs"), ("evaluation", "memory")), "settings, not a measurement; those of a run are in its params.json"),
    Artefact("autoenvscaling_table_11", "executing the reference solution or not", "harness entries with and without the self-check",
             COMPARE, draw.table("autoenvscaling_table_11", draw.table_11), (("models that the check improves", "models"),)),
    Artefact("autoenvscaling_table_12", "settings of shared-policy training", "a run with solver updates", ARMS,
             draw.table("autoenvscaling_table_12", draw.table_12), (("rollouts per solver group", "value"), ("rollouts per proposer group", "value"))),
    Artefact("autoenvscaling_fig_20", "validity of the proposer during training", "proposer phases of the arms", ARMS, draw.fig_20,
             (("cold start", "0"), ("full", "end"), ("no proposer training", "160"))),
    Artefact("autoenvscaling_fig_21", "valid environments before and after Cold-Start", "answers before and after Cold-Start", COLD, draw.fig_21,
             (("Qwen3.6-35B-A3B (base)", RATE), ("Qwen3.6-35B-A3B (Cold-Start)", RATE))),
    Artefact("autoenvscaling_fig_22", "turns of proposer episodes", ANSWERS, COMPARE, draw.fig_22, (("Claude Opus 5", "median"),)),
    Artefact("autoenvscaling_table_13", "Cold-Start: environments and solving", "answers and solving before and after, paired", COLD,
             draw.table("autoenvscaling_table_13", draw.table_13), (("acceptance", "for Cold-Start"), ("acceptance", "for the base"), ("solving", "mean paired change"))),
    Artefact("autoenvscaling_fig_23", "three proposers from one failed task, second case", "labelled episodes", TRACES, draw.fig_08("stack-language")),
    Artefact("autoenvscaling_fig_24", "three proposers from one failed task, third case", "labelled episodes", TRACES, draw.fig_08("config-merge")),
)  # fmt: skip
