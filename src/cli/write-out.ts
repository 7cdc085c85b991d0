import { once } from "node:events";
import { Redactor } from "../secrets/redactor.ts";

/** Removes secrets from all output of this process. */
const redactor = new Redactor();

/** Registers secrets that must not appear in later output. */
export function hideSecrets(known: Redactor): void {
  redactor.learnFrom(known);
}

/** Removes the known secrets from an error that Node prints. */
export function hideSecretsIn(error: unknown): void {
  redactor.error(error);
}

/** Writes to standard output. Waits if the reader is slow. */
export async function writeOut(text: string): Promise<void> {
  if (!process.stdout.write(redactor.text(text))) await once(process.stdout, "drain");
}

/**
 * Writes a result: as text to a terminal, and as a JSON line elsewhere or if `json` is set.
 *
 * @param text - Formats the result for people.
 */
export async function writeResult(
  result: object,
  { json, text }: { readonly json: true | undefined; readonly text: () => string },
): Promise<void> {
  const isJson = json === true || !process.stdout.isTTY;
  await writeOut(`${isJson ? JSON.stringify(result) : text()}\n`);
}

/** Writes to standard error: notes, progress and errors. */
export function writeError(text: string): void {
  process.stderr.write(redactor.text(text));
}
