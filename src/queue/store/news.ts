import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";

const run = z.string().max(200);
const jobs = z.array(z.string().max(200)).max(10_000);

const newsSchema = z.discriminatedUnion("type", [
  /** There are attempts to be played. */
  z.object({ type: z.literal("jobs"), run }),
  /** A run begins or ends, or its policy is in another state. */
  z.object({ type: z.literal("run"), run }),
  /** These jobs are not needed any more. */
  z.object({ type: z.literal("cancel"), run, jobs }),
  /** These are to end with what they have. */
  z.object({ type: z.literal("interrupt"), run, jobs }),
  /** A worker keeps to the policy's state. */
  z.object({ type: z.literal("acknowledged"), run }),
]);

/** A notification between processes. Nothing depends on its arrival. JSON-able. */
export type News = z.infer<typeof newsSchema>;

/** Reads a notification. Returns `undefined` if the text is not one. */
export function parseNews(text: string): News | undefined {
  return newsSchema.safeParse(parseJsonText(text)).data;
}
