import type { ExportVerification } from "../../verify/exported/verify-export.ts";
import type { RouteRescoring } from "../../verify/rescore-routes.ts";
import type { RunVerification } from "../../verify/verify-run.ts";
import type { Finding } from "../../verify/finding.ts";
import type { FileRescoring } from "../../trajectory/rescore-file.ts";
import type { FileVerification } from "../../trajectory/verify-file.ts";
import { countOf } from "../../text/count-of.ts";
import { plainStyle, printable, type TextStyle } from "../../report/text-style.ts";
import { rowsText } from "../rows-text.ts";
import { formatCount } from "../../text/format-count.ts";

/** The result of checking a run, a lone file or an export, with the logprobs that were computed again. */
export type Verification = (RunVerification | FileVerification | ExportVerification) & {
  readonly note?: string;
  readonly rescore?: FileRescoring & { readonly routes?: RouteRescoring };
};

/** Number of violations that are shown. */
const mostShown = 10;

/** Formats the result of `turnwright verify` for people. */
export function verificationText(result: Verification, style: TextStyle = plainStyle): string {
  const rows: [string, string][] = [];
  if ("samples" in result) rows.push(["samples", formatCount(result.samples)]);
  if ("records" in result)
    rows.push(["records", `${formatCount(result.records)} for ${result.as}`]);
  if ("run" in result) rows.push(...runRows(result));
  if (result.rescore !== undefined) rows.push(...rescoreRows(result.rescore));
  if (result.note !== undefined) rows.push(["note", result.note]);
  rows.push(["result", verdictOn(result, style)]);
  const place = "run" in result ? result.run : result.file;
  const shown = result.violations.slice(0, mostShown).map((each) => `  ${describe(each)}\n`);
  const more = result.violations.length - shown.length;
  if (more > 0) shown.push(style.faint(`  … and ${countOf(more, "other")} (--json shows all)\n`));
  return `${style.heading(printable(place))}\n${rowsText(rows)}${shown.join("")}`;
}

function runRows(run: RunVerification): [string, string][] {
  const { episodes, planned, isFinished, missing = [], missingCount = 0 } = run;
  const of = planned === undefined ? "" : ` of ${formatCount(planned)} planned`;
  const state = isFinished ? "finished" : "not finished";
  const rows: [string, string][] = [["episodes", `${formatCount(episodes)}${of}, ${state}`]];
  if (missingCount > 0) {
    const names = missing.map(printable).join(", ");
    const more = missingCount > missing.length ? ", …" : "";
    rows.push(["missing", `${countOf(missingCount, "episode")}: ${names}${more}`]);
  }
  if (run.slimeRows !== undefined) rows.push(["for slime", countOf(run.slimeRows, "row")]);
  if (run.recorded !== undefined) rows.push(["recorded", countOf(run.recorded, "episode")]);
  for (const [name, count] of Object.entries(run.teachers ?? {})) {
    rows.push(["teacher", `${printable(name)}: ${countOf(count, "row")} scored`]);
  }
  return rows;
}

function rescoreRows(rescore: NonNullable<Verification["rescore"]>): [string, string][] {
  const { engine, temperature, tokenCount, rowCount, skipped, largest, routes } = rescore;
  const rows: [string, string][] = [
    [
      "rescored",
      `${countOf(tokenCount, "token")} of ${countOf(rowCount, "row")} with ${engine} at temperature ` +
        `${temperature}`,
    ],
  ];
  if (largest !== undefined) {
    const { meanDifference = 0, tolerance } = rescore;
    rows.push([
      "difference",
      `mean ${nats(meanDifference)}, largest ${nats(largest.difference)} nats (tolerance ${tolerance}): ` +
        `${printable(largest.rolloutId)}, turn ${largest.turnIndex}, token ${largest.index} of line ${largest.line}`,
    ]);
  }
  for (const { line, rule, detail } of skipped.slice(0, mostShown)) {
    rows.push(["not scored", `line ${line}: ${rule}: ${printable(detail)}`]);
  }
  if (skipped.length > mostShown) rows.push(["not scored", `${skipped.length} rows in all`]);
  if (routes !== undefined) {
    const { equalShare } = routes;
    const share = equalShare === undefined ? "" : `, ${(100 * equalShare).toFixed(2)} % equal`;
    rows.push(["routes", `${countOf(routes.tokenCount, "token")}${share}`]);
  }
  return rows;
}

function verdictOn({ violations, rescore }: Verification, style: TextStyle): string {
  const beyond = rescore?.beyondToleranceCount ?? 0;
  const skipped = rescore?.skipped.length ?? 0;
  const faults = [
    ...(violations.length > 0 ? [countOf(violations.length, "violation")] : []),
    ...(beyond > 0 ? [`${countOf(beyond, "token")} beyond the tolerance`] : []),
    ...(skipped > 0 ? [`${countOf(skipped, "row")} not scored`] : []),
  ];
  return faults.length === 0 ? "nothing is violated" : style.warning(faults.join(", "));
}

function describe(violation: { readonly line?: number } & Omit<Finding, "file" | "line">): string {
  const { line, rule, detail } = violation;
  const file = (violation as Partial<Finding>).file;
  const place = [file, line === undefined ? undefined : `line ${line}`].filter(
    (part) => part !== undefined,
  );
  return printable(`${place.join(" ")}${place.length > 0 ? ": " : ""}${rule}: ${detail}`);
}

function nats(value: number): string {
  return String(Number(value.toPrecision(3)));
}
