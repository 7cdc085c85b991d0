import { figuresOf, type RunFigures } from "../../model/lists/run-figures.ts";
import type { EpisodeList } from "../viewer-app.ts";

const known = new WeakMap<EpisodeList, RunFigures>();

/** Returns the figures of a run's list. They are computed once for each state of the list. */
export function listFigures(list: EpisodeList): RunFigures {
  const figures = known.get(list) ?? figuresOf(list.entries);
  known.set(list, figures);
  return figures;
}
