import { once } from "node:events";
import { Redactor } from "../secrets/redactor.ts";

/**
 * Removes secrets from the output. The process has one, because it has one standard output and error.
 */
const redactor = new Redactor();

/** Keeps secrets out of all that is written from now on. */
export function hideSecrets(known: Redactor): void {
  redactor.learnFrom(known);
}

/** Takes the known secrets out of an error that Node is to print. */
export function hideSecretsIn(error: unknown): void {
  redactor.error(error);
}

/** Writes to standard output, and waits where the reader is slower than we are. */
export async function writeOut(text: string): Promise<void> {
  if (!process.stdout.write(redactor.text(text))) await once(process.stdout, "drain");
}

/** Writes to standard error: notes, progress, complaints. */
export function writeError(text: string): void {
  process.stderr.write(redactor.text(text));
}
