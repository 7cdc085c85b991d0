import { countOf } from "../../text/count-of.ts";
import type { DifferenceFigures, DifferenceTally } from "../analysis/difference-figures.ts";
import { tallyOf } from "../analysis/group-figures.ts";
import type { Cause, Thresholds } from "../diagnosis.ts";
import type { Evidence } from "./evidence.ts";
import { figure, nats, percent } from "./words.ts";

/** The least number of tokens of a lag that are judged. */
const leastTokens = 20;

/** Stale tokens differ by at least so many times as much as those of the trainer's own version. */
const leastTimes = 2;

/** The least number of tokens that make a share of rare tokens a finding. */
const leastRare = 2;

const within = " This is within the thresholds.";

/** Separates staleness from numerics: tokens of the trainer's own version show numerics alone. */
export function findVersions(
  evidence: Evidence,
  { isNumericsHidden }: { readonly isNumericsHidden: boolean },
): readonly Cause[] {
  const { findings, corrected } = evidence;
  const lags = findings.table.column("lag");
  const total = tallyOf(corrected, () => true).tokenCount;
  const own = tallyOf(corrected, (index) => lags[index] === 0);
  const stale = tallyOf(corrected, (index) => lags[index]! !== 0 && !Number.isNaN(lags[index]!));
  const unknown = tallyOf(corrected, (index) => Number.isNaN(lags[index]!));
  const groups = { own, stale, unknown, total };
  return [
    ...findStale(evidence, groups, { isNumericsHidden }),
    ...(isNumericsHidden
      ? []
      : [...findAtOwnVersion(evidence, groups), ...findUnknown(evidence, groups)]),
  ];
}

interface LagGroups {
  readonly own: DifferenceTally;
  readonly stale: DifferenceTally;
  readonly unknown: DifferenceTally;
  readonly total: number;
}

function findStale(
  { thresholds, findings, corrected }: Evidence,
  { own, stale, total }: LagGroups,
  { isNumericsHidden }: { readonly isNumericsHidden: boolean },
): readonly Cause[] {
  const { meanAbsolute, relative } = stale;
  if (stale.tokenCount < leastTokens || relative <= thresholds.roundedShare) return [];
  const isFinding =
    meanAbsolute > thresholds.staleDifference || relative > thresholds.numericsShare;
  const hasOwn = own.tokenCount >= leastTokens;
  if (!hasOwn && isNumericsHidden) return [];
  if (hasOwn && relative < leastTimes * own.relative) return [];
  const lags = findings.table.column("lag");
  const known = lags.filter((lag, index) => lag !== 0 && !Number.isNaN(corrected.trainer[index]!));
  const mean =
    known.reduce((sum, lag) => sum + (Number.isNaN(lag) ? 0 : lag), 0) / stale.tokenCount;
  const beside = hasOwn
    ? `and ${nats(own.meanAbsolute)} for tokens of the trainer's own version`
    : "and no token is of the trainer's own version, so numerics cannot be separated";
  return [
    {
      name: "stale-weights",
      text:
        `Weights differ by version: mean |d| is ${nats(meanAbsolute)} (${percent(relative)} of the mean |logprob|) for ` +
        `${countOf(stale.tokenCount, "token")} of other versions (mean lag ${figure(mean)}), ${beside}.${isFinding ? "" : within}`,
      strength: ((stale.meanAbsolute - (hasOwn ? own.meanAbsolute : 0)) * stale.tokenCount) / total,
      isFinding,
    },
  ];
}

function findAtOwnVersion(
  { thresholds, facts, routes }: Evidence,
  { own, total }: LagGroups,
): readonly Cause[] {
  const figures = own.figures();
  if (figures === undefined || figures.relative <= thresholds.roundedShare) return [];
  const { tokenCount, meanAbsolute, relative } = figures;
  const isOther = relative > thresholds.numericsShare;
  const isFinding = isOther || isBeyond(figures, thresholds);
  const strength = (meanAbsolute * tokenCount) / total;
  const evidence = `${evidenceOf(figures)} over ${countOf(tokenCount, "token")}`;
  if (isOther) {
    return [
      {
        name: "other-weights",
        text:
          `Tokens of the trainer's own version differ by more than 16 bits explain: ${evidence}. The engine had other ` +
          "weights under this version, or the trainer scored other ids, another model or other settings.",
        strength,
        isFinding,
      },
    ];
  }
  const hint =
    facts.hasRoutes === true && routes === undefined
      ? " The run is of a mixture of experts, and the file has no routes: routes that were not replayed look the same."
      : "";
  const limits = isFinding ? "" : within;
  return [
    {
      name: "numerics",
      text: `The same weights give slightly other logprobs, as other precision or other kernels do: ${evidence}.${limits}${hint}`,
      strength,
      isFinding,
    },
  ];
}

/** True if a figure is beyond its threshold. */
function isBeyond(figures: DifferenceFigures, thresholds: Thresholds): boolean {
  const { tokenCount, meanAbsolute, confidentShare, ratio } = figures;
  const isFrequent = (share: number, limit: number): boolean =>
    share > limit && share * tokenCount >= leastRare;
  return (
    meanAbsolute > thresholds.meanDifference ||
    isFrequent(confidentShare, thresholds.confidentShare) ||
    isFrequent(ratio.outsideShare, thresholds.outsideShare)
  );
}

function evidenceOf({
  meanAbsolute,
  relative,
  klDivergence,
  ratio,
  confidentShare,
}: DifferenceFigures): string {
  return (
    `mean |d| is ${nats(meanAbsolute)} (${percent(relative)} of the mean |logprob|), KL ${nats(klDivergence)}, ` +
    `${percent(ratio.outsideShare)} of the ratios are outside 0.5 to 2 and ${percent(confidentShare)} are confident disagreements,`
  );
}

function findUnknown({ thresholds }: Evidence, { unknown, total }: LagGroups): readonly Cause[] {
  const { tokenCount, meanAbsolute, relative } = unknown;
  if (tokenCount < leastTokens || relative <= thresholds.roundedShare) return [];
  const isFinding = meanAbsolute > thresholds.meanDifference || relative > thresholds.numericsShare;
  return [
    {
      name: "unknown-lag",
      text:
        `Tokens differ, and their version or the trainer's is unknown: mean |d| is ${nats(meanAbsolute)} over ` +
        `${countOf(tokenCount, "token")}. Staleness cannot be separated from numerics: add policyVersion to the file, or give --lag.${isFinding ? "" : within}`,
      strength: (meanAbsolute * tokenCount) / total,
      isFinding,
    },
  ];
}
