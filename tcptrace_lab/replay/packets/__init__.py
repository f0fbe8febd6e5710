"""The frames of a capture, back onto an interface.

`guard` (where frames may go at all) · `frames` (which ones, rewritten ahead) · `pace` (when each is due) · `send` (out, in time).
"""
