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

/** The form of a command's output. */
export interface Display {
  /** True to print JSON lines to standard output, and no text for people. */
  readonly json: boolean;
  /** True to print no progress and no notes to standard error. */
  readonly quiet: boolean;
}

/** Reads the form of a command's output from its settings. */
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
