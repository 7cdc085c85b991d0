import { z } from "zod";
import { parseJsonText } from "../../json/parse-json.ts";

const run = z.string().max(200);
const jobs = z.array(z.string().max(200)).max(10_000);

const newsSchema = z.discriminatedUnion("type", [
  /** The run has new jobs. */
  z.object({ type: z.literal("jobs"), run }),
  /** The run starts or ends, or its policy's state has changed. */
  z.object({ type: z.literal("run"), run }),
  /** These jobs are cancelled. */
  z.object({ type: z.literal("cancel"), run, jobs }),
  /** The attempts of these jobs are interrupted: they end with the turns so far. */
  z.object({ type: z.literal("interrupt"), run, jobs }),
  /** A worker has acknowledged the policy's state. */
  z.object({ type: z.literal("acknowledged"), run }),
]);

/** A notification between processes. Nothing depends on its arrival. JSON-able. */
export type News = z.infer<typeof newsSchema>;

/** Reads a notification. Returns `undefined` if the text is not one. */
export function parseNews(text: string): News | undefined {
  return newsSchema.safeParse(parseJsonText(text)).data;
}
