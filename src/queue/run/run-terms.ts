import { createHash } from "node:crypto";
import type { EngineDescription } from "../../engine/engine.ts";
import type { RunManifest } from "../../run/folder/run-folder.ts";
import { runSettings } from "../../composition/config/run-config.ts";
import { samplingSettings } from "../../composition/config/sampling-config.ts";
import type { Setting } from "../../composition/config/setting.ts";

/**
 * Facts that a worker must share with a run to play its attempts: names with versions and hashes.
 * Settings appear only as hashes, so that the store does not reveal them. JSON-able.
 */
export type RunTerms = Readonly<Record<string, string>>;

/** Settings that a worker need not share with a run: each job contains them, or only the run's folder needs them. */
const ownToRuns: ReadonlySet<string> = new Set([
  "split",
  "tasks",
  "samples",
  "epochs",
  "groups",
  "format",
  ...samplingSettings.map(({ name }) => name),
]);

/** Returns the facts to compare of a run, or of a worker that was started with the same options. */
export function termsOf({ turnwright, configuration, identity, found }: RunManifest): RunTerms {
  const { contextLength, logprobConvention } = (found["engine"] ??
    {}) as Partial<EngineDescription>;
  const table: readonly Setting[] = runSettings;
  const compared = table.filter(({ name, operational }) => {
    if (operational === true || ownToRuns.has(name)) return false;
    // The seed selects the examples of a few-shot agent. Workers use it for nothing else.
    return name !== "seed" || configuration["agent"] === "few-shot";
  });
  const settings = compared.map(({ name }) => [`--${name}`, hashOf(configuration[name])] as const);
  return {
    turnwright,
    ...identity,
    contextLength: contextLength === undefined ? "unknown" : String(contextLength),
    ...(logprobConvention && { logprobConvention }),
    ...Object.fromEntries(settings),
  };
}

/** Returns one hash of all facts of a run or worker. */
export function hashTerms(terms: RunTerms): string {
  return hashOf(Object.entries(terms).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Describes the differences in one line. Returns `undefined` if there are none. */
export function describeDifference(here: RunTerms, there: RunTerms): string | undefined {
  const names = [...new Set([...Object.keys(here), ...Object.keys(there)])];
  const wrong = names.filter((name) => here[name] !== there[name]);
  if (wrong.length === 0) return undefined;
  return wrong
    .map((name) => `${name} differs (here ${show(here[name])}, the run's ${show(there[name])})`)
    .join("; ");
}

function show(value = "none"): string {
  return /^[0-9a-f]{64}$/.test(value) ? value.slice(0, 12) : value.slice(0, 100);
}

function hashOf(value: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(value) ?? "none")
    .digest("hex");
}
