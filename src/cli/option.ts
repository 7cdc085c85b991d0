import { type Command, InvalidArgumentError, Option as CommanderOption } from "commander";
import { UsageError, describeError } from "../errors.ts";
import { requireVariables } from "../composition/config/require-variables.ts";
import {
  checkNumber,
  checkSettings,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";
import { schemaKey } from "../composition/config/settings-schema.ts";
import { readTextFile } from "../text/decode-text.ts";
import { parseStrictJson } from "../json/strict-json.ts";

/** A heading in the help of a command, with the settings under it. */
export interface SettingGroup {
  readonly heading: string;
  readonly settings: readonly Setting[];
}

/** Sorts a command's settings into groups for its help. */
type GroupSettings = (table: readonly Setting[]) => readonly SettingGroup[];

/** The heading of the settings that most calls need. */
export const mostUsedHeading = "Most used:";

/**
 * Adds the settings to a command as flags.
 *
 * @param group - `groupSettings`, for a command with many settings. It loads the tables of all settings, so a command
 * with few settings omits it. Default: one list without a heading.
 */
export function addSettings(
  command: Command,
  table: readonly Setting[],
  group?: GroupSettings,
): Command {
  if (group === undefined) {
    for (const setting of table) command.addOption(toOption(setting));
    return command;
  }
  for (const { heading, settings } of group(table)) {
    for (const setting of settings) command.addOption(toOption(setting).helpGroup(heading));
  }
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
      if (text === kind.word) return text;
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
 * Returns the settings of a call by name. Flags override the configuration file. Does not fill in
 * defaults.
 *
 * @throws UsageError for a file that cannot be read, an unknown key, a value of the wrong type, or
 *   an environment variable that is not set.
 */
export async function givenSettings(
  table: readonly Setting[],
  flags: GivenSettings,
): Promise<GivenSettings> {
  const { config } = flags;
  const ofFile = typeof config === "string" ? await readConfiguration(config, table) : {};
  const ofFlags = table.flatMap(({ name }) => {
    const value = flags[camelCase(name)];
    return value === undefined ? [] : [[name, value] as const];
  });
  const settings = { ...ofFile, ...Object.fromEntries(ofFlags) };
  requireVariables(settings, process.env);
  return settings;
}

/** Adds the flag that names a configuration file, which `givenSettings()` reads, and the settings of that file. */
export function addConfiguredSettings(
  command: Command,
  table: readonly Setting[],
  group?: GroupSettings,
): Command {
  addSettings(command, table, group);
  const option = new CommanderOption(
    "--config <file>",
    "JSON file with the same names as the flags, without the dashes",
  );
  return command.addOption(group === undefined ? option : option.helpGroup(mostUsedHeading));
}

async function readConfiguration(file: string, table: readonly Setting[]): Promise<GivenSettings> {
  let value: unknown;
  try {
    value = parseStrictJson(await readTextFile(file, { mark: "drop" }));
  } catch (error) {
    throw new UsageError(`Cannot read the configuration ${file}: ${describeError(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`Cannot read the configuration ${file}: expected one JSON object`);
  }
  const { [schemaKey]: _, ...settings } = value as GivenSettings;
  checkSettings(table, settings, file);
  return settings;
}

function camelCase(name: string): string {
  return name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
