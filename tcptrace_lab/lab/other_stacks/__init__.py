"""Transfers by TCP stacks other than Linux.

Each stack runs on a tun device. Its own state is the ground truth.
"""
