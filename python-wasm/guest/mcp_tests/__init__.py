"""Tests of the package `mcp`, run by a native Python with a host that is a fake.

    cd python-wasm/guest && python3.13 -m unittest discover -s mcp_tests -t .
"""
