import type { EpisodeEntry } from "./episode-entry.ts";

/** A field by which a list can be filtered and sorted. */
interface EpisodeField {
  readonly name: string;
  readonly title: string;
  /** An explanation for first-time readers. */
  readonly meaning: string;
  valueOf(entry: EpisodeEntry, versions: readonly string[]): number | string | undefined;
}

/** All fields. Filters use their names. */
export const episodeFields: readonly EpisodeField[] = [
  {
    name: "order",
    title: "ended as",
    meaning: "place in the order in which the episodes ended",
    valueOf: ({ order }) => order,
  },
  {
    name: "task",
    title: "task",
    meaning: "which task was played",
    valueOf: ({ taskIndex }) => taskIndex,
  },
  {
    name: "sample",
    title: "attempt",
    meaning: "which attempt at the task it is",
    valueOf: ({ sampleIndex }) => sampleIndex,
  },
  {
    name: "reward",
    title: "reward",
    meaning: "what it earned; none where nothing scored it",
    valueOf: ({ reward }) => reward,
  },
  {
    name: "outcome",
    title: "outcome",
    meaning: "completed, truncated, failed or aborted",
    valueOf: ({ outcome }) => outcome,
  },
  {
    name: "end",
    title: "ended by",
    meaning: "what ended the conversation",
    valueOf: ({ stopReason }) => stopReason,
  },
  {
    name: "party",
    title: "failure of",
    meaning: "whose failure it was, where it failed",
    valueOf: ({ party }) => party,
  },
  {
    name: "rows",
    title: "rows",
    meaning: "training rows; several after a compaction, a sub-agent or a rewritten history",
    valueOf: ({ rowCount }) => rowCount,
  },
  {
    name: "turns",
    title: "turns",
    meaning: "how often the policy was asked",
    valueOf: ({ turnCount }) => turnCount,
  },
  {
    name: "calls",
    title: "calls",
    meaning: "tool calls that were performed",
    valueOf: ({ toolCallCount }) => toolCallCount,
  },
  {
    name: "malformed",
    title: "malformed",
    meaning: "turns that tried to call a tool and got no call right",
    valueOf: ({ formatErrorCount }) => formatErrorCount,
  },
  {
    name: "sampled",
    title: "sampled",
    meaning: "tokens that the policy sampled: trained",
    valueOf: ({ sampledTokenCount }) => sampledTokenCount,
  },
  {
    name: "tokens",
    title: "tokens",
    meaning: "tokens of its training rows in all",
    valueOf: ({ tokenCount }) => tokenCount,
  },
  {
    name: "versions",
    title: "versions",
    meaning: "the policy's versions that sampled it, the first and the last",
    valueOf: (_, versions) => versions.length,
  },
  {
    name: "stale",
    title: "stale",
    meaning: "versions between its oldest token and the newest policy of the run when it ended",
    valueOf: ({ staleness }) => staleness,
  },
  {
    name: "seconds",
    title: "seconds",
    meaning: "how long it took",
    valueOf: ({ durationMs }) => durationMs / 1000,
  },
];

const fieldsByName = new Map(episodeFields.map((field) => [field.name, field]));

/** True if the filter shows the episode. */
type EpisodeTest = (entry: EpisodeEntry, versions: readonly string[]) => boolean;

/** A parsed filter, and the words of it that could not be parsed. */
interface EpisodeFilter {
  readonly test: EpisodeTest;
  readonly problems: readonly string[];
}

const condition = /^([a-z]+)(<=|>=|!=|=|<|>|:)(.*)$/;

/**
 * Reads a filter: words with blanks between them. An episode must match all of them. A word is a condition such
 * as `reward<1`, `turns>=10`, `outcome:failed` or `reward=none`, or a part of the episode's id.
 */
export function readFilter(text: string): EpisodeFilter {
  const problems: string[] = [];
  const tests = text
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) => readWord(word, problems));
  return {
    problems,
    test: (entry, versions) => tests.every((test) => test(entry, versions)),
  };
}

function readWord(word: string, problems: string[]): EpisodeTest {
  const match = condition.exec(word);
  if (match === null) {
    const wanted = word.toLowerCase();
    return ({ rolloutId }) => rolloutId.toLowerCase().includes(wanted);
  }
  const [, name, operator, wanted] = match as unknown as [string, string, string, string];
  const field = fieldsByName.get(name);
  if (field === undefined) {
    problems.push(`there is no “${name}”`);
    return () => true;
  }
  if (wanted === "none") {
    const isWanted = operator !== "!=";
    return (entry, versions) => (field.valueOf(entry, versions) === undefined) === isWanted;
  }
  const number = wanted === "" ? Number.NaN : Number(wanted);
  if (/[<>]/.test(operator) && Number.isNaN(number)) {
    problems.push(`“${word}” compares with no number`);
    return () => true;
  }
  return (entry, versions) => {
    const value = field.valueOf(entry, versions);
    if (value === undefined) return false;
    return compare(typeof value === "number" ? value - number : value, operator, wanted);
  };
}

/**
 * Returns true if a field matches a condition.
 *
 * @param value - The field's text, or its number minus the wanted number.
 */
function compare(value: number | string, operator: string, wanted: string): boolean {
  if (typeof value === "string") {
    if (operator === "!=") return value !== wanted;
    return operator === ":" ? value.includes(wanted) : value === wanted;
  }
  switch (operator) {
    case "<":
      return value < 0;
    case "<=":
      return value <= 0;
    case ">":
      return value > 0;
    case ">=":
      return value >= 0;
    case "!=":
      return value !== 0;
    default:
      return value === 0;
  }
}

/** The field to sort a list by. A leading `-` sorts in descending order. */
type EpisodeOrder = string;

/**
 * Sorts entries by a field. Entries without a value come last. Entries with equal values are
 * ordered by task.
 */
export function sortEpisodes(
  entries: readonly EpisodeEntry[],
  order: EpisodeOrder,
  versionsOf: (entry: EpisodeEntry) => readonly string[],
): readonly EpisodeEntry[] {
  const isDown = order.startsWith("-");
  const field = fieldsByName.get(isDown ? order.slice(1) : order);
  if (field === undefined) return entries;
  const sign = isDown ? -1 : 1;
  return entries
    .map((entry) => ({ entry, value: field.valueOf(entry, versionsOf(entry)) }))
    .sort(
      (left, right) =>
        compareValues(left.value, right.value, sign) || comparePlaces(left.entry, right.entry),
    )
    .map(({ entry }) => entry);
}

function comparePlaces(left: EpisodeEntry, right: EpisodeEntry): number {
  return (
    left.taskIndex - right.taskIndex ||
    left.sampleIndex - right.sampleIndex ||
    left.order - right.order
  );
}

function compareValues(
  left: number | string | undefined,
  right: number | string | undefined,
  sign: number,
): number {
  if (left === right) return 0;
  if (left === undefined) return 1;
  if (right === undefined) return -1;
  return left < right ? -sign : sign;
}
