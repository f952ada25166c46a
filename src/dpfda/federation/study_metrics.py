"""Counters of a study under way for a monitoring system: what the coordinator's status file says, and nothing else."""

from __future__ import annotations

from dpfda.federation.metrics import Metric, MetricsServer
from dpfda.federation.status import UNDER_WAY
from dpfda.federation.workspace import StudyFolder


def serve_metrics(folder: StudyFolder, port: int) -> MetricsServer:
    """Counters of this study at 127.0.0.1, while it is entered."""
    return MetricsServer(port, lambda: collect_metrics(folder))


def collect_metrics(folder: StudyFolder) -> list[Metric]:
    """Rounds, and for each site whether it answered the last question and how many."""
    status = folder.true_status()
    if status is None:
        return []
    named, under_way = {"study": status.study}, float(status.phase in UNDER_WAY)
    found = [
        Metric("dpfda_study_rounds", "Rounds that the study has.", status.rounds, labels=named),
        Metric("dpfda_study_rounds_done_total", "Rounds on record.", status.done, "counter", named),
        Metric("dpfda_study_running", "1 while it is under way.", under_way, labels=named),
    ]  # fmt: skip
    for name, site in status.sites.items():
        labels = {**named, "site": name}
        here = float(name not in status.absent)
        found += [
            Metric("dpfda_study_site_answering", "0 if the site did not answer the last question.", here, labels=labels),
            Metric("dpfda_study_site_answers_total", "Rounds that it answered.", site["answered"], "counter", labels),
        ]  # fmt: skip
    return found
