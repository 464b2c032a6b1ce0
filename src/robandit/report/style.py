"""The style of pages whose figures are static SVG."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.words { text-align: left; white-space: normal; min-width: 12rem; }
figure { margin: 1.5rem 0; background: #fff; border-radius: 6px; padding: .5rem; overflow-x: auto; }
figcaption { color: #222; font-size: .9rem; padding: 0 .5rem; }
svg { max-width: 100%; height: auto; }
code { overflow-wrap: anywhere; }
"""
