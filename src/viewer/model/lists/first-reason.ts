import { differenceOf, type Difference } from "../../../environment/state/difference.ts";
import type { EpisodeRow } from "../../../run/folder/episode-row.ts";
import { isSuccessful } from "../../../report/trial-result.ts";
import { isObject } from "../../../values/is-object.ts";

/** The parts of an episode that give the reason of its score. */
interface Judged extends Partial<Pick<EpisodeRow, "reward" | "rewardDetails" | "failure">> {
  /** The verdict, if another rule than the reward 1 decides. */
  readonly success?: boolean | undefined;
}

const maxLength = 200;

/**
 * Returns the first reason why an episode has no success: its failure, the first difference from the wanted result, or
 * the first text of the score's details. Returns `undefined` if there is no reason.
 */
export function firstReason(scored: Judged): string | undefined {
  const { rewardDetails, failure } = scored;
  if (failure !== undefined) return briefLine(failure.message);
  if (isSuccessful(scored)) return undefined;
  const difference = differenceOf(rewardDetails);
  const reason = difference === undefined ? undefined : firstDifference(difference);
  return briefLine(reason ?? firstText(rewardDetails));
}

/** Returns a text as one line of limited length. `undefined` if it is empty. */
export function briefLine(text: string | undefined): string | undefined {
  const line =
    text
      ?.slice(0, 4 * maxLength)
      .replaceAll(/\s+/g, " ")
      .trim() ?? "";
  if (line === "") return undefined;
  return line.length <= maxLength ? line : `${line.slice(0, maxLength)}…`;
}

function firstDifference(difference: Difference): string | undefined {
  const { state, missingCalls, extraCalls, missingOutputs } = difference;
  const [place] = state;
  if (place !== undefined) {
    const { table, record, field } = place;
    const got = "got" in place ? JSON.stringify(place.got) : "nothing";
    const wanted = "wanted" in place ? JSON.stringify(place.wanted) : "nothing";
    return `${table} ${record}${field === "" ? "" : ` · ${field}`}: ${got} instead of ${wanted}`;
  }
  const [missing] = missingCalls;
  if (missing !== undefined) return `never called ${missing.name} ${missing.argumentsText}`;
  const [output] = missingOutputs;
  if (output !== undefined) return `never said “${output}”`;
  const [extra] = extraCalls;
  return extra && `called ${extra.name} ${extra.argumentsText}, which was not wanted`;
}

/** Returns the first text in a score's details, with its name. Also searches one level below. */
function firstText(details: Readonly<Record<string, unknown>> = {}): string | undefined {
  for (const [name, value] of Object.entries(details)) {
    if (typeof value === "string" && value !== "") return `${name}: ${value}`;
    if (!isObject(value) || name === "difference") continue;
    const inner = Object.entries(value).find(([, each]) => typeof each === "string" && each !== "");
    if (inner !== undefined) return `${name} ${inner[0]}: ${String(inner[1])}`;
  }
  return undefined;
}
