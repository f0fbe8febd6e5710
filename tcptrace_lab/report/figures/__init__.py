"""The figures of a report, from segments to Plotly."""
