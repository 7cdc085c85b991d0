import type { Diagnosis } from "../diagnosis.ts";
import { figure } from "../verdict/words.ts";
import { lagGroups } from "./groups.ts";
import { binName } from "./text.ts";

const width = 720;
const lineHeight = 20;
const labelWidth = 160;
const barSpace = 420;

interface Bar {
  readonly label: string;
  readonly value: number;
  readonly text: string;
}

/** Returns a picture (SVG) of a diagnosis: the verdict, the histogram of differences, and the mean |d| by lag. */
export function diagnosisPlot({ verdict, byLag, histogram }: Diagnosis): string {
  const { edges, counts } = histogram;
  const bins = counts.map((value, bin) => ({
    label: binName(edges, bin),
    value,
    text: `${value}`,
  }));
  const lags = lagGroups(byLag).map(([name, { meanAbsolute, tokenCount }]) => ({
    label: name === "unknown" ? "lag unknown" : `lag ${name}`,
    value: meanAbsolute,
    text: `${figure(meanAbsolute)} nats, ${tokenCount} tokens`,
  }));
  let top = 60;
  const body = [line(16, 28, `verdict: ${verdict}`, 'font-weight="bold" font-size="16"')];
  for (const [title, bars] of [
    ["tokens by d = trainer's logprob - engine's, in nats", bins],
    ["mean |d| by lag", lags],
  ] as const) {
    body.push(line(16, top, title, 'font-weight="bold"'), ...drawBars(bars, top + lineHeight));
    top += (bars.length + 3) * lineHeight;
  }
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top}" viewBox="0 0 ${width} ${top}" ` +
    `font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n${body.join("\n")}\n</svg>\n`
  );
}

function drawBars(bars: readonly Bar[], top: number): readonly string[] {
  const largest = Math.max(Number.MIN_VALUE, ...bars.map(({ value }) => value));
  return bars.flatMap(({ label, value, text }, index) => {
    const y = top + index * lineHeight;
    const size = Math.round((value / largest) * barSpace);
    return [
      line(16, y + 12, label),
      `<rect x="${labelWidth}" y="${y}" width="${size}" height="14" fill="steelblue"/>`,
      line(labelWidth + size + 6, y + 12, text),
    ];
  });
}

function line(x: number, y: number, text: string, style = ""): string {
  const safe = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x}" y="${y}"${style === "" ? "" : ` ${style}`}>${safe}</text>`;
}
