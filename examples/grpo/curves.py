"""Draws the curves of runs of grpo.py: python curves.py OUT.svg NAME=RUN [NAME=RUN ...]

Held-out reward against CPU minutes; the smaller points are of fewer attempts. Writes the same as OUT.csv.
"""

import csv
import json
import sys
from pathlib import Path

COLORS = ["#0a6", "#c50", "#36c", "#a3a", "#888", "#880"]
LEFT, TOP, WIDTH, HEIGHT = 50, 20, 560, 280


def draw(runs, file):
    """`runs` has the entries of a log by the name of its run."""
    entries = [(name, entry) for name, log in runs.items() for entry in log]
    last = max(1.0, *(entry["cpu_minutes"] for _, entry in entries))

    def place(entry, value):
        return f"{LEFT + WIDTH * entry['cpu_minutes'] / last:.1f},{TOP + HEIGHT * (1 - value):.1f}"

    parts = []
    for tenth in range(0, 11, 2):
        y = TOP + HEIGHT * (1 - tenth / 10)
        parts.append(f'<path d="M{LEFT} {y}h{WIDTH}" stroke="#ddd"/><text x="20" y="{y + 4}">{tenth / 10}</text>')
    for index, (name, log) in enumerate(runs.items()):
        color = COLORS[index % len(COLORS)]
        points = [(place(entry, entry[field]), radius) for entry in log
                  for field, radius in (("watched", 2), ("held_out", 4)) if field in entry]
        line = " ".join(point for point, _ in points)
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{line}"/>')
        for point, radius in points:
            x, y = point.split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{color}"/>')
        parts.append(f'<text x="{LEFT + 330}" y="{TOP + 190 + 16 * index}" fill="{color}">{name}</text>')
    parts.append(f'<text x="{LEFT + WIDTH - 170}" y="{TOP + HEIGHT + 24}">CPU minutes, 0 to {last:.0f}</text>')
    file.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="640" height="340" font-family="sans-serif" '
                    f'font-size="12"><rect width="640" height="340" fill="#fff"/>{"".join(parts)}</svg>\n')


def main():
    out, *named = sys.argv[1:]
    runs = {}
    for one in named:
        name, run = one.split("=", 1)
        runs[name] = [json.loads(line) for line in (Path(run) / "log.jsonl").read_text().splitlines()]
    draw(runs, Path(out))
    fields = ["step", "cpu_minutes", "held_out", "watched", "attempts", "reward", "rows", "calls", "refused", "trained_rows",
              "trained_tokens", "fresh_tokens", "ratio_deviation", "clipped", "changed_rows"]
    with open(Path(out).with_suffix(".csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, ["run", *fields], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({"run": name, **entry} for name, log in runs.items() for entry in log)


if __name__ == "__main__":
    main()
