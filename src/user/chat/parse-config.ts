import type { z } from "zod";
import { UsageError } from "../../errors.ts";

/**
 * Validates configuration against a schema.
 *
 * @throws UsageError "Cannot <what>: <place>.<field> …" with the first issue.
 */
export function parseConfig<Schema extends z.ZodType>(
  schema: Schema,
  config: unknown,
  { what, place }: { what: string; place: string },
): z.infer<Schema> {
  const result = schema.safeParse(config);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = [place, ...(issue?.path ?? [])].filter((part) => part !== "").join(".");
  throw new UsageError(`Cannot ${what}: ${path === "" ? "" : `\`${path}\`: `}${issue?.message}`);
}
