"""Makes the Plotly figures of a report from the segments of a capture."""
