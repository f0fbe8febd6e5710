"""The frames of a capture, back onto an interface.

`guard` (where frames may go at all) · `frames` (which ones, rewritten) · `pace` (when each is due) · `ready` (laid out ahead) ·
`burst` (many with one call of the kernel) · `send` (out, in time).
"""
