import type { EpisodeStory } from "../run/folder/episode-row.ts";
import type { SlimePlace } from "../run/slime/slime.ts";
import type { Sample } from "../trajectory/sample.ts";

/** What a trainer has to be told apart from a plain row. */
export const exportKinds = [
  /** The episode met one of its limits. */
  "truncated",
  /** The engine, the user, the environment or the grader failed. */
  "failed",
  /** Nothing scored the episode, and nobody failed: such as a deadline before the end. */
  "unscored",
  /** The attempt was not played to its end. */
  "aborted",
  /** The policy sampled nothing. */
  "empty",
  /** The history was rewritten: several rows of one episode. */
  "segments",
  /** Tokens of several policy versions in one row. */
  "mixedVersions",
  /** A sampled token whose policy version is no whole number. */
  "unnamedVersions",
  /** Tokens behind the last one that was sampled. */
  "environmentTail",
] as const;

/** One of `exportKinds`. */
export type ExportKind = (typeof exportKinds)[number];

/** What is done with a kind of row. */
export type ExportAction =
  /** It is exported. */
  | "keep"
  /** What stands behind the last sampled token is cut off, and that is said. */
  | "cut"
  /** The attempt is left out, and that is said. */
  | "leave-out"
  /** Its whole group is left out, and that is said. */
  | "leave-out-group"
  /** Nothing is exported. */
  | "refuse";

/** What an exporter does with a kind of row, and what the trainer reads then. */
interface ExportRule {
  readonly action: ExportAction;
  /** For people: how the row says it, or why it is not exported. */
  readonly why: string;
}

/** An exporter's rule for every kind. */
export type ExportRules = Readonly<Record<ExportKind, ExportRule>>;

/** One attempt of a group, as the run's folder has it. */
export interface ExportMember {
  readonly rolloutId: string;
  /** Absent where the attempt is not finished. */
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
  /** Tokens that were cut off; absent where none were. */
  readonly tokenCount?: number;
}

/** What is known of the run that its rows do not say. */
export interface ExportSurroundings {
  /** The whole number that stands for `""`, where the engine named no version. */
  readonly policyVersion?: number;
  /** How whoever asks gives `policyVersion`, for the refusal of a row that needs it; absent: by that name. */
  readonly versionRemedy?: string;
  /** At which the run sampled; prime-rl's rows cannot be made without. */
  readonly temperature?: number;
  /** How whoever asks gives `temperature`, for the refusal of a row that needs it; absent: by that name. */
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
