import type { EpisodeStory } from "../run/folder/episode-row.ts";
import type { SlimePlace } from "../run/slime/slime.ts";
import type { Sample } from "../trajectory/sample.ts";

/** Kinds of rows for which a trainer needs a rule of its own. */
export const exportKinds = [
  /** The episode met one of its limits. */
  "truncated",
  /** The engine, the user, the environment or the grader failed. */
  "failed",
  /** Nothing scored the episode, and no party failed. Example: a deadline ended it. */
  "unscored",
  /** The attempt was not played to its end. */
  "aborted",
  /** A row without sampled tokens. */
  "empty",
  /** The history was rewritten: several rows of one episode. */
  "segments",
  /** Tokens of several policy versions in one row. */
  "mixedVersions",
  /** A sampled token whose policy version is not a whole number. */
  "unnamedVersions",
  /** Tokens after the last sampled token. */
  "environmentTail",
] as const;

/** One of `exportKinds`. */
export type ExportKind = (typeof exportKinds)[number];

/** The action that an exporter takes for a kind of row. */
export type ExportAction =
  /** It is exported. */
  | "keep"
  /** Cut the tokens after the last sampled one, and report the cut. */
  | "cut"
  /** The attempt is left out, and that is said. */
  | "leave-out"
  /** Its whole group is left out, and that is said. */
  | "leave-out-group"
  /** Export nothing: the whole export fails. */
  | "refuse";

/** An exporter's action for one kind of row, and how the trainer reads the result. */
interface ExportRule {
  readonly action: ExportAction;
  /** The trainer's field for it, or the reason why the row is not exported. For people. */
  readonly why: string;
}

/** An exporter's rule for every kind. */
export type ExportRules = Readonly<Record<ExportKind, ExportRule>>;

/** One attempt of a group, as it was read from the run's folder. */
export interface ExportMember {
  readonly rolloutId: string;
  /** Absent if the attempt has not finished. */
  readonly episode: EpisodeStory | undefined;
  readonly samples: readonly Sample[];
  readonly place: SlimePlace;
}

/** One row, ready for a trainer. */
export interface ReadyRow extends Pick<
  Sample,
  "tokenIds" | "promptLength" | "lossMask" | "logprobs" | "turns"
> {
  readonly sample: Sample;
  /** Versions of the sampled tokens, `""` elsewhere. */
  readonly policyVersions: readonly string[];
}

/** One attempt, ready for a trainer: it has a reward and at least one row. */
export interface ReadyAttempt {
  readonly rolloutId: string;
  readonly groupId: string;
  readonly episode: EpisodeStory;
  readonly reward: number;
  /** Reward less the mean over the attempts of the group that are exported. */
  readonly advantage: number;
  /** 0-based place within the group as it was planned. */
  readonly repetition: number;
  readonly place: SlimePlace;
  readonly rows: readonly ReadyRow[];
}

/** Something that an export left out or changed. JSON-able. */
export interface ExportNote {
  readonly rolloutId: string;
  readonly kind: ExportKind;
  readonly action: Exclude<ExportAction, "keep" | "refuse">;
  /** The number of tokens that were cut. Absent if none were. */
  readonly tokenCount?: number;
}

/** Facts about the run that its rows do not contain. */
export interface ExportSurroundings {
  /** The whole number to write for `""`, the version of tokens whose engine reported none. */
  readonly policyVersion?: number;
  /**
   * The name of the caller's option for `policyVersion`, for error messages. Default:
   * `policyVersion`.
   */
  readonly versionRemedy?: string;
  /** At which the run sampled; prime-rl's rows cannot be made without. */
  readonly temperature?: number;
  /**
   * The name of the caller's option for `temperature`, for error messages. Default: `temperature`.
   */
  readonly temperatureRemedy?: string;
  /** Spells a prompt's ids out, for slime's `prompt`; absent: it has the messages. */
  readonly spell?: (ids: readonly number[]) => Promise<string>;
}

/** One JSON object: a list over the rows for each field, and what else it has. */
export interface ColumnLayout {
  readonly columns: readonly string[];
  readonly rest: Readonly<Record<string, unknown>>;
}

/** Makes the rows of one trainer. */
export interface Exporter {
  /** The trainer, and what is read here. */
  readonly trainer: string;
  /** JSON lines, or one JSON object. */
  readonly layout: "lines" | ColumnLayout;
  readonly rules: ExportRules;
  /** The records of one attempt. Pure. */
  readonly toRecords: (
    attempt: ReadyAttempt,
    surroundings: ExportSurroundings,
  ) => readonly Readonly<Record<string, unknown>>[];
}
