import {
  completeSettings,
  flag,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";

/** The settings of a command's output. */
export const displaySettings = [
  {
    name: "json",
    kind: flag,
    help: "print progress as JSON lines on standard output",
    operational: true,
  },
  { name: "quiet", kind: flag, help: "print no progress", operational: true },
] as const satisfies readonly Setting[];

/** The output of a command. */
export interface Display {
  /** JSON lines on standard output, nothing for people. */
  readonly json: boolean;
  /** No progress and no notes on standard error. */
  readonly quiet: boolean;
}

/** Reads the output of a command from its settings. */
export function readDisplay(settings: GivenSettings): Display {
  const { json, quiet } = completeSettings(
    displaySettings,
    pickSettings(displaySettings, settings),
  );
  return { json: json === true, quiet: quiet === true || json === true };
}

/** Returns the settings that are in a table. */
export function pickSettings(table: readonly Setting[], settings: GivenSettings): GivenSettings {
  const names = new Set(table.map(({ name }) => name));
  return Object.fromEntries(Object.entries(settings).filter(([name]) => names.has(name)));
}
