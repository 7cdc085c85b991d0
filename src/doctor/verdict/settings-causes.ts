import { figuresOf, tallyOf, type TokenPairs } from "../analysis/group-figures.ts";
import { routeStates } from "../analysis/compare-routes.ts";
import type { Cause } from "../diagnosis.ts";
import type { Evidence, RunFacts } from "./evidence.ts";
import { figure, nats, percent } from "./words.ts";

/** Finds a constant factor between both sides' logits. */
export function findTemperature({
  temperature,
  isTempered,
  facts,
  aligned,
}: Evidence): readonly Cause[] {
  if (temperature === undefined || !isTempered) return [];
  const { factor, explained } = temperature;
  const whole = figuresOf(aligned)!.meanAbsolute;
  const { temperature: sampled } = facts;
  const isOne = sampled !== undefined && Math.abs(Math.log(factor / sampled)) < 0.15;
  const reason =
    sampled === undefined || sampled === 1
      ? "Score with the temperature at which the engine sampled."
      : isOne
        ? `The engine sampled at temperature ${sampled}: the trainer scored at temperature 1. Divide its logits by ${sampled}.`
        : `The engine sampled at temperature ${sampled}: one side leaves it out, or applies another.`;
  return [
    {
      name: "wrong-temperature",
      text:
        `The trainer's logits are the engine's times ${figure(factor)}, which explains ${percent(explained)} of the ` +
        `mean |d| of ${nats(whole)}. ${reason}`,
      strength: whole * explained,
      isFinding: true,
    },
  ];
}

/** The part of clear differences that one sign has to have. */
const oneSided = 0.8;

/** Differences below this have no clear sign, in nats. */
const unclear = 0.002;

/** Finds logprobs over a kept set on one side and over the whole vocabulary on the other. */
export function findOtherSet({
  facts,
  corrected,
}: Pick<Evidence, "facts" | "corrected">): readonly Cause[] {
  const side = narrowSide(facts);
  if (side === undefined) return [];
  const { clear, lower, ratioError } = signsOf(corrected);
  const own = figuresOf(corrected);
  if (own === undefined || clear === 0) return [];
  const share = side === "engine" ? lower / clear : 1 - lower / clear;
  // Of two distributions over the same tokens, the mean ratio is 1.
  const excess = side === "engine" ? 1 - own.ratio.mean : own.ratio.mean - 1;
  if (share < oneSided || excess < Math.max(0.005, 4 * ratioError)) return [];
  const [narrow, wide] = side === "engine" ? ["engine's", "trainer's"] : ["trainer's", "engine's"];
  return [
    {
      name: "other-token-set",
      text:
        `The ${narrow} logprobs are over the tokens that top-k, top-p or min-p kept, and the ${wide} are over all: ` +
        `${percent(share)} of the differences have one sign, and the mean of exp(d) is ${figure(own.ratio.mean)} ` +
        `instead of 1. Score each token over its kept set${facts.hasKeptTokens === true ? " (column keptTokens)" : ""}.`,
      strength: own.meanAbsolute,
      isFinding: true,
    },
  ];
}

/** The side whose logprobs are over fewer tokens if the trainer does not do as the engine. */
function narrowSide(facts: RunFacts): "engine" | "trainer" | undefined {
  const { hasKeptTokens = false, hasTruncation = false, logprobConvention } = facts;
  if (hasKeptTokens) return "engine";
  if (!hasTruncation) return undefined;
  return logprobConvention === "processed" ? "engine" : "trainer";
}

function signsOf({ engine, trainer }: TokenPairs): {
  readonly clear: number;
  readonly lower: number;
  readonly ratioError: number;
} {
  let [clear, lower, count, sum, squares] = [0, 0, 0, 0, 0];
  for (let index = 0; index < engine.length; index++) {
    const difference = trainer[index]! - engine[index]!;
    if (Number.isNaN(difference)) continue;
    const ratio = Math.exp(Math.min(50, difference));
    count += 1;
    sum += ratio;
    squares += ratio * ratio;
    if (Math.abs(difference) < unclear) continue;
    clear += 1;
    if (difference < 0) lower += 1;
  }
  const variance = count === 0 ? 0 : squares / count - (sum / count) ** 2;
  return { clear, lower, ratioError: Math.sqrt(Math.max(0, variance) / Math.max(1, count)) };
}

/** The share of tokens from which on a form of routes names their fault. */
const formShare = 0.5;

/** Finds routes that the trainer did not replay. */
export function findRoutes({
  routes,
  thresholds,
  findings,
  corrected,
}: Evidence): readonly Cause[] {
  if (routes === undefined || routes.differingShare <= thresholds.routeShare) return [];
  const { differingShare, differingTokenShare, paddedShare, laterShare, earlierShare } = routes;
  const form =
    paddedShare > formShare * differingTokenShare
      ? `${percent(paddedShare)} of the tokens have filler (0, 1, 2, …, zeros or -1) in place of routes: the trainer dropped or padded them`
      : laterShare > formShare * differingTokenShare
        ? `${percent(laterShare)} of the tokens have the routes of the token before: they are shifted by one`
        : earlierShare > formShare * differingTokenShare
          ? `${percent(earlierShare)} of the tokens have the routes of the token after: they are shifted by one`
          : "the trainer's routers chose by themselves";
  const states = findings.table.column("routes");
  const of = (state: number) => tallyOf(corrected, (index) => states[index] === state);
  const [differing, equal] = [of(routeStates.differing), of(routeStates.equal)];
  const apart =
    equal.tokenCount > 0 && differing.tokenCount > 0
      ? ` Mean |d| is ${nats(differing.meanAbsolute)} after tokens with other routes, and ${nats(equal.meanAbsolute)} after the rest.`
      : "";
  return [
    {
      name: "routes-not-replayed",
      text: `The trainer did not use the engine's routes: ${percent(differingShare)} of them (tokens x layers) have other experts; ${form}.${apart}`,
      strength: figuresOf(corrected)?.meanAbsolute ?? 0,
      isFinding: true,
    },
  ];
}
