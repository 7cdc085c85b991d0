import type { HandOutNews } from "./hand-out/hand-out-news.ts";

/**
 * Describes a hand-out notice for a person. Returns `undefined` for notices that only the run's
 * events show.
 */
export function describeHandOut(news: HandOutNews): string | undefined {
  switch (news.type) {
    case "no-worker":
      return `waiting: ${news.why}`;
    case "worker-there":
      return "a worker plays";
    case "result-refused":
      return `handing out ${news.rolloutId} again: ${news.reason} (worker ${news.worker})`;
    case "attempt-played-again":
      return undefined;
  }
}

/** Describes for a person if the store can be reached, and why not. */
export function describeContact({
  isThere,
  why,
}: {
  readonly isThere: boolean;
  readonly why?: string;
}): string {
  if (isThere) return "reaches the queue's store again";
  return `cannot reach the queue's store${why === undefined ? "" : ` (${why})`}, retrying`;
}
