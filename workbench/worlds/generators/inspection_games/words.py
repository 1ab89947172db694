"""The words of the world and the public contract."""

from __future__ import annotations

from workbench.worlds import Prompt

SITES = "Anchor-Quay Basin-Nine Cold-Store Dock-East Ferry-Hall Grain-Pier Hangar-Two Inland-Gate Jetty-North Kiln-Yard Lock-Side Mast-Works Net-Loft Oil-Berth".split()
PAYOFFS = {
    "site": "string",
    "route": "string",
    "entry": "string",
    "hits": "integer",
    "trials": "integer",
    "payoff": "string",
}
CERTIFICATE = dict.fromkeys(("site", "side", "strategy", "payoff", "slack"), "string")
SPELLINGS = {"yes": ["Y", "true", "detected"], "no": ["N", "false", "missed"]}


def prompt(port: str) -> Prompt:
    return Prompt(
        goal=f"At every site of {port} an inspector picks a patrol route and an intruder an entry point: a zero-sum game whose chances of detection are known from "
        "trials. Estimate the games, solve them exactly with certificates, and choose the sites that the available hours should cover.",
        inputs={
            "input/sites.json": "per site: routes with cost, entries with stake, hours to cover it; hours available; spellings of outcomes",
            "input/trials/<site>.csv": "trial_id, route, entry, detected (yes or no)",
            "input/corrections.csv": "trial_id, detected: outcomes put right after review",
        },
        requirements=(
            "All arithmetic is exact. A rational is written p/q in lowest terms with q > 0, and as a whole number when q is 1.",
            "payoffs.csv: per site, route and entry the detections (hits), the trials, and the inspector's payoff stake * hits/trials - cost; sorted by site, route, entry.",
            "dominance.json: per site, iterated elimination of strictly dominated pure strategies by pure strategies. In a round every strategy goes that is strictly dominated in the game as "
            "it stood when the round began (the inspector maximises, the intruder minimises), on both sides at once. `rounds` lists the routes and entries that go, "
            "sorted; the last round is the last in which any goes; `routes` and `entries` are those that remain, sorted.",
            "equilibria.json: per site the value, and the optimal mixed strategies with a probability for every route and entry, 0 included. Each game has exactly one equilibrium.",
            "certificate.csv: side route: the route's payoff against the intruder's optimal mix, slack = value - payoff; side entry: the payoff of the inspector's optimal mix against the entry, "
            "slack = payoff - value. Sorted by site, side, strategy. No slack is negative.",
            "coverage.json: the set of sites with the largest sum of values whose hours fit into the available hours; on ties the smaller set, then the one whose sorted list of names comes "
            "first. `sites` sorted, their hours, value (the sum), unused_hours; strongest: the site with the largest value (first name on ties); mixed: sites whose inspector uses more than one route, sorted.",
        ),
        authority=(
            "A trial id that stands twice counts once. A correction overrides the record. Outcomes come in several spellings, listed in sites.json.",
            "Route codes begin with R-, entry codes with E-: where the two stand in each other's column, they were swapped. Trials with a code that sites.json does not know for the site are left out.",
            "A table may have semicolons for separators; sites.old.json is out of date.",
        ),
    )
