import {
  completeSettings,
  flag,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";

/** How a command shows what it does. */
export const displaySettings = [
  {
    name: "json",
    kind: flag,
    help: "print progress as JSON lines on standard output",
    operational: true,
  },
  { name: "quiet", kind: flag, help: "print no progress", operational: true },
] as const satisfies readonly Setting[];

/** How a command shows what it does. */
export interface Display {
  /** JSON lines on standard output, nothing for people. */
  readonly json: boolean;
  /** No progress and no notes on standard error. */
  readonly quiet: boolean;
}

/** Reads how a command shows what it does. */
export function readDisplay(settings: GivenSettings): Display {
  const { json, quiet } = completeSettings(
    displaySettings,
    pickSettings(displaySettings, settings),
  );
  return { json: json === true, quiet: quiet === true || json === true };
}

/** The settings that a table has. */
export function pickSettings(table: readonly Setting[], settings: GivenSettings): GivenSettings {
  const names = new Set(table.map(({ name }) => name));
  return Object.fromEntries(Object.entries(settings).filter(([name]) => names.has(name)));
}
