import { UsageError } from "../errors.ts";

/**
 * A secret, which comes from the environment only, so that it is in no file and no process list.
 *
 * @param variable - Its name; `undefined` where no secret is wanted.
 * @param what - What it is for, such as `--token-env`.
 * @throws UsageError where the variable is not set, or empty.
 */
export function readVariable(
  env: Readonly<Record<string, string | undefined>>,
  variable: string,
  what: string,
): string;
export function readVariable(
  env: Readonly<Record<string, string | undefined>>,
  variable: string | undefined,
  what: string,
): string | undefined;
export function readVariable(
  env: Readonly<Record<string, string | undefined>>,
  variable: string | undefined,
  what: string,
): string | undefined {
  if (variable === undefined) return undefined;
  const value = env[variable];
  if (value !== undefined && value !== "") return value;
  throw new UsageError(`Cannot read ${what}: the variable ${variable} is not set`);
}
