import { countOf } from "../../text/count-of.ts";
import { routeStates } from "../analysis/compare-routes.ts";
import {
  fitTemperature,
  type FoundTemperature,
  type TemperatureFit,
} from "../analysis/fit-temperature.ts";
import { shifts } from "../analysis/find-shift.ts";
import {
  figuresBy,
  figuresOf,
  histogramOf,
  positionGroup,
  positionName,
  type TokenPairs,
} from "../analysis/group-figures.ts";
import type { Findings } from "../analysis/mismatch-tally.ts";
import { tokenKinds } from "../analysis/token-kinds.ts";
import type { Diagnosis, Thresholds } from "../diagnosis.ts";
import type { InputProblem } from "../input/trainer-row.ts";
import type { Evidence, RunFacts } from "./evidence.ts";
import { findCauses } from "./find-causes.ts";
import { describeProblem, findIncomplete } from "./incomplete-cause.ts";
import { findOtherSet } from "./settings-causes.ts";
import { isTemperatureFound } from "./is-tempered.ts";
import { figure, nats } from "./words.ts";

/** The facts that findings are judged by. */
export interface JudgeOptions {
  readonly facts: RunFacts;
  readonly thresholds: Thresholds;
  /** All problems of the input. */
  readonly problems: readonly InputProblem[];
  /** True if rows of the run that the file lacks are no finding. */
  readonly isPartial: boolean;
}

/** Returns the diagnosis of what both sides' rows show. */
export function judge(findings: Findings, options: JudgeOptions): Diagnosis {
  const { facts, thresholds, isPartial } = options;
  const engine = findings.table.column("engine");
  const raw = { engine, trainer: findings.table.trainerAt(0) };
  const aligned = { engine, trainer: findings.aligned };
  const problems = options.problems.filter(({ kind }) => !isPartial || kind !== "missing-row");
  const all = figuresOf(raw) ?? figuresOf(aligned);
  const common = { ...options, problems: options.problems };
  if (all === undefined) return nothingCompared(findings, { ...common, findings: problems });
  const temperature = fitOf(aligned, findings);
  const isTempered =
    temperature !== undefined &&
    (figuresOf(aligned)?.relative ?? 0) > thresholds.roundedShare &&
    // The mass of a kept set looks like a temperature.
    findOtherSet({ facts, corrected: aligned }).length === 0 &&
    isTemperatureFound(temperature, facts);
  const corrected = isTempered
    ? { engine, trainer: aligned.trainer.map((value) => temperature.corrected(value)) }
    : aligned;
  const routes = findings.routes.figures();
  const evidence: Evidence = {
    findings,
    facts,
    thresholds,
    problems,
    raw,
    aligned,
    corrected,
    temperature,
    isTempered,
    routes,
    all,
  };
  const causes = findCauses(evidence);
  const isCorrected = isTempered || findings.shiftedRows.size > 0;
  const correctedFigures = isCorrected ? figuresOf(corrected) : undefined;
  const [strongest] = causes;
  return {
    verdict: strongest?.name ?? "healthy",
    hasFinding: causes.some(({ isFinding }) => isFinding),
    text: strongest?.text ?? healthyText(evidence),
    causes,
    notes: notesOf(evidence, options),
    counts: countsOf(findings, aligned),
    problems: options.problems,
    all,
    ...(correctedFigures && { corrected: correctedFigures }),
    ...groupsOf(corrected, findings),
    ...movesOf(findings),
    ...(routes && { routes }),
    ...(temperature && {
      temperature: withoutFunction(temperature),
    }),
    histogram: histogramOf(raw),
    thresholds,
  };
}

/** Fits a temperature to the tokens of the trainer's own version; to all if these are few. */
function fitOf({ engine, trainer }: TokenPairs, findings: Findings): FoundTemperature | undefined {
  const lags = findings.table.column("lag");
  const fit = (isWanted: (index: number) => boolean) => {
    const isUsed = (_: number, index: number) => !Number.isNaN(trainer[index]!) && isWanted(index);
    return fitTemperature(engine.filter(isUsed), trainer.filter(isUsed));
  };
  return fit((index) => lags[index] === 0) ?? fit(() => true);
}

function withoutFunction({ factor, explained, correlation }: FoundTemperature): TemperatureFit {
  return { factor, explained, correlation };
}

