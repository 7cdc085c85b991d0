import type { Episode } from "../../episode/episode.ts";
import { describeStack, type Failure, type RolloutError } from "../../errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { DescribedTrouble } from "../packed/packed-episode.ts";

/** Adds problems to an episode, except the failure that ended it. */
export function withTroubles(episode: Episode, met: readonly Failure[]): Episode {
  const { failure } = episode;
  const troubles = met.filter(
    ({ code, message }) => code !== failure?.code || message !== failure.message,
  );
  return troubles.length === 0 ? episode : { ...episode, troubles };
}

/** Describes a problem for `events.jsonl`. The stack is redacted as text: the cause may be a string or frozen. */
export function describeTrouble(
  trouble: RolloutError,
  redactor: Redactor | undefined,
): DescribedTrouble {
  const stack = describeStack(trouble);
  return {
    code: trouble.code,
    message: redactor?.text(trouble.message) ?? trouble.message,
    stack: redactor?.text(stack) ?? stack,
  };
}
