import { once } from "node:events";

/** Writes to standard output, and waits where the reader is slower than we are. */
export async function writeOut(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, "drain");
}
