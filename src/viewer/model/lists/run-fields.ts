import type { ListField } from "./list-fields.ts";
import type { RunOverview } from "./run-figures.ts";
import { settingText } from "./setting-differences.ts";

/** The fields of a list of runs. */
const ownFields: readonly ListField<RunOverview>[] = [
  {
    name: "run",
    title: "run",
    meaning: "the name of its folder",
    valueOf: ({ facts }) => facts.key,
  },
  {
    name: "state",
    title: "state",
    meaning: "finished, running, stopped, interrupted, too-many-failures or removed",
    valueOf: ({ facts }) => facts.state,
  },
  {
    name: "date",
    title: "started",
    meaning: "when its first episode started, such as date:2026-11-29",
    valueOf: ({ startedAtMs }) => (startedAtMs === undefined ? undefined : dateText(startedAtMs)),
  },
  {
    name: "env",
    title: "environment",
    meaning: "environment and split",
    valueOf: (run) => scopeText(run),
  },
  {
    name: "model",
    title: "model",
    meaning: "the policy's model",
    valueOf: ({ facts }) => facts.model,
  },
  {
    name: "episodes",
    title: "episodes",
    meaning: "finished episodes",
    valueOf: ({ facts }) => facts.episodeCount,
  },
  {
    name: "reward",
    title: "mean reward",
    meaning: "the mean over tasks, with its 95 % interval",
    valueOf: ({ figures }) => figures.averageReward?.value,
  },
  {
    name: "pass1",
    title: "pass^1",
    meaning: "the share of attempts that are a success",
    valueOf: ({ figures }) => figures.passHatK["1"]?.value,
  },
  {
    name: "passk",
    title: "pass^k",
    meaning: "the share of tasks with k successes in k attempts; k is the most that the run has",
    valueOf: ({ figures }) => figures.passHatK[String(figures.attemptCount)]?.value,
  },
];

/** Returns the fields of a list of runs: its columns, and the settings in which the runs differ. */
export function runFields(settings: readonly string[]): readonly ListField<RunOverview>[] {
  const known = new Set(ownFields.map(({ name }) => name));
  const more = settings.filter((name) => !known.has(name));
  return [
    ...ownFields,
    ...more.map((name) => ({
      name,
      title: name,
      meaning: "a setting in which the runs differ",
      valueOf: ({ facts }: RunOverview) => {
        const value = facts.configuration[name];
        if (value === undefined || typeof value === "number") return value;
        return settingText(value);
      },
    })),
  ];
}

/** Returns the texts of a run in which a filter's words are searched. */
export function runTexts({ facts }: RunOverview): readonly (string | undefined)[] {
  return [facts.key, facts.environment, facts.split, facts.model];
}

/** Names the environment and the split of a run: those of its episodes, or of its settings. */
export function scopeText({ facts, figures }: RunOverview): string | undefined {
  const { environment, split } = facts;
  if (figures.scopes.length > 0) return figures.scopes.join(", ");
  return split === undefined ? environment : `${environment}/${split}`;
}

/** Writes a moment as the local date and time, such as `2026-11-29 15:27`. */
export function dateText(atMs: number): string {
  const at = new Date(atMs);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}
