import { countOf } from "../../text/count-of.ts";
import type { DifferenceFigures } from "../analysis/difference-figures.ts";
import type { Diagnosis } from "../diagnosis.ts";
import { describeProblem } from "../verdict/incomplete-cause.ts";
import { figure, nats, percent } from "../verdict/words.ts";
import { lagGroups, type NamedFigures } from "./groups.ts";
import { formatCount } from "../../text/format-count.ts";

/** Maximum number of lines in each table of the text, such as the one by lag. */
const mostGroups = 12;

/** The width of a full bar in characters. */
const barWidth = 40;

/** Formats a diagnosis for people: the verdict, the evidence and two plots. Lines end with a newline. */
export function diagnosisText(diagnosis: Diagnosis): string {
  const { verdict, text, causes, notes } = diagnosis;
  const head = verdict === "healthy" ? text : `${verdict}: ${text}`;
  const others = causes.slice(1).map((cause) => `also ${cause.name}: ${cause.text}`);
  const sections = [
    [head, ...others, ...notes.map((note) => `note: ${note}`)],
    figureLines(diagnosis),
    ...[
      ["by lag", lagGroups(diagnosis.byLag)] as const,
      ["by version", namedVersions(diagnosis)] as const,
      ["by position in the row", Object.entries(diagnosis.byPosition)] as const,
      ["by kind of token", Object.entries(diagnosis.byKind)] as const,
      ["by routes of the token before", Object.entries(diagnosis.byRoutes)] as const,
    ].map(([title, groups]) => groupLines(title, groups)),
    histogramLines(diagnosis),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => `${line}\n`).join(""))
    .join("\n");
}

function namedVersions({ byVersion }: Diagnosis): readonly NamedFigures[] {
  const groups = Object.entries(byVersion);
  // One version says what the line of all tokens says.
  if (groups.length < 2) return [];
  return groups.map(([name, figures]) => [name === "" ? "unknown" : name, figures]);
}

function figureLines(diagnosis: Diagnosis): readonly string[] {
  const { all, corrected, counts, routes, problems } = diagnosis;
  const rows: (readonly [string, string])[] = [
    [
      "compared",
      `${countOf(counts.tokenCount, "token")} of ${formatCount(counts.trainedTokenCount)} trained in ${countOf(counts.rowCount, "row")}`,
    ],
    ...(all === undefined ? [] : overview(all)),
    ...(corrected === undefined
      ? []
      : [
          [
            "corrected",
            `mean |d| ${nats(corrected.meanAbsolute)} after shifts and temperature were taken back`,
          ] as const,
        ]),
    ["shifts", shiftText(diagnosis)],
    ...(routes === undefined
      ? []
      : ([
          [
            "routes",
            `${percent(routes.differingShare)} with other experts, ${percent(routes.reorderedShare)} if their order counts, ` +
              `over ${countOf(routes.tokenCount, "token")}`,
          ],
        ] as const)),
    ...problems.map((problem) => ["problem", describeProblem(problem)] as const),
  ];
  return rows.map(([name, value]) => `  ${name.padEnd(10)}  ${value}`);
}

function overview(all: DifferenceFigures): readonly (readonly [string, string])[] {
  const { mean, meanAbsolute, absolute, klDivergence, ratio, confidentShare } = all;
  return [
    ["d", `trainer's logprob - engine's: mean ${nats(mean)}, mean |d| ${nats(meanAbsolute)}`],
    [
      "|d|",
      `half below ${figure(absolute.p50)}, 90 % below ${figure(absolute.p90)}, 99 % below ${figure(absolute.p99)}, largest ${figure(absolute.max)}`,
    ],
    ["KL", `${nats(klDivergence)} (k3, trainer from engine)`],
    [
      "ratios",
      `mean ${figure(ratio.mean)}, ${percent(ratio.outsideShare)} outside 0.5 to 2, effective sample size ${percent(ratio.effectiveShare)}`,
    ],
    [
      "confident",
      `${percent(confidentShare)} with p >= 0.5 of the engine, 2 nats lower for the trainer`,
    ],
  ];
}

function shiftText({ shifts }: Diagnosis): string {
  const known = shifts.filter(({ tokenCount }) => tokenCount > 0);
  if (known.length === 0) return "–";
  return `correlation ${known
    .map(({ shift, correlation }) => {
      const sign = shift > 0 ? "+" : "";
      return `${correlation === undefined ? "–" : correlation.toFixed(3)} at ${sign}${shift}`;
    })
    .join(", ")}`;
}

function groupLines(title: string, groups: readonly NamedFigures[]): readonly string[] {
  if (groups.length === 0) return [];
  const shown = groups.slice(0, mostGroups);
  const width = Math.max(...shown.map(([name]) => name.length));
  const largest = Math.max(...groups.map(([, { meanAbsolute }]) => meanAbsolute));
  const lines = shown.map(([name, { meanAbsolute, tokenCount, klDivergence }]) => {
    const size = figure(meanAbsolute).padEnd(9);
    const counts = `${countOf(tokenCount, "token")}, KL ${figure(klDivergence)}`;
    return `  ${name.padEnd(width)}  ${size}  ${bar(meanAbsolute / largest)}  ${counts}`;
  });
  const left = groups.length - shown.length;
  return [
    `mean |d| ${title}`,
    ...lines,
    ...(left > 0 ? [`  … ${countOf(left, "group")} more, with --json`] : []),
  ];
}

function histogramLines({ histogram: { edges, counts } }: Diagnosis): readonly string[] {
  const largest = Math.max(...counts);
  if (!(largest > 0)) return [];
  const first = counts.findIndex((count) => count > 0);
  const last = counts.findLastIndex((count) => count > 0);
  const names = counts.map((_, bin) => binName(edges, bin));
  const width = Math.max(...names.slice(first, last + 1).map((name) => name.length));
  return [
    "tokens by d (nats)",
    ...names
      .map(
        (name, bin) => `  ${name.padStart(width)}  ${bar(counts[bin]! / largest)}  ${counts[bin]}`,
      )
      .slice(first, last + 1),
  ];
}

/** Names a bin of a histogram. The outermost bins have no outer edge. */
export function binName(edges: readonly number[], bin: number): string {
  if (bin === 0) return `below ${edges[1]}`;
  if (bin === edges.length - 2) return `above ${edges[bin]}`;
  return `${edges[bin]} to ${edges[bin + 1]}`;
}

function bar(share: number): string {
  const length = share > 0 ? Math.max(1, Math.round(share * barWidth)) : 0;
  return "#".repeat(Number.isFinite(length) ? length : 0).padEnd(barWidth);
}
