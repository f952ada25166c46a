"""The answers of `dpfda plan` as text."""

from __future__ import annotations

from typing import Any

from dpfda.cli.terminal import Terminal

_MODELS = {"none": "no privacy, pooled", "central": "central: all data pooled", "federated": "federated",
           "local": "local: every subject alone"}  # fmt: skip
_RATES = {"none": "no privacy", "cdp": "central", "fdp": "federated", "ldp": "local"}
_NAMES = {"n": "subjects", "m": "visits", "S": "sites", "epsilon": "budget"}


def print_answers(found: dict[str, Any], terminal: Terminal, *, units: str, verbose: bool = False) -> None:
    """On stdout; the theory of rates only if `verbose`."""
    out, forecast = terminal.out, found["forecast"]
    out.print(_describe_study(found["study"]))
    out.print(
        f"\nForecast of the typical distance from the truth: [bold]{forecast['typical_distance']:.3g}[/bold] (unit: {units})"
    )
    out.print(found["trust"]["forecast"])
    if forecast["insufficient"]:
        out.print("[bold red]This budget is too small for so few subjects: expect a level, not a shape.[/bold red]")
    for sentence in found["sentences_with_theory" if verbose else "sentences"]:
        out.print(sentence)
    _print_decision(found, out)
    if "unequal" in found:
        _print_sites(found["unequal"], out)
    if "target" in found:
        _print_target(found, out)
    if verbose:
        _print_theory(found, out)


def _describe_study(study: dict[str, Any]) -> str:
    """Sizes and promises as they were given."""
    visits = f"{study['m']:g} visits each"
    if study["sites"]:
        sites = "; ".join(
            f"{site['name']}: {site['n']:,} subjects, epsilon = {site['epsilon']:g}, delta = {site['delta']:g}"
            for site in study["sites"]
        )
        return f"[bold]{study['subjects']:,} subjects at {study['S']} sites, {visits}[/bold]\n{sites}"
    sites = f" at each of {study['S']} sites" if study["S"] > 1 else ""
    promise = f"epsilon = {study['epsilon']:.3g}, delta = {study['delta']:g}"
    return f"[bold]{study['n']:,} subjects{sites}, {visits}, {promise}[/bold]"


def _print_decision(found: dict[str, Any], out: Any) -> None:
    """Typical distances by model, sites and budget; what reaches the target is marked."""
    decision = found["decision"]
    budgets = decision["epsilon"]
    if budgets is None:
        heads = [f"\nbudgets x{times:g}" for times in decision["epsilon_times"]]
    else:
        heads = [f"\neps {budget:.3g}" for budget in budgets]
    out.print(f"\n[bold]Which model, which budget, how many sites[/bold] (the same {decision['subjects']:,} subjects)")
    table = _table("Typical distance", *heads)
    for row in decision["rows"]:
        meets = row["meets_target"] or [False] * len(heads)
        cells = [
            f"{value:.3g}{' *' if good else ''}" for value, good in zip(row["typical_distance"], meets, strict=True)
        ]
        sites = f" at {row['sites']} sites" if row["model"] == "federated" else ""
        strictest = ", the strictest promise" if row["model"] == "central" and budgets is None else ""
        table.add_row(_MODELS[row["model"]] + sites + strictest, *cells)
    out.print(table)
    if "target" in found:
        out.print(f"* meets the typical distance of {found['target']['typical_distance']:.3g}", style="dim")
    price = found["price"]["by_forecast"]
    words = ", ".join(f"{_RATES[name]} {price[name]:.3g}" for name in ("cdp", "fdp", "ldp"))
    out.print(found["trust"]["local"])
    out.print(f"Squared error over that without privacy, at your budget: {words}.")


def _print_sites(unequal: dict[str, Any], out: Any) -> None:
    table = _table("\nSite", "\nwithout it, squared error times")
    for row in unequal["without"]:
        table.add_row(row["site"], f"{row['error_times']:.2f}")
    out.print(table)


