import { rollout, type Sample } from "turnwright";
import environment from "./library-desk.ts";

/** Returns the rows of two attempts at each task, for a trainer of your own. */
export async function rollOutLibraryDesk(url: string, model: string): Promise<Sample[]> {
  const rows: Sample[] = [];
  for await (const { episodes } of rollout({ environment, url, model, samples: 2 })) {
    for (const { reward, samples } of episodes) if (reward !== undefined) rows.push(...samples);
  }
  return rows;
}
