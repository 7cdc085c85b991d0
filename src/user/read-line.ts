import { z } from "zod";
import type { UserLine } from "./user.ts";

const lineSchema = z.union([
  z.string(),
  z.strictObject({ text: z.string(), leaves: z.literal(true) }),
]);

/**
 * Reads a line from data: text, or `{text, leaves: true}`. Returns `undefined` for anything else.
 */
export function readLine(given: unknown): UserLine | undefined {
  return lineSchema.safeParse(given).data;
}
