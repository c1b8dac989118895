"""Tests of the guest's Python, under the native interpreter of the same version.

    cd python-wasm/guest && python3.13 -m unittest discover -s tests -t .
"""
