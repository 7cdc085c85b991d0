import type { RunFacts } from "../verdict/evidence.ts";
import type { ComparedRow } from "./row-window.ts";

/** Returns the facts that the runs of all rows share. A fact that differs between runs counts as unknown. */
export function commonFacts(rows: readonly ComparedRow[]): RunFacts {
  const all = [...new Set(rows.map(({ facts }) => facts))];
  const temperature = commonOf(all.map((facts) => facts.temperature));
  const logprobConvention = commonOf(all.map((facts) => facts.logprobConvention));
  return {
    ...(temperature !== undefined && { temperature }),
    ...(logprobConvention !== undefined && { logprobConvention }),
    hasTruncation: all.some((facts) => facts.hasTruncation === true),
    hasKeptTokens: all.length > 0 && all.every((facts) => facts.hasKeptTokens === true),
    hasRoutes: rows.some(({ routes }) => routes.type === "engine-only" || routes.type === "both"),
  };
}

function commonOf<Value>(values: readonly Value[]): Value | undefined {
  const [first, ...others] = values;
  return others.every((value) => value === first) ? first : undefined;
}
