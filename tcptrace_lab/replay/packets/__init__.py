"""Send the frames of a capture on an interface.

`guard` (interfaces and destinations that are allowed) · `frames` (selects and rewrites frames) · `pace` (when each frame is due) ·
`ready` (prepares all frames before the first one is sent) · `burst` (many frames per system call) · `send` (sends on time and measures).
"""
