import { UsageError } from "../errors.ts";
import { hideEverywhere } from "./redactor.ts";

/**
 * Reads a secret from an environment variable, and from nowhere else, so that it appears in no file and no process
 * list. All redactors hide it afterwards.
 *
 * @param variable - The variable's name; `undefined` if no secret is wanted.
 * @param what - The option that names it, such as `--token-env`.
 * @throws UsageError if the variable is unset or empty. The message does not repeat `variable`, which may be the
 * secret itself.
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
  if (value === undefined || value === "") {
    throw new UsageError(
      `Cannot use ${what}: its value is not the name of a variable that is set, ` +
        "expected the name of the variable that holds the secret, and not the secret itself",
    );
  }
  hideEverywhere({ secrets: [value] });
  return value;
}
