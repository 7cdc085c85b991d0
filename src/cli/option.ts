import { type Command, InvalidArgumentError, Option as CommanderOption } from "commander";
import { readFile } from "node:fs/promises";
import { UsageError, describeError } from "../errors.ts";

/** What a setting's text is read as. */
export type SettingKind =
  | { readonly type: "text" }
  | { readonly type: "choice"; readonly choices: readonly string[] }
  /** A number within a range, both ends included. */
  | {
      readonly type: "number";
      readonly min: number;
      readonly max: number;
      readonly whole?: boolean;
    }
  | { readonly type: "flag" }
  /** May be given several times. */
  | { readonly type: "list" };

/** One setting of a command: a flag and a key of the configuration file at once. */
export interface Setting {
  /** In kebab-case: `--name` and `"name"`. */
  readonly name: string;
  readonly kind: SettingKind;
  readonly help: string;
  /** Name of the value in help texts. */
  readonly value?: string;
  readonly default?: SettingValue;
}

export type SettingValue = string | number | boolean | readonly string[];

/** The settings of one call, by their names; absent where neither given nor defaulted. */
export type Settings = Readonly<Record<string, SettingValue | undefined>>;

/** Adds the settings to a command as flags. */
export function addSettings(command: Command, table: readonly Setting[]): Command {
  for (const setting of table) command.addOption(toOption(setting));
  return command;
}

function toOption({ name, kind, help, value, default: fallback }: Setting): CommanderOption {
  if (kind.type === "flag") return new CommanderOption(`--${name}`, help);
  const shown = fallback === undefined ? help : `${help} (default: ${String(fallback)})`;
  const option = new CommanderOption(`--${name} <${value ?? name}>`, shown);
  if (kind.type === "choice") return option.choices([...kind.choices]);
  if (kind.type === "list") {
    return option.argParser((text: string, before: string[] | undefined) => [
      ...(before ?? []),
      text,
    ]);
  }
  if (kind.type === "number") {
    return option.argParser((text: string) => {
      const problem = checkNumber(Number(text), kind);
      if (text.trim() === "" || problem !== undefined) {
        throw new InvalidArgumentError(problem ?? "expected a number");
      }
      return Number(text);
    });
  }
  return option;
}

/**
 * The settings of a call: flags before the configuration file before defaults.
 *
 * @throws UsageError for a file that cannot be read, an unknown key, or a value of the wrong kind.
 */
export async function resolveSettings(
  table: readonly Setting[],
  flags: Readonly<Record<string, unknown>>,
  configFile: string | undefined,
): Promise<Settings> {
  const file = configFile === undefined ? {} : await readConfiguration(configFile, table);
  return Object.fromEntries(
    table.map(({ name, default: fallback }) => {
      const flag = flags[camelCase(name)] as SettingValue | undefined;
      return [name, flag ?? file[name] ?? fallback];
    }),
  );
}

/** The table with the values that settings have as its defaults. */
export function withDefaults(table: readonly Setting[], settings: Settings): readonly Setting[] {
  return table.map((setting) => {
    const value = settings[setting.name];
    return value === undefined ? setting : { ...setting, default: value };
  });
}

async function readConfiguration(file: string, table: readonly Setting[]): Promise<Settings> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new UsageError(`Cannot read the configuration ${file}: ${describeError(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`Cannot read the configuration ${file}: expected one JSON object`);
  }
  for (const [key, member] of Object.entries(value)) {
    const setting = table.find(({ name }) => name === key);
    if (setting === undefined) {
      const known = table.map(({ name }) => name).join(", ");
      throw new UsageError(
        `Cannot use "${key}" in ${file}: unknown setting, expected one of ${known}`,
      );
    }
    const problem = checkValue(member, setting.kind);
    if (problem !== undefined) {
      throw new UsageError(`Cannot use "${key}" in ${file}: ${JSON.stringify(member)}, ${problem}`);
    }
  }
  return value as Settings;
}

function checkValue(value: unknown, kind: SettingKind): string | undefined {
  switch (kind.type) {
    case "text":
      return typeof value === "string" ? undefined : "expected a text";
    case "choice":
      return kind.choices.includes(value as string)
        ? undefined
        : `expected one of ${kind.choices.join(", ")}`;
    case "flag":
      return typeof value === "boolean" ? undefined : "expected true or false";
    case "list":
      return Array.isArray(value) && value.every((item) => typeof item === "string")
        ? undefined
        : "expected a list of texts";
    case "number":
      return typeof value === "number" ? checkNumber(value, kind) : "expected a number";
  }
}

function checkNumber(
  value: number,
  { min, max, whole }: Extract<SettingKind, { type: "number" }>,
): string | undefined {
  if (
    Number.isNaN(value) ||
    value < min ||
    value > max ||
    (whole === true && !Number.isInteger(value))
  ) {
    const upper = max === Infinity ? "" : ` and at most ${max}`;
    return `expected a ${whole === true ? "whole " : ""}number of at least ${min}${upper}`;
  }
  return undefined;
}

function camelCase(name: string): string {
  return name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The setting's text, where it has one. */
export function textOf(settings: Settings, name: string): string | undefined {
  const value = settings[name];
  return value === undefined ? undefined : String(value);
}

/**
 * The setting's text.
 *
 * @throws UsageError that names the flag where it is absent; `remedy` says what it is for.
 */
export function requiredText(settings: Settings, name: string, remedy: string): string {
  const value = textOf(settings, name);
  if (value === undefined) throw new UsageError(`Missing --${name}: ${remedy}`);
  return value;
}

/** The setting's number, where it has one. */
export function numberOf(settings: Settings, name: string): number | undefined {
  const value = settings[name];
  return typeof value === "number" ? value : undefined;
}

/** The setting's number; for settings with a default. */
export function numberWithDefault(settings: Settings, name: string): number {
  const value = numberOf(settings, name);
  if (value === undefined) throw new UsageError(`Missing --${name}`);
  return value;
}

/** The setting's entries; none where it is absent. */
export function listOf(settings: Settings, name: string): readonly string[] {
  const value = settings[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}