def _print_theory(found: dict[str, Any], out: Any) -> None:
    """Regime, boundary, lower bound and rates: up to constants and logarithms."""
    theory = found["theory"]
    out.print(f"\n[bold]Theory[/bold] ({theory['note']})")
    if found["study"]["sites"]:
        equal = found["study"]
        out.print(
            f"Sites differ: regime and rates are those of {equal['S']} equal sites with the same sums of n and (n eps)^2, "
            "which stand for them here and nowhere else."
        )
    out.print(f"Regime in theory: [bold]{theory['dominant']}[/bold] ({theory['source']}). {_exits(theory)}")
    for condition in theory["upper_conditions"]:
        seen = "holds" if condition["holds"] else "does NOT hold, so the upper bound is not proved here"
        out.print(
            f"Condition of the upper bound ({condition['source']}): {condition['shape']}: {condition['left']:.3g} against "
            f"{condition['right']:.3g}, {seen} (constant 1, eta = 0.05).",
            markup=False,
        )
    out.print(_delta(theory["delta_condition"]))
    compared = "; ".join(
        f"{row['problem']} ({row['protects']} protected) {row['rate']:.2g}" for row in theory["compared"]
    )
    out.print(f"Rates with the same subjects: {compared}.")
    rates = found["price"]["by_rate"]
    out.print(
        "Price of privacy by the rate: " + ", ".join(f"{_RATES[name]} {rates[name]:.3g}" for name in _RATES) + "."
    )
    factors = ", ".join(f"{_NAMES[name]} {2**power:.2f}" for name, power in theory["elasticities"].items())
    out.print(f"Doubling multiplies the squared error, by the rate, as follows: {factors}.")
    if "unequal" in found:
        bound = found["unequal"]
        out.print(
            f"Rate for these sites as they are ({bound['source']}): at most {bound['upper']:.2g}, at least "
            f"{bound['lower']:.2g}, up to constants and logarithms."
        )


def _exits(theory: dict[str, Any]) -> str:
    if not theory["exits"]:
        return "No other term would take over by changing one size alone."
    near = min(theory["exits"], key=lambda way: max(way["factor"], 1 / way["factor"]))
    return (
        f"Nearest boundary: {_NAMES[near['variable']]} times {near['factor']:.3g}, where the {near['next_dominant']} term "
        "takes over."
    )


def _delta(condition: dict[str, Any]) -> str:
    """Whether the lower bound is proved at this delta."""
    where = "" if condition["site"] is None else f" at {condition['site']}, the site nearest to its limit,"
    proved = (
        f"The lower bound ({condition['source']}) is proved for epsilon below 1 and {condition['condition']}, up to a "
        f"constant:{where} delta up to about {condition['largest_delta']:.2g}"
    )
    if condition["holds"]:
        return f"{proved}. No method can do better than the rate at your delta ({condition['delta']:g})."
    yours = f"Your delta is {condition['delta']:g}"
    yours += "" if condition["epsilon_below_one"] else ", and an epsilon is not below 1"
    return (
        f"{proved}. {yours}: the promise, the rate and the forecast hold, but it is not proved there that nothing better is "
        "possible."
    )


def _table(*columns: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    return table


def _print_target(found: dict[str, Any], out: Any) -> None:
    target, study = found["target"], found["study"]
    unequal = bool(study["sites"])
    if target["width"] is None:
        out.print(f"\nFor a typical distance of {target['typical_distance']:g}:")
    else:
        out.print(
            f"\nFor a pointwise 95% band of width {target['width']:g} "
            f"(a typical distance of {target['typical_distance']:.3g}; the simultaneous band of a fit is wider):"
        )
    if target["epsilon"] is None:
        out.print("  no budget is enough with these subjects and visits: sampling alone is larger")
    elif unequal:
        out.print(f"  the budget of every site times [bold]{target['epsilon_times']:.3g}[/bold], or")
    else:
        out.print(f"  epsilon = [bold]{target['epsilon']:.3g}[/bold] with {study['n']:,} subjects per site, or")
    if target["n"] is None:
        out.print("  no number of subjects is enough with these visits and basis")
    elif unequal:
        out.print(f"  the subjects of every site times [bold]{target['n_times']:.3g}[/bold]")
    else:
        out.print(f"  [bold]{target['n']:,}[/bold] subjects per site with epsilon = {study['epsilon']:.3g}")
