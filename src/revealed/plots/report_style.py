"""The style sheet of reports: light and dark, readable on a phone, and whole in itself."""

from __future__ import annotations

# In the dark, pictures are inverted: white becomes the colour of cards, and hues stay.
REPORT_STYLE = """
:root { color-scheme: light dark;
  --page: #fbfbf9; --card: #ffffff; --ink: #22262b; --quiet: #5b6069; --line: #e2e2dc;
  --good: #00704f; --good-back: #e8f5ef; --bad: #a33c00; --bad-back: #fdf0e6; --link: #0072b2; }
@media (prefers-color-scheme: dark) { :root {
  --page: #16181b; --card: #1f1f1f; --ink: #e6e7e9; --quiet: #a3a8b0; --line: #34383e;
  --good: #5ccfa4; --good-back: #14302a; --bad: #ffb27a; --bad-back: #38251a; --link: #7cc4f0; }
  img { filter: invert(0.88) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .6rem; }
p { max-width: 46rem; margin: .6rem 0; }
a { color: var(--link); }
.quiet { color: var(--quiet); }
.message { border-left: 5px solid; border-radius: 4px; padding: .8rem 1.1rem; margin: 1.4rem 0;
  max-width: none; }
.good { color: var(--good); background: var(--good-back); }
.bad { color: var(--bad); background: var(--bad-back); }
.message span { color: var(--ink); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; padding: 0;
  margin: 1rem 0 0; }
figure { margin: 1.2rem 0; padding: .8rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { color: var(--quiet); font-weight: 600; white-space: normal; vertical-align: bottom; }
thead th.short { white-space: nowrap; }
tbody th { font-weight: 500; }
.settings td { text-align: left; white-space: normal; }
section ul { padding-left: 1.2rem; max-width: 46rem; }
section li { margin: .3rem 0; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line);
  font-size: .88rem; color: var(--quiet); }
"""
