"""Tests of captures that models write."""
