import { withoutSecretsOf } from "../../secrets/find-secrets.ts";
import { expectedName } from "../../../packages/python-values/src/support/nearest-name.ts";
import { UsageError } from "../../errors.ts";
import { shorten } from "../../secrets/shorten.ts";

/** The kind of a setting's value. */
export type SettingKind =
  | { readonly type: "text" }
  | { readonly type: "choice"; readonly choices: readonly string[] }
  | NumberKind
  | { readonly type: "flag" }
  /** A list of texts: the flag may be repeated. */
  | { readonly type: "list"; readonly choices?: readonly string[] };

/** A number within a range, including both ends. */
export interface NumberKind {
  readonly type: "number";
  readonly min: number;
  readonly max: number;
  readonly whole?: boolean;
  /** A word that is allowed in place of a number. */
  readonly word?: string;
}

/** A setting: both a flag of a command and a key of its configuration file. */
export interface Setting {
  /** The name in kebab-case: `--name` and `"name"`. */
  readonly name: string;
  readonly kind: SettingKind;
  readonly help: string;
  /** The name of the value in help texts. */
  readonly value?: string;
  readonly default?: string | number;
  /**
   * True if a run may be resumed with another value. The setting does not affect the episodes, or the run compares the
   * content that it names, such as the files of a model folder.
   */
  readonly operational?: true;
}

/** The type of a setting's value, by its kind. */
export type ValueOf<Kind extends SettingKind> = Kind extends { readonly type: "text" }
  ? string
  : Kind extends { readonly type: "number" }
    ? number | (Kind extends { readonly word: infer Word extends string } ? Word : never)
    : Kind extends { readonly type: "flag" }
      ? boolean
      : Kind extends { readonly type: "choice"; readonly choices: readonly (infer Choice)[] }
        ? Choice
        : Kind extends { readonly choices: readonly (infer Choice)[] }
          ? readonly Choice[]
          : readonly string[];

/**
 * The values of a table's settings by name. A value is `undefined` if it is not set and has no
 * default.
 */
export type SettingValues<One extends Setting> = {
  readonly [Each in One as Each["name"]]: Each extends { readonly default: string | number }
    ? ValueOf<Each["kind"]>
    : ValueOf<Each["kind"]> | undefined;
};

/** Settings before `completeSettings()` has checked them. */
export type GivenSettings = Readonly<Record<string, unknown>>;

/** Returns the kind of a whole number of at least `min`. */
export function count(min: number): NumberKind {
  return { type: "number", min, max: Infinity, whole: true };
}

/** The kind of any text. */
export const text = { type: "text" } as const;

/** The kind of a flag without a value. */
export const flag = { type: "flag" } as const;

/** The kind of a duration in seconds, from a millisecond to a week. */
export const seconds: NumberKind = { type: "number", min: 0.001, max: 604_800 };

/** The kind of a price in US dollars per million tokens. */
export const price: NumberKind = { type: "number", min: 0, max: Infinity };

/**
 * Checks settings and fills in the table's defaults. All values from outside get their types here.
 * The result is frozen.
 *
 * @throws UsageError for a name that the table does not have, or a value of the wrong type.
 */
export function completeSettings<One extends Setting>(
  table: readonly One[],
  settings: GivenSettings,
): SettingValues<One> {
  checkSettings(table, settings);
  const values = table.map(({ name, default: fallback }) => {
    const value = settings[name] ?? fallback;
    return [name, Array.isArray(value) ? Object.freeze([...(value as unknown[])]) : value];
  });
  return Object.freeze(Object.fromEntries(values)) as SettingValues<One>;
}

/**
 * Checks settings against a table, without defaults. `file` is the file of the settings, if any.
 *
 * @throws UsageError as `completeSettings()` does.
 */
export function checkSettings(
  table: readonly Setting[],
  settings: GivenSettings,
  file?: string,
): void {
  for (const [name, value] of Object.entries(settings)) {
    const setting = table.find((candidate) => candidate.name === name);
    const place = file === undefined ? "" : ` in ${file}`;
    if (setting === undefined) {
      const known = table.map((candidate) => candidate.name);
      const expected = expectedName(name, known);
      throw new UsageError(`Cannot use "${name}"${place}: unknown setting, ${expected}`);
    }
    const problem = value === undefined ? undefined : checkValue(value, setting.kind);
    if (problem === undefined) continue;
    const complaint =
      file === undefined
        ? `Cannot use --${name} ${problem.shown}: ${problem.expected}`
        : `Cannot use "${name}"${place}: ${JSON.stringify(value)}, ${problem.expected}`;
    const texts = [value].flat().filter((one) => typeof one === "string");
    throw new UsageError(withoutSecretsOf(texts, complaint));
  }
}

/** A problem with a value. */
interface ValueProblem {
  readonly shown: string;
  readonly expected: string;
}

function checkValue(value: unknown, kind: SettingKind): ValueProblem | undefined {
  const shown =
    typeof value === "string" ? value : shorten(JSON.stringify(value) ?? typeof value, 60);
  const expect = (isRight: boolean, expected: string) =>
    isRight ? undefined : { shown, expected: `expected ${expected}` };
  switch (kind.type) {
    case "text":
      return expect(typeof value === "string", "a text");
    case "choice":
      return expect(kind.choices.includes(value as string), `one of ${kind.choices.join(", ")}`);
    case "flag":
      return expect(typeof value === "boolean", "true or false");
    case "list":
      return checkList(value, { shown, choices: kind.choices });
    case "number": {
      const { word } = kind;
      if (word !== undefined && value === word) return undefined;
      if (typeof value !== "number") {
        return expect(false, `a number${word === undefined ? "" : ` or ${word}`}`);
      }
      const expected = checkNumber(value, kind);
      return expected === undefined ? undefined : { shown, expected };
    }
  }
}

function checkList(
  value: unknown,
  { shown, choices }: { readonly shown: string; readonly choices: readonly string[] | undefined },
): ValueProblem | undefined {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
    return { shown, expected: "expected a list of texts" };
  }
  const wrong = value.find((item) => choices?.includes(item) === false);
  if (wrong === undefined) return undefined;
  return { shown: wrong, expected: `expected one of ${choices!.join(", ")}` };
}

/**
 * Checks a number. Returns a description of the expected number, or `undefined` if the number is
 * valid.
 */
export function checkNumber(
  value: number,
  { min, max, whole, word }: NumberKind,
): string | undefined {
  const isWrong =
    !Number.isFinite(value) ||
    value < min ||
    value > max ||
    (whole === true && !Number.isSafeInteger(value));
  if (!isWrong) return undefined;
  // JavaScript would round a larger whole number.
  const largest = whole === true ? Math.min(max, Number.MAX_SAFE_INTEGER) : max;
  const isUnbounded = max === Infinity && !(value > largest);
  const bounds = [
    ...(min === -Infinity ? [] : [`at least ${min}`]),
    ...(isUnbounded ? [] : [`at most ${largest}`]),
  ].join(" and ");
  const range = bounds === "" ? "" : ` of ${bounds}`;
  const other = word === undefined ? "" : `, or ${word}`;
  return `expected a ${whole === true ? "whole " : ""}number${range}${other}`;
}

/**
 * Returns the value of a required setting.
 *
 * @throws UsageError if it is absent; the message names the flag and the `remedy`.
 */
export function requireSetting<Value>(
  value: Value | undefined,
  name: string,
  remedy: string,
): Value {
  if (value === undefined) throw new UsageError(`Missing --${name}: ${remedy}`);
  return value;
}