function healthyText({ all, corrected, routes }: Evidence): string {
  const figures = figuresOf(corrected) ?? all;
  const equal = routes === undefined ? "" : ", and the routes are equal";
  return (
    `Healthy: mean |d| is ${nats(figures.meanAbsolute)} over ${countOf(figures.tokenCount, "token")}, ` +
    `KL ${nats(figures.klDivergence)}${equal}.`
  );
}

function notesOf({ findings, facts, routes }: Evidence, options: JudgeOptions): readonly string[] {
  const lags = findings.table.column("lag");
  const unknownCount = lags.reduce((count, lag) => count + (Number.isNaN(lag) ? 1 : 0), 0);
  const missing = options.isPartial
    ? options.problems.filter(({ kind }) => kind === "missing-row")
    : [];
  return [
    ...missing.map((problem) => `${describeProblem(problem)}.`),
    ...(unknownCount > 0
      ? [
          `${countOf(unknownCount, "token")} without a known lag: the engine named no version of the tokens, or the ` +
            "trainer no policyVersion of the row, that is a whole number. Name both, or give --lag.",
        ]
      : []),
    ...(facts.hasRoutes === true && routes === undefined
      ? ["The engine's rows have routes and the trainer's have none, so they were not compared."]
      : []),
    ...(routes !== undefined && routes.missingCount > 0
      ? [`${countOf(routes.missingCount, "token")} have routes of the engine only.`]
      : []),
    ...(routes !== undefined && routes.reorderedShare > routes.differingShare
      ? [
          `The experts of some tokens are in another order (${figure(100 * (routes.reorderedShare - routes.differingShare))} %): ` +
            "sums in 16 bits follow it.",
        ]
      : []),
  ];
}

function countsOf(findings: Findings, { trainer }: TokenPairs): Diagnosis["counts"] {
  const { rowCount, trainedTokenCount } = findings;
  const tokenCount = trainer.reduce((count, value) => count + (Number.isNaN(value) ? 0 : 1), 0);
  return { rowCount, trainedTokenCount, tokenCount };
}

const routeNames = Object.keys(routeStates);

function groupsOf(
  pairs: TokenPairs,
  { table, versions }: Findings,
): Pick<Diagnosis, "byLag" | "byVersion" | "byPosition" | "byKind" | "byRoutes"> {
  const by = (
    name: "lag" | "version" | "position" | "kind" | "routes",
    nameOf: (key: number) => string,
    toKey: (value: number) => number = (value) => value,
  ) => {
    const column = table.column(name);
    return figuresBy(pairs, (index) => toKey(column[index]!), nameOf);
  };
  const { unknown: _, ...byRoutes } = by("routes", (key) => routeNames[key]!);
  return {
    byLag: by("lag", (key) => (Number.isNaN(key) ? "unknown" : String(key))),
    byVersion: by("version", (key) => versions[key]!),
    byPosition: by("position", positionName, positionGroup),
    byKind: by("kind", (key) => tokenKinds[key]!),
    byRoutes,
  };
}

function movesOf({
  sums,
  shiftedRows,
  maskShiftedRows,
}: Findings): Pick<Diagnosis, "shifts" | "shiftedRows" | "maskShiftedRows"> {
  return {
    shifts: shifts.map((shift, index) => {
      const { count, correlation, meanAbsolute } = sums[index]!;
      return {
        shift,
        tokenCount: count,
        ...(correlation !== undefined && { correlation }),
        ...(count > 0 && { meanAbsolute }),
      };
    }),
    shiftedRows: Object.fromEntries(shiftedRows),
    maskShiftedRows: Object.fromEntries(maskShiftedRows),
  };
}

function nothingCompared(
  findings: Findings,
  options: JudgeOptions & { readonly findings: readonly InputProblem[] },
): Diagnosis {
  const text =
    "Nothing could be compared: no trained token has a logprob of both sides. Check rolloutId and segment of the file.";
  const empty = new Float64Array();
  const pairs = { engine: empty, trainer: empty };
  return {
    verdict: "nothing-compared",
    hasFinding: true,
    text,
    causes: [
      { name: "nothing-compared", text, strength: 0, isFinding: true },
      ...findIncomplete({ problems: options.findings }),
    ],
    notes: [],
    counts: countsOf(findings, pairs),
    problems: options.problems,
    byLag: {},
    byVersion: {},
    byPosition: {},
    byKind: {},
    byRoutes: {},
    ...movesOf(findings),
    histogram: histogramOf(pairs),
    thresholds: options.thresholds,
  };
}
