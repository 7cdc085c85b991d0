import type { RunFacts } from "../episode-entry.ts";

/** A setting that two runs have in different values. */
export interface SettingDifference {
  readonly name: string;
  /** The values as texts. Absent if the run does not have the setting. */
  readonly a?: string;
  readonly b?: string;
}

type Values = Readonly<Record<string, unknown>>;

/** Settings that a list of runs shows in columns of their own. */
const shownElsewhere: ReadonlySet<string> = new Set(["env", "split"]);

/**
 * Returns the names of the settings in which runs differ. Runs of a gateway have other settings than rollouts, so they
 * are compared among themselves.
 */
export function differingSettings(
  runs: readonly Pick<RunFacts, "configuration">[],
): readonly string[] {
  const kinds = [true, false].map((isRollout) =>
    runs.filter(({ configuration }) => (configuration["env"] !== undefined) === isRollout),
  );
  const names = new Set(runs.flatMap(({ configuration }) => Object.keys(configuration)));
  return [...names].filter(
    (name) =>
      !shownElsewhere.has(name) &&
      kinds.some(
        (kind) => new Set(kind.map(({ configuration }) => textOf(configuration[name]))).size > 1,
      ),
  );
}

/** Returns the members that differ between two groups of settings, or that only one of them has. */
export function settingDifferences(a: Values, b: Values): readonly SettingDifference[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.flatMap((name) => {
    const [own, other] = [textOf(a[name]), textOf(b[name])];
    if (own === other) return [];
    return [
      { name, ...(own !== undefined && { a: own }), ...(other !== undefined && { b: other }) },
    ];
  });
}

/** Writes a setting's value: a text as it is, another value as JSON. */
export function settingText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : settingText(value);
}
