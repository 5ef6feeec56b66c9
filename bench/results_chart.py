"""Draws the speed-ups of docs/results.md as a bar chart, docs/results.svg: a group a model, a bar a machine.

    python bench/results_chart.py
"""

import os
import re

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PAGE, CHART = (os.path.join(ROOT, "docs", name) for name in ("results.md", "results.svg"))
COLOURS = ("#2f6fb3", "#e08a2c")
LEFT, RIGHT, TOP, BAR, GAP, PER_UNIT = 110, 120, 64, 13, 9, 150  # pixels


def tables(page):
    """{heading: {model: (milliseconds, speed-up)}} of each table of the page, in its order."""
    found = {}
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| (\w+) \| ([\d.]+) \|.*?\| ([\d.]+)x \|", part, re.MULTILINE)
        if rows:
            found[part.splitlines()[0]] = {model: (milliseconds, float(speed_up)) for model, milliseconds, speed_up in rows}
    return found


def text(x, y, words, *attributes):
    return f'<text x="{x}" y="{y}" {" ".join(attributes)}>{words}</text>'


def draw(kinds):
    """The chart as SVG: speed-up over the faster of ONNX Runtime and OpenVINO, beside each bar Collage's latency."""
    models = list(dict.fromkeys(model for rows in kinds.values() for model in rows))
    most = max(speed_up for rows in kinds.values() for _, speed_up in rows.values())
    lines, y = [], TOP
    for model in models:
        bars = [(kind, *rows[model]) for kind, rows in enumerate(kinds.values()) if model in rows]
        lines.append(text(LEFT - 8, y + len(bars) * BAR / 2 + 4, model, 'text-anchor="end"'))
        for kind, milliseconds, speed_up in bars:
            width = round(speed_up * PER_UNIT)
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{width}" height="{BAR - 2}" fill="{COLOURS[kind]}"/>')
            lines.append(text(LEFT + width + 5, y + BAR - 3, f"{speed_up:.2f}x, {milliseconds} ms"))
            y += BAR
        y += GAP
    for kind, heading in enumerate(kinds):
        lines.append(f'<rect x="{LEFT + 220 * kind}" y="32" width="11" height="11" fill="{COLOURS[kind]}"/>')
        lines.append(text(LEFT + 220 * kind + 17, 42, heading.lower()))
    lines.append(text(LEFT, 20, "Speed-up over the faster of ONNX Runtime and OpenVINO, and Collage's latency", 'font-weight="bold"'))
    lines.append(f'<line x1="{LEFT + PER_UNIT}" x2="{LEFT + PER_UNIT}" y1="{TOP - 8}" y2="{y}" stroke="#555" stroke-dasharray="3 3"/>')
    width = max(LEFT + round(most * PER_UNIT) + RIGHT, 640)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 8}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")


def main():
    with open(PAGE, encoding="utf-8") as file:
        chart = draw(tables(file.read()))
    with open(CHART, "w", encoding="utf-8") as file:
        file.write(chart)


if __name__ == "__main__":
    main()
