"""Tests of the engine's figures about segments and connections."""
