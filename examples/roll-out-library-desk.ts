import { rollout, type Sample } from "turnwright";
import environment from "./library-desk.ts";

/** Rows of two attempts at each task, for a trainer of your own. */
export async function rollOutLibraryDesk(url: string, model: string): Promise<Sample[]> {
  const rows: Sample[] = [];
  for await (const { episode, samples } of rollout({ environment, url, model, samples: 2 })) {
    if (episode.reward !== undefined) rows.push(...samples);
  }
  return rows;
}
