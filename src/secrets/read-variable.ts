import { UsageError } from "../errors.ts";
import { hideEverywhere } from "./redactor.ts";

/**
 * Reads a secret. It comes from the environment only, so that it is in no file and no process list, and no
 * redactor lets it through from then on.
 *
 * @param variable - The variable's name; `undefined` where no secret is wanted.
 * @param what - The option that names it, such as `--token-env`.
 * @throws UsageError where the variable is not set, or empty. The message does not repeat what was given: it may
 *   be the secret itself.
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
      `Cannot use ${what}: what it gives is not the name of a variable that is set, ` +
        "expected the name of the variable that holds the secret, and not the secret itself",
    );
  }
  hideEverywhere({ secrets: [value] });
  return value;
}
