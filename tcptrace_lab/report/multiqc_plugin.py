"""A plugin for MultiQC (https://multiqc.info), with which `multiqc` reads the documents that `analyze --json` wrote.

MultiQC finds the plugin by the entry points in pyproject.toml. No other module imports this module, because it needs MultiQC.
"""

from __future__ import annotations

from pathlib import Path

from multiqc import config
from multiqc.base_module import BaseMultiqcModule, ModuleNoSamplesFound
from multiqc.plots import bargraph, table

from tcptrace_lab.report.multiqc import CONNECTION_TABLE, GENERAL_HEADERS, TIME_BARS, safe
from tcptrace_lab.report.multiqc_documents import Rows, rows

NAME = "tcptrace_lab"


def register() -> None:
    """Tell MultiQC which files to read: JSON that counts TCP segments.

    MultiQC calls this hook after it has read the configuration. A pattern in the user's configuration takes precedence.
    """
    config.sp.setdefault(NAME, {"fn": "*.json", "contents": '"tcp_segments": '})


class MultiqcModule(BaseMultiqcModule):  # type: ignore[misc]  # MultiQC is not installed where types are checked
    """Shows a sample for each document, named by its file: general statistics, connections with the most data, bars of time by cause."""

    def __init__(self) -> None:
        """Read the files that MultiQC found. Raises ModuleNoSamplesFound if none is a document of `analyze`."""
        super().__init__(
            name="tcptrace-lab", anchor=NAME, info="finds out why TCP transfers are slow, and what to change: one sample is one capture."
        )
        found: dict[str, Rows] = {}
        for file in self.find_log_files(NAME):
            read = rows(file["f"])
            if read is not None:
                sample = self.clean_s_name(safe(Path(file["fn"]).stem), file)
                found[sample] = read
                self.add_data_source(file, sample)
        found = self.ignore_samples(found)
        if not found:
            raise ModuleNoSamplesFound
        self.add_software_version(None)
        self.general_stats_addcols({sample: read.general for sample, read in found.items()}, GENERAL_HEADERS)
        connections = {f"{sample} {number}": row for sample, read in found.items() for number, row in read.connections.items()}
        self.add_section(
            name=CONNECTION_TABLE["section_name"],
            anchor=f"{NAME}_connections",
            description=CONNECTION_TABLE["description"],
            plot=table.plot(connections, CONNECTION_TABLE["headers"], CONNECTION_TABLE["pconfig"]),
        )
        self.add_section(
            name=TIME_BARS["section_name"],
            anchor=f"{NAME}_time",
            description=TIME_BARS["description"],
            plot=bargraph.plot({sample: read.time for sample, read in found.items()}, TIME_BARS["categories"], TIME_BARS["pconfig"]),
        )
        self.write_data_file({sample: read.general for sample, read in found.items()}, NAME)
