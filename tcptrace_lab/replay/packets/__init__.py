"""Sends the frames of a capture on an interface.

Read in this order:

- `allowed_destinations`: checks whether interface and destination addresses are allowed;
- `frames`: selects and rewrites frames;
- `pace`: computes when each frame is due;
- `prepared_frames`: prepares all frames before the first one is sent;
- `sendmmsg`: sends many frames with one system call;
- `send`: sends the frames on time, and measures their delays.
"""
